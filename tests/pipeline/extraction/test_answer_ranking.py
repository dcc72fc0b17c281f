"""Features of a candidate, and its probability of answering the question."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.extraction import answer_ranking
from pipeline.extraction.answer_ranking import (
    ANSWER_THRESHOLD,
    FOREIGN,
    CandidateFeatures,
    RegimeWeights,
    ScoredCandidate,
    ScoredQuestion,
    load_weights,
    rescore_candidates,
    score_candidates,
    weigh_candidates,
    weigh_question,
)
from pipeline.extraction.candidates import find_candidates
from tests.pipeline.world import hit

LEAVE = hit("Everyone has 25 days of leave. It can be taken in pieces.", key="leave.md", title="Leave", score=5.0)
OFFICE = hit("The office in Ghent opens at nine.", key="office.md", title="Office", score=1.0)
HITS = (LEAVE, OFFICE)


def rank(
    text: str, borrowed: str = "", language: str = "en", read: dict[str, float] | None = None
) -> tuple[ScoredQuestion, tuple[ScoredCandidate, ...]]:
    question = weigh_question(text, borrowed, language, HITS)
    return question, score_candidates(question, find_candidates(HITS), read or {})


def features(text: str, sentence: str, **more: str) -> CandidateFeatures:
    _, ranked = rank(text, **more)
    return next(scored.features for scored in ranked if scored.candidate.text.startswith(sentence))


def test_rare_question_terms_weigh_more() -> None:
    question, _ = rank("leave at the zoo, in the open")
    assert sum(question.weights.values()) == pytest.approx(1.0)
    assert question.weights["zoo"] > question.weights["leav"]


def test_borrowed_terms_weigh_less() -> None:
    question, _ = rank("zoo", borrowed="museum zoo")
    assert question.weights["zoo"] == pytest.approx(2 * question.weights["museum"])


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    [
        ("leave", "It can be taken", {"terms": 0.0, "terms_before": 1.0, "passage_terms": 1.0}),
        ("pieces", "The office", {"terms_before": 0.0}),
        ("How many days of leave?", "It can be taken", {"offers": -1.0}),
        ("How many days of leave?", "Everyone", {"offers": 1.0}),
        ("Who takes leave?", "It can be taken", {"offers": -1.0}),
        ("What is leave?", "It can be taken", {"offers": 0.0}),
        ("When does Ghent open?", "The office", {"specifics": 1.0}),
        ("When does Ghent or Bruges open?", "The office", {"specifics": 0.5}),
        ("When does it open?", "The office", {"specifics": 1.0}),
        ("When do we open?", "The office", {"personal": 1.0}),
        ("When does the US office open?", "The office", {"personal": 0.0}),
        ("What's I've got?", "The office", {"personal": 1.0}),
    ],
)
def test_feature_values(question: str, sentence: str, expected: dict[str, float]) -> None:
    measured = features(question, sentence)
    assert {name: getattr(measured, name) for name in expected} == expected


def test_position_in_passage_and_page_is_a_feature() -> None:
    second = replace(LEAVE, passage=replace(LEAVE.passage, id="leave.md#1", position=1))
    weighed = weigh_question("leave", "", "en", HITS)
    scored = score_candidates(weighed, find_candidates([LEAVE, second]), {})
    places = {(one.candidate.rank, one.candidate.span): (one.features.opening, one.features.first) for one in scored}
    assert list(dict(sorted(places.items())).values()) == [(1, 1), (0.5, 1), (1, 0.5), (0.5, 0.5)]


def test_trust_in_cosines_depends_on_the_language() -> None:
    """Wholly in English, a little in German, not at all in Chinese."""
    asked = (("leave", "", "en"), ("Urlaub", "", "de"), ("年假", "", "zh"))
    assert [weigh_question(*each, HITS).trust for each in asked] == [1.0, answer_ranking.FOREIGN, 0.0]


def test_only_candidates_that_were_read_are_rescored() -> None:
    passages = {LEAVE.passage.id: 1.0, OFFICE.passage.id: -1.0}
    question, ranked = rank("How many days of leave has everyone?", read=passages)
    last = ranked[-1].candidate.context
    rescored = rescore_candidates(question, ranked, passages, {last: 9.0, ranked[0].candidate.context: -9.0}, {})
    assert [one.candidate.context for one in rescored] == [last, ranked[0].candidate.context]
    assert [one.features.sentence for one in rescored] == [9.0, -9.0]
    assert rescored[0].chance > ANSWER_THRESHOLD > rescored[1].chance


def test_cosines_of_texts_alone_order_all_but_the_first() -> None:
    passages = {LEAVE.passage.id: 1.0, OFFICE.passage.id: 1.0}
    question, ranked = rank("How many days of leave has everyone?", read=passages)
    first, second, third = (scored.candidate for scored in ranked)
    values = {first.context: 9.0, second.context: 0.5, third.context: 0.5}
    for nearer, farther in ((second, third), (third, second)):
        cosines = {first.text: 0.1, nearer.text: 0.9, farther.text: 0.1}
        rescored = rescore_candidates(question, ranked, passages, values, cosines)
        assert [scored.candidate for scored in rescored] == [first, nearer, farther]


def test_cosines_are_used_if_nothing_was_read() -> None:
    question, ranked = rank("Urlaub leave", language="de")
    (best,) = rescore_candidates(question, ranked, {}, {ranked[0].candidate.context: 0.5}, {})
    assert best.features.sentence == 0.5 * answer_ranking.FOREIGN


def test_question_of_stop_words_has_no_terms() -> None:
    question, ranked = rank("is it?")
    assert question.weights == {}
    assert {scored.features.terms for scored in ranked} == {0.0}


def test_answering_sentence_ranks_first_and_unrelated_question_is_unlikely() -> None:
    _, ranked = rank("How many days of leave has everyone?")
    _, others = rank("Which zebra swims in Lake Victoria?")
    assert ranked[0].candidate.text == "Everyone has 25 days of leave."
    assert ranked[0].chance > others[0].chance
    assert others[0].chance < ANSWER_THRESHOLD


FEATURES = [field.name for field in fields(CandidateFeatures)]
numbers = st.floats(-1e6, 1e6)
rows = st.lists(numbers, min_size=len(FEATURES), max_size=len(FEATURES))


@given(rows, rows, numbers)
def test_chance_is_between_0_and_1(values: list[float], weights: list[float], bias: float) -> None:
    _, (scored, *_) = rank("leave")
    regime = RegimeWeights({}, dict(zip(FEATURES, weights, strict=True)), bias)
    (weighed,) = weigh_candidates([replace(scored, features=CandidateFeatures(*values))], regime)
    assert 0 <= weighed.chance <= 1


def test_weights_are_of_known_features() -> None:
    names = {name for weights in load_weights().values() for name in (*weights.score, *weights.answer)}
    assert names <= set(FEATURES)
    assert load_weights().keys() == {"read", "trusted", "foreign", "lexical"}


@pytest.mark.parametrize(("trust", "cosine"), [(0.0, FOREIGN * 0.6), (1.0, 0.6)])
def test_cosines_count_for_other_languages_if_the_embedder_knows_them(trust: float, cosine: float) -> None:
    page = replace(hit("Urlaub haben alle an 25 Tagen.", language="de"), dense=0.6, trust=trust)
    question = weigh_question("Wie viel Urlaub haben alle?", "", "de", [page])
    (scored,) = score_candidates(question, find_candidates([page]), {})
    assert scored.features.cosine == pytest.approx(cosine)
