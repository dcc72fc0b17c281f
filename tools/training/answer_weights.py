"""Fit the weights of the extractive system's scoring and abstention, and write them into the code.

For each regime, two regressions are fitted: which candidate answers the question, and whether the best candidate does.
The result is always the same for the same questions.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import pipeline.extraction as code
from evaluation.answers.answer_scores import LEARNED_HELP, ExamOutcome, ask_exam, open_exam
from evaluation.answers.question_sets import Exam, leave_out_articles, read_exam
from evaluation.claims.claim_metrics import assign_folds
from evaluation.workbench import open_reranker
from pipeline.extraction import answer_ranking
from pipeline.extraction.answer_ranking import (
    ANSWER_THRESHOLD,
    AnswerFeatures,
    AnswerModel,
    CandidateFeatures,
    extract_answer_features,
    predict_probability,
)
from pipeline.types import CitedSentence

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_STEPS = 250
_PACE = 0.05


@dataclass(frozen=True, slots=True)
class CandidateChoice:
    """The candidates of one question: their features in rows, which of them are right, and the question's weight."""

    features: Floats
    right: Booleans
    weight: float = 1.0


def fit_choice(choices: Sequence[CandidateChoice], *, ridge: float = 0.002) -> Floats:
    """Return the weights with which right candidates are most likely to be chosen (a conditional logit).

    Every question must have at least one right candidate.
    """
    scale = _scale(np.vstack([choice.features for choice in choices]))
    most = max(len(choice.right) for choice in choices)
    rows = np.zeros((len(choices), most, len(scale)))
    right = np.zeros((len(choices), most), bool)
    absent = np.full((len(choices), most), -1e9)
    for place, choice in enumerate(choices):
        size = len(choice.right)
        rows[place, :size], right[place, :size], absent[place, :size] = choice.features / scale, choice.right, 0.0
    shares = np.array([choice.weight for choice in choices])
    shares /= shares.sum()

    def gradient(weights: Floats) -> Floats:
        likely = _softmax(rows @ weights + absent)
        target = likely * right / (likely * right).sum(axis=1, keepdims=True)
        slope: Floats = np.einsum("i,ij,ijk->k", shares, likely - target, rows) + 2 * ridge * weights
        return slope

    fitted: Floats = _descend(gradient, len(scale)) / scale
    return fitted


def fit_judge(signs: Floats, true: Booleans, weights: Floats, *, ridge: float = 1.0) -> Floats:
    """Return the bias and the weights of a logistic regression, fitted with Newton's method."""
    scale, middle = _scale(signs), signs.mean(axis=0)
    rows = np.hstack([np.ones((len(signs), 1)), (signs - middle) / scale])
    penalty = np.diag([1e-6, *np.full(signs.shape[1], ridge)])  # tiny for the bias, which few examples do not determine
    fitted = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        likely = 1 / (1 + np.exp(-rows @ fitted))
        slope = rows.T @ (weights * (likely - true)) + penalty @ fitted
        curve = (rows * (weights * likely * (1 - likely))[:, None]).T @ rows + penalty
        step = np.linalg.solve(curve, slope)
        fitted -= step
        if np.abs(step).max() < 1e-9:
            break
    slopes = fitted[1:] / scale
    return np.concatenate([fitted[:1] - slopes @ middle, slopes])


def _scale(rows: Floats) -> Floats:
    """Return the standard deviation of each column; 1 for a constant column."""
    deviations: Floats = rows.std(axis=0)
    return np.where(deviations > 1e-9, deviations, 1.0)


def _softmax(scores: Floats) -> Floats:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Floats = raised / raised.sum(axis=1, keepdims=True)
    return shares


def _descend(gradient: Callable[[Floats], Floats], size: int) -> Floats:
    """Minimize a function by its gradient with Adam, starting at zero."""
    weights, mean, square = np.zeros(size), np.zeros(size), np.zeros(size)
    for step in range(1, _STEPS + 1):
        slope = gradient(weights)
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope * slope
        weights -= _PACE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return weights


EXAM_FOLDS = 8
EVERY = 2  # only every second question of a set is asked, because sets have many
HANDBOOK_WEIGHT = 6.0
"""The weight of a handbook's question relative to a set's: they are fewer, and less similar to their pages."""
LEAST_EXAMPLES = 100
"""A regime with fewer examples, such as a handbook's questions in another language, is not fitted."""
REGIMES = ("trusted", "lexical")
SCORES = [field.name for field in fields(CandidateFeatures)]
SIGNS = [field.name for field in fields(AnswerFeatures)]


