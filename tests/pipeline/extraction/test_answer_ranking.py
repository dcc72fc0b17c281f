"""Features of a candidate, and its probability of answering the question."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.extraction import answer_ranking
from pipeline.extraction.answer_ranking import (
    AnswerFeatures,
    AnswerModel,
    CandidateFeatures,
    ScoredCandidate,
    ScoredQuestion,
    extract_answer_features,
    predict_answerable,
    predict_probability,
    rerank_candidates,
    score_candidates,
    weigh_question,
)
from pipeline.extraction.candidates import find_candidates
from pipeline.stages import quotation
from tests.pipeline.world import hit

LEAVE = hit("Everyone has 25 days of leave. It can be taken in pieces.", key="leave.md", title="Leave", score=5.0)
OFFICE = hit("The office in Ghent opens at nine.", key="office.md", title="Office", score=1.0)
HITS = (LEAVE, OFFICE)


def rank(text: str, borrowed: str = "", language: str = "en") -> tuple[ScoredQuestion, list[ScoredCandidate]]:
    question = weigh_question(text, borrowed, language, HITS)
    candidates = find_candidates(HITS)
    ranked = score_candidates(question, candidates, [0.5] * len(candidates))
    return question, sorted(ranked, key=lambda one: -one.score)


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
        ("How many days of leave?", "It can be taken", {"amount": -1.0, "name": 0.0}),
        ("Who takes leave?", "It can be taken", {"amount": 0.0, "name": -1.0}),
        ("What is leave?", "It can be taken", {"amount": 0.0, "name": 0.0}),
    ],
)
def test_candidate_features_include_neighbours_and_answer_type(
    question: str, sentence: str, expected: dict[str, float]
) -> None:
    measured = features(question, sentence)
    assert {name: getattr(measured, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("question", "text", "name", "value"),
    [
        ("What does a hotel cost?", "A hotel may cost 140 euros.", "measured", 1.0),
        ("What does a hotel cost?", "We have 40 hotels.", "measured", -1.0),
        ("How long is probation?", "It lasts six months.", "measured", 1.0),
        ("Who is on probation?", "It lasts six months.", "measured", 0.0),
        ("May I bring a dog?", "Dogs are welcome in Ghent.", "rule", 1.0),
        ("Hello. Can I bring a dog?", "A dog came in 2016.", "rule", -1.0),
        ("Where is the dog?", "Dogs are welcome in Ghent.", "rule", 0.0),
        ("How many days of leave do I get?", "You get one extra day of leave.", "particular", 1.0),
        ("How many extra days do I get?", "You get one extra day of leave.", "particular", 0.0),
        ("How many days of leave do I get?", "Everyone has 25 days.", "general", 1.0),
        ("How many days of leave do I get?", "If you are ill, the days are given back.", "conditional", 1.0),
        ("What does a dog cost?", "Dogs are free.", "measured", 1.0),
        ("How many dogs do we have?", "There are 25 old dogs.", "counts", 1.0),
        ("How many dogs do we have?", "There are 25 cats.", "counts", 0.0),
        ("May I bring a dog?", "Dogs are welcome in Ghent.", "subject", 1.0),
        ("May I bring a dog?", "In Ghent dogs are welcome.", "subject", 0.0),
        ("Where is the dog?", "Dogs are welcome in Ghent.", "subject", 0.0),
    ],
)
def test_feature_value_of_a_sentence(question: str, text: str, name: str, value: float) -> None:
    hit = replace(OFFICE, passage=replace(OFFICE.passage, text=text))
    weighed = weigh_question(question, "", "en", [hit])
    (found,) = score_candidates(weighed, find_candidates([hit]), [0.0])
    assert getattr(found.features, name) == value


def test_position_in_passage_and_page_is_a_feature() -> None:
    second = replace(LEAVE, passage=replace(LEAVE.passage, id="leave.md#1", position=1))
    weighed = weigh_question("leave", "", "en", HITS)
    scored = score_candidates(weighed, find_candidates([LEAVE, second]), [0.0] * 4)
    assert [(candidate.features.opening, candidate.features.first) for candidate in scored] == [
        (1, 1),
        (0.5, 1),
        (1, 0.5),
        (0.5, 0.5),
    ]


def test_general_words_weigh_less() -> None:
    weights = weigh_question("bring zebras", "", "en", HITS).weights
    assert weights["bring"] == pytest.approx(answer_ranking.LIGHT * weights["zebra"])


def test_synonym_match_counts_less_than_the_word() -> None:
    weighed = weigh_question("How many days off?", "", "en", HITS)
    assert answer_ranking.measure_match("day", frozenset({"day"}), weighed.synonyms) == 1.0
    assert answer_ranking.measure_match("day", frozenset({"leav"}), weighed.synonyms) == answer_ranking.SYNONYM
    assert answer_ranking.measure_match("day", frozenset({"cat"}), weighed.synonyms) == 0.0


def test_trust_in_cosines_depends_on_the_language() -> None:
    """Wholly in English, a little in German, not at all in Chinese."""
    trusts = [
        weigh_question(*arguments, HITS)
        for arguments in (("leave", "", "en"), ("Urlaub", "", "de"), ("年假", "", "zh"))
    ]

    assert [(trust.trust, trust.regime) for trust in trusts] == [
        (1.0, "trusted"),
        (answer_ranking.FOREIGN, "lexical"),
        (0.0, "lexical"),
    ]


def test_unread_candidates_get_the_lowest_reader_score() -> None:
    question, ranked = rank("How many days of leave has everyone?")
    read = rerank_candidates(question, ranked, {0: -3.0, 1: 2.0})
    assert sorted(scored.features.reader for scored in read) == [-3.0, -3.0, 2.0]
    assert rerank_candidates(question, ranked, {}) == tuple(ranked)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=40), st.lists(st.floats(-1, 1), min_size=40, max_size=40))
def test_candidates_are_compared_until_the_best_are_known(estimates: list[float], gains: list[float]) -> None:
    question, ranked = rank("leave")
    scored, compared = [replace(ranked[0], score=score) for score in estimates], list[int]()

    while places := quotation.list_comparable(question, scored, set(compared)):
        compared += places
        for place in places:
            scored[place] = replace(scored[place], score=scored[place].score + gains[place])

    assert len(set(compared)) == len(compared) >= min(len(scored), quotation.FIRST_COMPARED)
    known = sorted((scored[place].score for place in compared), reverse=True)
    line = known[: quotation.CERTAIN_RANKS][-1] - quotation.COSINE_GAIN * 9.1194
    assert all(one.score <= line for place, one in enumerate(scored) if place not in compared)


@pytest.mark.parametrize(("said", "then"), [(6.0, []), (-6.0, [1, 2])])
def test_passages_are_read_only_while_that_may_change_the_best(said: float, then: list[int]) -> None:
    question, (best, *_) = rank("leave")
    (office,) = find_candidates([HITS[1]])
    other = replace(best, candidate=replace(office, rank=1), score=best.score - 1)
    ranked = [best, other, other]
    assert quotation.list_readable(question, ranked, {}) == [0]
    assert quotation.list_readable(question, ranked, {0: said}) == then
    assert quotation.list_readable(question, ranked, {0: said, 1: 0.0, 2: 0.0}) == []


def test_setting_a_cosine_later_gives_the_same_score_as_scoring_with_it() -> None:
    question, candidates = weigh_question("Which leave?", "", "en", HITS), find_candidates(HITS)
    scored = score_candidates(question, candidates, quotation.estimate_cosines(candidates))
    compared = quotation.set_cosines(question, scored, {1: 0.7})
    assert compared == [scored[0], score_candidates(question, candidates, [0.7] * 3)[1], scored[2]]


def test_answer_features_come_from_the_best_candidate_and_the_hits() -> None:
    question, ranked = rank("What does leave cost?")
    low, high = answer_ranking.TOPIC_DEPTH
    best = replace(ranked[0], features=replace(ranked[0].features, reader=3.0))
    few = extract_answer_features(question, HITS, [best])
    many = extract_answer_features(question, [LEAVE] * answer_ranking.FEW_HITS, [best])
    assert (few.reader, few.measured) == (3.0, -1.0)
    assert (few.tenth_cosine, many.tenth_cosine) == ((low + high) / 2, high)


def test_question_of_stop_words_is_unlikely_to_be_answered() -> None:
    question, ranked = rank("is it?")
    assert question.weights == {}
    assert predict_answerable(question, HITS, ranked) < answer_ranking.ANSWER_THRESHOLD


def test_answering_sentence_ranks_first_and_unrelated_question_is_unlikely() -> None:
    question, ranked = rank("How many days of leave has everyone?")
    other, others = rank("Which zebra swims in Lake Victoria?")
    assert ranked[0].candidate.text == "Everyone has 25 days of leave."
    assert predict_answerable(question, HITS, ranked) > predict_answerable(other, HITS, others)
    assert predict_answerable(other, HITS, others) < answer_ranking.ANSWER_THRESHOLD


def test_chance_without_candidates_is_zero() -> None:
    assert predict_answerable(weigh_question("leave", "", "en", ()), (), []) == 0.0


@pytest.mark.parametrize(
    ("question", "share"),
    [("When does Ghent open?", 1.0), ("When does Ghent or Bruges open?", 0.5), ("When does it open?", 1.0)],
)
def test_specifics_is_the_share_of_question_names_in_the_passage(question: str, share: float) -> None:
    reading, ranked = rank(question)
    office = [scored for scored in ranked if scored.candidate.hit is OFFICE]
    assert extract_answer_features(reading, HITS, office).specifics == share


numbers = st.floats(-1e6, 1e6)


SIGNS = list(AnswerFeatures.__dataclass_fields__)
rows = st.lists(numbers, min_size=len(SIGNS), max_size=len(SIGNS))


@given(rows, rows, numbers)
def test_predicted_probability_is_between_0_and_1(values: list[float], weights: list[float], bias: float) -> None:
    assert (
        0
        <= predict_probability(AnswerFeatures(*values), AnswerModel(bias, dict(zip(SIGNS, weights, strict=True))))
        <= 1
    )


@pytest.mark.parametrize("regime", ["trusted", "lexical"])
def test_every_feature_has_a_weight(regime: str) -> None:
    assert set(answer_ranking.load_weights(regime)) == set(CandidateFeatures.__dataclass_fields__)
    assert set(answer_ranking.load_answer_model(regime).weights) == set(AnswerFeatures.__dataclass_fields__)


def test_unweighted_features_count_nothing() -> None:
    assert answer_ranking.weigh_features(features("leave", "Everyone"), {"terms": 2.0}) == 2.0
