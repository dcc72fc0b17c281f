"""How footnotes are numbered."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.replies.footnotes import number_footnotes, quote_spans
from pipeline.types import CitedSentence
from storage.types import Evidence, Span
from tests.pipeline.world import hit

TEXT = "One is first. Two is second. Three is third. Four is fourth."
HITS = [hit(TEXT, key=f"{place}.md") for place in range(5)]


def _evidence(place: int, span: Span) -> Evidence:
    return Evidence(TEXT[slice(*span)], HITS[place].passage, HITS[place].document, span)


spans = st.tuples(st.integers(0, 30), st.integers(31, len(TEXT)))
evidence = st.builds(_evidence, st.integers(0, 4), spans)
sentences = st.lists(st.builds(CitedSentence, st.just("Said."), st.lists(evidence, min_size=1, max_size=4).map(tuple)))


@given(sentences)
def test_footnote_numbers_are_dense_and_in_order_of_appearance(reply: list[CitedSentence]) -> None:
    answered, citations = number_footnotes(reply)
    first_seen = list(dict.fromkeys(n for sentence in answered for n in sentence.citations))
    numbers = [citation.number for citation in citations]  # pages cited for the same words share one
    assert numbers == sorted(numbers)
    assert sorted(first_seen) == list(dict.fromkeys(numbers)) == list(range(1, len(set(numbers)) + 1))
    highest = 0
    for sentence in answered:
        assert max(sentence.citations) <= highest + len(sentence.citations)
        highest = max(highest, *sentence.citations)


@given(sentences)
def test_each_passage_has_one_footnote(reply: list[CitedSentence]) -> None:
    answered, citations = number_footnotes(reply)
    numbers = {citation.passage_id: citation.number for citation in citations}
    assert len(numbers) == len(citations)
    for one, said in zip(answered, reply, strict=True):
        assert set(one.citations) == {numbers[piece.passage.id] for piece in said.evidence}


@given(sentences, st.integers(0, 5))
def test_later_sentences_do_not_change_numbers(reply: list[CitedSentence], cut: int) -> None:
    assert number_footnotes(reply[:cut])[0] == number_footnotes(reply)[0][:cut]


@given(st.lists(spans, min_size=1, max_size=5))
def test_every_quote_piece_is_in_the_passage(found: list[Span]) -> None:
    assert all(piece in TEXT for piece in quote_spans(TEXT, found).split(" … "))


def test_separate_spans_are_quoted_in_text_order_with_an_ellipsis() -> None:
    assert quote_spans(TEXT, [(45, 60), (0, 13)]) == "One is first. … Four is fourth."


def test_neighbouring_spans_are_quoted_as_one() -> None:
    assert quote_spans(TEXT, [(14, 28), (0, 13)]) == "One is first. Two is second."
