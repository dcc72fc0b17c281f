"""The two regressions, with data whose weights are known."""

import numpy as np
import pytest

from evaluation.answers.answer_scores import ExamOutcome
from evaluation.answers.question_sets import ExamQuestion
from evaluation.claims.claim_metrics import assign_folds
from pipeline.extraction.answer_ranking import weigh_question
from pipeline.stages.quotation import RankedQuotes
from pipeline.types import Answer, Status
from tools.training.answer_weights import (
    LEAST_EXAMPLES,
    CandidateChoice,
    ExamExample,
    fit_choice,
    fit_judge,
    keep_fittable,
)

RANDOM = np.random.default_rng(5)


def test_fitted_choice_model_recovers_known_weights() -> None:
    """A candidate is right if its two features, weighted 3 to 1, say so; the third feature is noise."""
    law = np.array([3.0, -1.0, 0.0])
    choices = []
    for _ in range(400):
        features = RANDOM.normal(size=(6, 3))
        right = np.zeros(6, bool)
        right[np.argmax(features @ law + RANDOM.gumbel(size=6))] = True
        choices.append(CandidateChoice(features, right))

    weights = fit_choice(choices)

    assert weights[0] / -weights[1] == pytest.approx(3, rel=0.25)
    assert abs(weights[2]) < 0.2


def test_logistic_regression_recovers_known_weights() -> None:
    signs = RANDOM.normal(size=(4_000, 2))
    true = RANDOM.random(4_000) < 1 / (1 + np.exp(1 - 2 * signs[:, 0]))

    bias, first, second = fit_judge(signs, true, np.ones(4_000))

    assert (bias, first, second) == pytest.approx((-1, 2, 0), abs=0.2)


def test_groups_stay_in_one_fold() -> None:
    assert assign_folds(["a", "a", "b", "c", "a", "d"], 3).tolist() == [0, 0, 1, 2, 0, 0]


def test_language_regime_with_too_few_questions_is_not_fitted() -> None:
    def example(language: str) -> ExamExample:
        posed = ExamQuestion("Is it open?", (), frozenset(), "", earlier=())
        considered = RankedQuotes(weigh_question(posed.text, "", language, ()), (), (), 0.0)
        outcome = ExamOutcome(posed, considered, (), Answer(Status.ABSTAINED))
        return ExamExample(outcome, answerable=True)

    many, few = [example("en")] * LEAST_EXAMPLES, [example("de")] * (LEAST_EXAMPLES - 1)

    assert keep_fittable([*many, *few]) == many