@dataclass(frozen=True)
class ExamExample:
    """The outcome of a question, whether the documents answer it, and its weight in the fit."""

    outcome: ExamOutcome
    answerable: bool
    weight: float

    @property
    def regime(self) -> str:
        """The regime whose weights this example fits."""
        return self.outcome.considered.question.regime

    @property
    def exam(self) -> str:
        """The name of the exam."""
        hits = self.outcome.considered.hits
        return hits[0].document.corpus if hits else ""


@dataclass(frozen=True)
class FittedWeights:
    """The weights of the scoring and the abstention judge, for each regime."""

    scores: Mapping[str, Mapping[str, float]]
    judges: Mapping[str, AnswerModel]


def calibrate(
    exams: Annotated[list[Path], typer.Argument(help="Question sets, and question files over handbooks.")],
    abstain: Annotated[float, typer.Option(help="Share of the answerable questions to abstain from.")] = 0.08,
    write: Annotated[bool, typer.Option(help="Write the weights into the code.")] = True,
    home: Annotated[Path | None, typer.Option(help="Keep the indexes here, in a folder for each exam.")] = None,
    learned: Annotated[Path | None, typer.Option(help=LEARNED_HELP)] = None,
) -> None:
    """Fit the weights of the extractive system to questions with known answers.

    Held-out questions are skipped. The weights in the code for the regime "trusted" were made with

    python -m tools.training.answer_weights $FOOTNOTE_DATA/retrieval_qa/xquad/xquad.en.json
    evaluation/answers/questions/*_handbook*.json evaluation/answers/questions/*_everyday.json
    --learned $FOOTNOTE_DATA/retrieval_qa/squad2_dev_half.minus-xquad.json
    """
    chosen = [_thin_out(leave_out_articles(read_exam(path), learned)) for path in exams]
    examples = keep_fittable(asyncio.run(collect_examples(chosen, home)))
    if write:
        fitted = fit_regimes(examples, abstain)
        folder = Path(code.__path__[0])
        _update(folder / "scoring.json", fitted.scores)
        _update(folder / "abstention.json", {regime: asdict(judge) for regime, judge in fitted.judges.items()})
    print(json.dumps({"crossvalidated": cross_validate(examples, abstain)}, indent=2))


def _thin_out(exam: Exam) -> Exam:
    return replace(exam, questions=exam.questions[::EVERY]) if exam.removable else exam


async def collect_examples(exams: Sequence[Exam], home: Path | None) -> list[ExamExample]:
    """Ask all exams, with and without the documents that answer. Return the outcomes of questions not held out."""
    made: list[ExamExample] = []
    rerank = open_reranker()
    for exam in exams:
        weight = 1.0 if exam.removable else HANDBOOK_WEIGHT
        async with open_exam(exam, home and home / exam.name) as store:
            outcomes = await ask_exam(exam, store, rerank)
            without = await ask_exam(exam, store, rerank, without_answers=True)
        made += [ExamExample(outcome, bool(outcome.posed.answers), weight) for outcome in outcomes]
        made += [ExamExample(outcome, answerable=False, weight=weight) for outcome in without]
    return [example for example in made if example.outcome.considered.ranked and not example.outcome.posed.held]


def keep_fittable(examples: Sequence[ExamExample]) -> list[ExamExample]:
    """Return the examples of regimes that have enough of them. The other regimes keep their weights."""
    many = Counter(example.regime for example in examples)
    return [example for example in examples if many[example.regime] >= LEAST_EXAMPLES]


def fit_regimes(examples: Sequence[ExamExample], abstain: float) -> FittedWeights:
    """Fit the scoring and the abstention judge, for each regime that has examples."""
    regimes = [regime for regime in REGIMES if any(example.regime == regime for example in examples)]
    parts = {regime: [example for example in examples if example.regime == regime] for regime in regimes}
    scores = {regime: fit_scores(part) for regime, part in parts.items()}
    judges = {
        regime: fit_signs([rescore(example, scores[regime]) for example in part], abstain)
        for regime, part in parts.items()
    }
    return FittedWeights(scores, judges)


