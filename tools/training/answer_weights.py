"""Fit the weights of the extractive system's scoring and abstention, and write them into the code.

For each regime, two regressions are fitted: which candidate answers the question, and whether the best candidate does.
The result is always the same for the same questions.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

import pipeline.extraction as code
from evaluation.answers.answer_scores import ExamOutcome, ask_exam, open_exam
from evaluation.answers.question_sets import Exam, read_exam
from evaluation.claims.claim_metrics import assign_folds
from evaluation.workbench import open_reranker
from pipeline.extraction.answer_ranking import (
    ANSWER_THRESHOLD,
    TRUSTED,
    RegimeWeights,
    ScoredCandidate,
    load_weights,
    weigh_candidates,
)
from pipeline.kit import no_reranking
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


FOLDS = 2  # the weights that are chosen on one half of the questions are measured on the other
EVERY = 4  # only every fourth question of a set is asked, because sets have many
LEAST_EXAMPLES = 100
"""A regime with fewer examples, such as a handbook's questions in another language, is not fitted."""
_BY_WORDS = ("terms", "passage_terms", "terms_before", "pairs", "offers")
SCORED: Mapping[str, Sequence[str]] = {
    "read": ("sentence", "passage", "offers", "opening", "first"),
    "trusted": ("sentence", "cosine", *_BY_WORDS, "opening", "first"),
    "foreign": ("sentence", "cosine", *_BY_WORDS),
    "lexical": ("sentence", "cosine", *_BY_WORDS),
}
"""The features that score candidates, by regime. On unseen questions, further ones added nothing."""
JUDGED: Mapping[str, Sequence[str]] = {
    "read": ("sentence", "passage", "personal"),
    "trusted": ("sentence", "cosine", "passage_terms", "pairs", "offers", "specifics"),
    "foreign": ("cosine", "passage_terms", "pairs", "specifics"),
    "lexical": ("passage_terms", "pairs", "offers", "specifics"),
}
"""The features that predict whether a candidate answers, by regime."""


@dataclass(frozen=True)
class ExamExample:
    """The outcome of a question, and whether the documents answer it."""

    outcome: ExamOutcome
    answerable: bool
    reranked: bool = False

    @property
    def regime(self) -> str:
        """The regime whose weights this example fits."""
        if self.outcome.considered.question.trust < TRUSTED:
            return "foreign" if self.outcome.considered.question.near >= TRUSTED else "lexical"
        return "read" if self.reranked else "trusted"

    @property
    def corpus(self) -> str:
        hits = self.outcome.considered.hits
        return hits[0].document.corpus if hits else ""

    @property
    def ranked(self) -> Sequence[ScoredCandidate]:
        return self.outcome.considered.ranked

    def is_right(self, scored: ScoredCandidate) -> bool:
        """Return whether a candidate answers the question."""
        quote = CitedSentence(scored.candidate.text, scored.candidate.evidence)
        return self.answerable and self.outcome.posed.answered_by(quote)

    def rescore(self, weights: RegimeWeights) -> "ExamExample":
        """Return the example with its candidates scored and ordered by other weights."""
        ranked = weigh_candidates(self.ranked, weights)
        considered = replace(self.outcome.considered, ranked=ranked, chance=ranked[0].chance)
        return replace(self, outcome=replace(self.outcome, considered=considered))


def calibrate(
    exams: Annotated[list[Path], typer.Argument(help="Question sets, and question files over handbooks.")],
    abstain: Annotated[float, typer.Option(help="Share of the answerable questions to abstain from.")] = 0.06,
    write: Annotated[bool, typer.Option(help="Write the weights into the code.")] = True,
    home: Annotated[Path | None, typer.Option(help="Keep the indexes here, in a folder for each exam.")] = None,
) -> None:
    """Fit the weights of the extractive system to questions with known answers, each corpus counting alike.

    The weights in the code were made with

    python -m tools.training.answer_weights $FOOTNOTE_DATA/retrieval_qa/xquad/xquad.??.json
    $FOOTNOTE_DATA/retrieval_qa/squad2_dev_half.minus-xquad.json evaluation/answers/questions/*_handbook.json
    evaluation/answers/questions/*_plain.json evaluation/answers/questions/*_everyday.json
    """
    chosen = [_thin_out(read_exam(path)) for path in exams]
    examples = keep_fittable(asyncio.run(collect_examples(chosen, home)))
    if write:
        fitted = {**load_weights(), **fit_regimes(examples, abstain)}
        document = {regime: asdict(weights) for regime, weights in fitted.items()}
        path = Path(code.__path__[0]) / "answer_weights.json"
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({"crossvalidated": cross_validate(examples, abstain)}, indent=2))


