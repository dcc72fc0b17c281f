"""For any reply of a model, each shown sentence cites a passage of this turn and passed the check."""

from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.gate import Gate
from pipeline.replies import cited_sentences
from pipeline.support.support_check import SupportChecker
from pipeline.types import Status, Support
from storage.types import Evidence, Hit
from tests.pipeline.support.word_embeddings import read
from tests.pipeline.world import hit

WORDS = st.sampled_from([
    "the", "mill", "closed", "in", "1921", "1987", "Lauvik", "Ingrid", "not", "[1]", "[2]", "[7]", "[1-3]", "3.5",
    "million", ". ", "! ", "\n- ", "\n\n", "**", "<!channel>", "https://evil.example/x", "![x](y)", "@everyone", "。",
    "Dr.", "[1, 2]",
])  # fmt: skip
REPLIES = st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=40).map(" ".join))
TEXTS = st.lists(
    st.one_of(st.text(min_size=1, max_size=120), st.lists(WORDS, min_size=1, max_size=15).map(" ".join)),
    min_size=1,
    max_size=4,
)


@example(reply="000\x0c000", texts=["0"], foreign=False)
@given(reply=REPLIES, texts=TEXTS, foreign=st.booleans())
async def test_unsupported_sentence_never_passes(reply: str, texts: list[str], foreign: bool) -> None:  # noqa: FBT001
    """For any reply over any passages, including some never found, only supported sentences pass.

    Each cites passages of this turn and passed the check; footnotes are numbered without gaps, in order.
    """
    hits = [hit(text, key=f"{place}.md") for place, text in enumerate(texts)]
    by_id = {source.passage.id: source for source in hits[: len(hits) - foreign]}
    checked: dict[tuple[str, tuple[str, ...]], Support] = {}

    async def supports(sentence: str, evidence: Sequence[Evidence], *, asked: Sequence[str] = ()) -> Support:
        support = await SupportChecker(read)(sentence, evidence, asked=asked)
        checked[sentence, tuple(piece.passage.id for piece in evidence)] = support
        return support

    gate = Gate(found=by_id, supports=supports, tell=lambda _: None)
    offered = [[_whole(source)] for source in hits]
    replied = [
        cited_sentences.cite_sentence(marked, offered)
        for marked in cited_sentences.split_sentences(reply, len(offered))
    ]
    through = [sentence for sentence in replied if await gate.say(sentence)]
    answer = gate.answer(Status.ANSWERED)

    assert [sentence.text for sentence in answer.sentences] == [sentence.text for sentence in through]
    refused = [sentence.text for sentence in replied if not any(sentence is passed for passed in through)]
    assert len(set(refused)) <= answer.withheld <= len(refused)  # a sentence that is refused twice may count once
    for passed in through:
        cited = tuple(piece.passage.id for piece in passed.evidence)
        assert checked[passed.text, cited].holds
        assert set(cited) <= set(by_id)
    numbers = [number for sentence in answer.sentences for number in sentence.citations]
    listed = {citation.number for citation in answer.citations}
    assert list(dict.fromkeys(numbers)) == sorted(listed) == list(range(1, len(listed) + 1))
    assert [citation.number for citation in answer.citations] == list(range(1, len(answer.citations) + 1))
    assert {citation.passage_id for citation in answer.citations} <= set(by_id)


async def test_supported_sentence_passes() -> None:
    """The property above would also hold for a gate that lets nothing pass; here two of four sentences pass."""
    mill = hit("Ingrid founded the mill in Lauvik in 1921. It closed in 1987 after a fire.", key="mill.md")
    reply = """
- And it closed in 1987, after a fire [1].
- Ingrid founded it in 1931 [1].
- Whales sing.
- Ingrid founded the mill in 1921.[1]"""
    gate = Gate(found={mill.passage.id: mill}, supports=SupportChecker(read), tell=lambda _: None)
    for marked in cited_sentences.split_sentences(reply, 1):
        await gate.say(cited_sentences.cite_sentence(marked, [[_whole(mill)]]))

    texts = [sentence.text for sentence in gate.answer(Status.ANSWERED).sentences]
    assert texts == ["And it closed in 1987, after a fire.", "Ingrid founded the mill in 1921."]


def _whole(one: Hit) -> Evidence:
    return Evidence(one.passage.text, one.passage, one.document, (0, len(one.passage.text)))
