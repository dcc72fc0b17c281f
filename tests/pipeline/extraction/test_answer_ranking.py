"""What is known of a candidate, and how likely it is to answer."""

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
    score_candidates,
    weigh_question,
)
from pipeline.extraction.candidates import find_candidates
from tests.pipeline.world import hit

LEAVE = hit("Everyone has 25 days of leave. It can be taken in pieces.", key="leave.md", title="Leave", score=5.0)
OFFICE = hit("The office in Ghent opens at nine.", key="office.md", title="Office", score=1.0)
HITS = (LEAVE, OFFICE)


def thought(text: str, borrowed: str = "", language: str = "en") -> tuple[ScoredQuestion, list[ScoredCandidate]]:
    question = weigh_question(text, borrowed, language, HITS)
    found = find_candidates(HITS)
    ranked = score_candidates(question, found, [0.5] * len(found))
    return question, sorted(ranked, key=lambda one: -one.score)


def features(text: str, sentence: str, **more: str) -> CandidateFeatures:
    _, ranked = thought(text, **more)
    return next(one.features for one in ranked if one.candidate.text.startswith(sentence))


def test_terms_weigh_by_how_rare_they_are_among_the_passages() -> None:
    """What only one passage says tells more than what all of them say; together they weigh one."""
    question, _ = thought("leave at the zoo, in the open")

    assert sum(question.weights.values()) == pytest.approx(1.0)
    assert question.weights["zoo"] > question.weights["leav"]


def test_borrowed_terms_weigh_less() -> None:
    """The question's own words are what it is about."""
    question, _ = thought("zoo", borrowed="museum zoo")

    assert question.weights["zoo"] == pytest.approx(2 * question.weights["museum"])


def test_a_term_of_the_sentence_before_is_known() -> None:
    """What "it" stands for is usually named there."""
    found = features("leave", "It can be taken")

    assert (found.terms, found.terms_before, found.passage_terms) == (0.0, 1.0, 1.0)


def test_another_passage_is_no_sentence_before() -> None:
    """Passages stand side by side by their scores alone."""
    assert features("pieces", "The office").terms_before == 0.0


@pytest.mark.parametrize(
    ("question", "amount", "name"),
    [
        ("How many days of leave?", -1.0, 0.0),
        ("Who takes leave?", 0.0, -1.0),
        ("What is leave?", 0.0, 0.0),
    ],
)
def test_a_sentence_offers_what_is_asked_for_or_not(question: str, amount: float, name: float) -> None:
    """It has no new number and no name; where no kind is asked for nothing is missing."""
    found = features(question, "It can be taken")

    assert (found.amount, found.name) == (amount, name)


def test_cosines_count_as_far_as_the_embedder_knows_the_language() -> None:
    """Wholly in English, a little in German, not at all in Chinese."""
    trusts = [weigh_question(*one, HITS) for one in (("leave", "", "en"), ("Urlaub", "", "de"), ("年假", "", "zh"))]

    assert [(one.trust, one.regime) for one in trusts] == [
        (1.0, "trusted"),
        (answer_ranking.FOREIGN, "lexical"),
        (0.0, "lexical"),
    ]


def test_a_question_without_any_known_word_can_be_scored() -> None:
    """Nothing is divided by nothing."""
    question, ranked = thought("is it?")

    assert question.weights == {}
    assert predict_answerable(question, HITS, ranked) < answer_ranking.ANSWER_THRESHOLD


def test_the_right_sentence_is_ahead_and_likely() -> None:
    """A question in the words of the page is answered, one about something else is not."""
    question, ranked = thought("How many days of leave has everyone?")
    other, others = thought("Which zebra swims in Lake Victoria?")

    assert ranked[0].candidate.text == "Everyone has 25 days of leave."
    assert predict_answerable(question, HITS, ranked) > predict_answerable(other, HITS, others)
    assert predict_answerable(other, HITS, others) < answer_ranking.ANSWER_THRESHOLD


def test_no_candidate_has_no_chance() -> None:
    """There is nothing to say."""
    assert predict_answerable(weigh_question("leave", "", "en", ()), (), []) == 0.0


@pytest.mark.parametrize(
    ("question", "share"),
    [("When does Ghent open?", 1.0), ("When does Ghent or Bruges open?", 0.5), ("When does it open?", 1.0)],
)
def test_names_of_the_question_must_stand_in_the_passage(question: str, share: float) -> None:
    """A question about Bruges is not answered by a page about Ghent."""
    reading, ranked = thought(question)
    office = [one for one in ranked if one.candidate.hit is OFFICE]

    assert extract_answer_features(reading, HITS, office).specifics == share


numbers = st.floats(-1e6, 1e6)


@given(st.lists(numbers, min_size=8, max_size=8), st.lists(numbers, min_size=8, max_size=8), numbers)
def test_a_probability_is_one(values: list[float], weights: list[float], bias: float) -> None:
    """Whatever the signs and the weights."""
    names = list(AnswerFeatures.__dataclass_fields__)

    assert (
        0
        <= predict_probability(AnswerFeatures(*values), AnswerModel(bias, dict(zip(names, weights, strict=True))))
        <= 1
    )


@pytest.mark.parametrize("regime", ["trusted", "lexical"])
def test_the_calibrated_weights_fit_the_code(regime: str) -> None:
    """Every feature and every sign has a weight, and no other has."""
    assert set(answer_ranking.load_weights(regime)) == set(CandidateFeatures.__dataclass_fields__)
    assert set(answer_ranking.load_answer_model(regime).weights) == set(AnswerFeatures.__dataclass_fields__)


def test_scores_rank_by_the_weights() -> None:
    """A feature that is not weighed counts nothing."""
    assert answer_ranking.weigh_features(features("leave", "Everyone"), {"terms": 2.0}) == 2.0