def fit_scores(examples: Sequence[ExamExample]) -> dict[str, float]:
    """Fit the weights of the scoring to the questions that have a right answer among their candidates."""
    choices = [choice for example in examples if example.answerable and (choice := _build_choice(example)).right.any()]
    return _named(SCORES, fit_choice(choices))


def rescore(example: ExamExample, weights: Mapping[str, float]) -> ExamExample:
    """Return an example whose candidates are scored, and ordered, with other weights."""
    ranked = example.outcome.considered.ranked
    again = [replace(answer, score=answer_ranking.weigh_features(answer.features, weights)) for answer in ranked]
    considered = replace(
        example.outcome.considered, ranked=tuple(sorted(again, key=lambda answer: answer.score, reverse=True))
    )
    return replace(example, outcome=replace(example.outcome, considered=considered))


def fit_signs(examples: Sequence[ExamExample], abstain: float) -> AnswerModel:
    """Fit a judge to the learnable examples. Set its bias so that it abstains from the share `abstain` of them."""
    rows = _sign_rows(examples)
    true = np.array([example.answerable for example in examples])
    fair = np.array([_is_learnable(example) for example in examples])
    weights = np.array([example.weight for example in examples])
    fitted = fit_judge(rows[fair], true[fair], weights[fair])
    known = true & fair
    line = float(np.quantile(rows[known] @ fitted[1:], abstain, weights=weights[known], method="inverted_cdf"))
    return AnswerModel(bias=round(-line, 4), weights=_named(SIGNS, fitted[1:]))


def cross_validate(examples: Sequence[ExamExample], abstain: float) -> dict[str, dict[str, float]]:
    """Cross-validate over groups of questions, and return shares for each exam.

    For answerable questions, these are the shares with the right sentence first, or among the first three candidates.
    The others are the shares of abstentions from answerable and from unanswerable questions.
    """
    place = assign_folds([example.outcome.posed.group for example in examples], EXAM_FOLDS)
    tallies: dict[str, list[tuple[str, float]]] = {}
    for fold in range(EXAM_FOLDS):
        fitted = fit_regimes([example for example, at in zip(examples, place, strict=True) if at != fold], abstain)
        for example in (example for example, at in zip(examples, place, strict=True) if at == fold):
            again = rescore(example, fitted.scores[example.regime])
            tallies.setdefault(example.exam, []).extend(_measure_example(again, fitted.judges[example.regime]))
    return {name: _means(pairs) for name, pairs in sorted(tallies.items())}


def _measure_example(example: ExamExample, judge: AnswerModel) -> list[tuple[str, float]]:
    seen = example.outcome.considered
    abstained = float(
        predict_probability(extract_answer_features(seen.question, seen.hits, seen.ranked), judge) < ANSWER_THRESHOLD
    )
    if not example.answerable:
        return [("unanswerable caught", abstained)]
    right = _build_choice(example).right
    return [
        ("right first", float(right[:1].any())),
        ("right in three", float(right[:3].any())),
        ("falsely abstained", abstained),
    ]


def _build_choice(example: ExamExample) -> CandidateChoice:
    """Return an example's candidates in the order of their scores."""
    ranked = example.outcome.considered.ranked
    right = [
        example.outcome.posed.answered_by(CitedSentence(answer.candidate.text, (answer.candidate.evidence,)))
        for answer in ranked
    ]
    features = np.array([astuple(answer.features) for answer in ranked]).reshape(-1, len(SCORES))
    return CandidateChoice(features, np.array(right, bool), example.weight)


def _is_learnable(example: ExamExample) -> bool:
    """Return whether the judge can learn from an example: an answerable question needs its answer in the top three."""
    return not example.answerable or bool(_build_choice(example).right[:3].any())


def _sign_rows(examples: Sequence[ExamExample]) -> Floats:
    thoughts = [example.outcome.considered for example in examples]
    return np.array(
        [astuple(extract_answer_features(thought.question, thought.hits, thought.ranked)) for thought in thoughts]
    )


def _means(pairs: Sequence[tuple[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for name, _ in pairs)
    return {name: round(float(np.mean([value for key, value in pairs if key == name])), 4) for name in names}


def _named(names: Sequence[str], values: Floats) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip(names, values, strict=True)}


def _update(path: Path, content: Mapping[str, Any]) -> None:
    """Write the fitted weights into the code. A regime without examples keeps its weights."""
    known = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(known | content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(calibrate)