def _thin_out(exam: Exam) -> Exam:
    return replace(exam, questions=exam.questions[::EVERY]) if exam.removable else exam


async def collect_examples(exams: Sequence[Exam], home: Path | None) -> list[ExamExample]:
    """Ask all exams, with and without the cross-encoder, sets also with the answering documents hidden."""
    made: list[ExamExample] = []
    reranker = open_reranker()
    for exam in exams:
        async with open_exam(exam, home and home / exam.corpus) as store:
            for rerank in (reranker, no_reranking):
                for hidden in (False, True) if exam.removable else (False,):
                    outcomes = await ask_exam(exam, store, rerank, without_answers=hidden)
                    made += [
                        ExamExample(outcome, bool(outcome.posed.answers) and not hidden, rerank is reranker)
                        for outcome in outcomes
                    ]
    return [example for example in made if example.ranked]


def keep_fittable(examples: Sequence[ExamExample]) -> list[ExamExample]:
    """Return the examples of the regimes that have enough; the other regimes keep their weights."""
    many = Counter(example.regime for example in examples)
    return [example for example in examples if many[example.regime] >= LEAST_EXAMPLES]


def fit_regimes(examples: Sequence[ExamExample], abstain: float) -> dict[str, RegimeWeights]:
    """Fit both regressions for each regime with examples."""
    parts = {regime: [example for example in examples if example.regime == regime] for regime in SCORED}
    return {regime: fit_weights(regime, part, abstain) for regime, part in parts.items() if part}


def fit_weights(regime: str, examples: Sequence[ExamExample], abstain: float) -> RegimeWeights:
    """Fit the scoring, and then the judge to the best candidates; it abstains from a share of the answerable ones.

    A question whose answer is not among the three best candidates teaches the judge nothing.
    """
    many = Counter(example.corpus for example in examples)
    choices = [
        CandidateChoice(_rows(example.ranked, SCORED[regime]), right, 1 / many[example.corpus])
        for example in examples
        if (right := np.array([example.is_right(scored) for scored in example.ranked], bool)).any()
    ]
    score = _named(SCORED[regime], fit_choice(choices))
    rescored = [example.rescore(RegimeWeights(score, {}, 0.0)) for example in examples]
    fair = [example for example in rescored if not example.answerable or any(map(example.is_right, example.ranked[:3]))]
    rows = np.vstack([_rows(example.ranked[:1], JUDGED[regime]) for example in fair])
    true = np.array([example.answerable for example in fair])
    weights = np.array([1 / many[example.corpus] for example in fair])
    fitted = fit_judge(rows, true, weights * len(fair) / weights.sum())
    odds = rows[true] @ fitted[1:]
    line = float(np.quantile(odds, abstain, weights=weights[true], method="inverted_cdf"))
    return RegimeWeights(score, _named(JUDGED[regime], fitted[1:]), round(-line, 4))


def cross_validate(examples: Sequence[ExamExample], abstain: float) -> dict[str, dict[str, dict[str, float]]]:
    """Cross-validate over groups of questions, and return shares by regime and corpus.

    The shares are of answerable questions with the right sentence first or among the first three candidates, and of
    abstentions from answerable and from unanswerable questions.
    """
    folds = assign_folds([example.outcome.posed.group for example in examples], FOLDS)
    tallies: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for fold in range(FOLDS):
        fitted = fit_regimes([example for example, at in zip(examples, folds, strict=True) if at != fold], abstain)
        for example in (example for example, at in zip(examples, folds, strict=True) if at == fold):
            corpora = tallies.setdefault(example.regime, {})
            corpora.setdefault(example.corpus, []).extend(_measure_example(example.rescore(fitted[example.regime])))
    return {
        regime: {name: _means(pairs) for name, pairs in sorted(corpora.items())}
        for regime, corpora in sorted(tallies.items())
    }


def _measure_example(example: ExamExample) -> list[tuple[str, float]]:
    abstained = float(example.outcome.considered.chance < ANSWER_THRESHOLD)
    if not example.answerable:
        return [("unanswerable caught", abstained)]
    right = [example.is_right(scored) for scored in example.ranked]
    return [
        ("right first", float(any(right[:1]))),
        ("right in three", float(any(right[:3]))),
        ("falsely abstained", abstained),
    ]


def _rows(ranked: Sequence[ScoredCandidate], names: Sequence[str]) -> Floats:
    return np.array([[getattr(scored.features, name) for name in names] for scored in ranked], float)


def _means(pairs: Sequence[tuple[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for name, _ in pairs)
    return {name: round(float(np.mean([value for key, value in pairs if key == name])), 4) for name in names}


def _named(names: Sequence[str], values: Floats) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip(names, values, strict=True)}


if __name__ == "__main__":
    typer.run(calibrate)
