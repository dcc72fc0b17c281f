"""`footnote evaluate calibrate`: fits what the extractive system scores and abstains by, and writes it into the code.

Two regressions in a row: which candidate answers (`scoring.json`), then whether the best one does (`abstention.json`);
each once for the questions for which cosines are trusted and once for the others. Questions with known answers are
asked as they are and, where that leaves nothing, with the documents that answer them left out. The point of operation
is a share of the answerable questions of such sets that may be abstained from. All is deterministic: the same files
give the same weights.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import pipeline.extraction as code
from evaluation.asking import Outcome, ask_all, opened
from evaluation.fitting import Choice, Floats, fit_choice, fit_judge, folds
from evaluation.posing import read_exam
from pipeline.extraction import scoring
from pipeline.extraction.abstention import ENOUGH, Judge, Signs, probability, signs
from pipeline.extraction.scoring import Features
from pipeline.types import CitedSentence

FOLDS = 8
HANDBOOKS_COUNT = 3.0
"""What a question over a handbook weighs beside one of a set: they are fewer, and less like their pages."""
REGIMES = ("trusted", "lexical")
SCORES = [field.name for field in fields(Features)]
SIGNS = [field.name for field in fields(Signs)]


@dataclass(frozen=True)
class Example:
    """A question as it was thought through, and whether the documents answer it."""

    outcome: Outcome
    answerable: bool
    weight: float
    main: bool
    """Whether its exam sets the point of operation."""

    @property
    def regime(self) -> str:
        """Which weights it is for."""
        return self.outcome.considered.question.regime

    @property
    def exam(self) -> str:
        """Which exam it is of."""
        hits = self.outcome.considered.hits
        return hits[0].document.corpus if hits else ""


@dataclass(frozen=True)
class Fitted:
    """The weights and the judge of each regime."""

    scores: Mapping[str, Mapping[str, float]]
    judges: Mapping[str, Judge]


def calibrate(
    exams: Annotated[list[Path], typer.Argument(help="Question sets, and question files over handbooks.")],
    abstain: Annotated[float, typer.Option(help="Share of a set's answerable questions to abstain from.")] = 0.1,
    write: Annotated[bool, typer.Option(help="Write the weights into the code.")] = True,
    home: Annotated[Path | None, typer.Option(help="Keep the indexes here, one folder an exam.")] = None,
) -> None:
    """Fit the weights of the extractive system to questions with known answers.

    Example: footnote evaluate calibrate data/xquad.*.json evaluation/questions/example_handbook.json
    """
    examples = asyncio.run(gathered(exams, home))
    print(json.dumps({"crossvalidated": crossvalidated(examples, abstain)}, indent=2))
    if write:
        fitted = fit(examples, abstain)
        folder = Path(code.__path__[0])
        _write(folder / "scoring.json", fitted.scores)
        _write(folder / "abstention.json", {regime: asdict(judge) for regime, judge in fitted.judges.items()})


async def gathered(exams: Sequence[Path], home: Path | None) -> list[Example]:
    """Ask all exams and keep what was thought."""
    made: list[Example] = []
    for exam in map(read_exam, exams):
        weight = 1.0 if exam.removable else HANDBOOKS_COUNT
        async with opened(exam, home and home / exam.name) as store:
            asked = await ask_all(exam, store)
            without = await ask_all(exam, store, without_answers=True) if exam.removable else []
        made += [Example(outcome, bool(outcome.posed.answers), weight, exam.removable) for outcome in asked]
        made += [Example(outcome, answerable=False, weight=weight, main=exam.removable) for outcome in without]
    return [example for example in made if example.outcome.considered.ranked]


def fit(examples: Sequence[Example], abstain: float) -> Fitted:
    """Fit both regressions for each regime that there are examples of."""
    regimes = [regime for regime in REGIMES if any(example.regime == regime for example in examples)]
    parts = {regime: [example for example in examples if example.regime == regime] for regime in regimes}
    scores = {regime: fit_scores(part) for regime, part in parts.items()}
    judges = {
        regime: fit_signs([rescored(example, scores[regime]) for example in part], abstain)
        for regime, part in parts.items()
    }
    return Fitted(scores, judges)


def fit_scores(examples: Sequence[Example]) -> dict[str, float]:
    """Fit the weights of scoring to the questions whose answer is among the candidates."""
    choices = [choice for example in examples if example.answerable and (choice := _choice(example)).right.any()]
    return _named(SCORES, fit_choice(choices))


def rescored(example: Example, weights: Mapping[str, float]) -> Example:
    """Return an example with its candidates scored and ordered by other weights."""
    found = example.outcome.considered.ranked
    again = [replace(one, score=scoring.score(one.features, weights)) for one in found]
    considered = replace(
        example.outcome.considered, ranked=tuple(sorted(again, key=lambda one: one.score, reverse=True))
    )
    return replace(example, outcome=replace(example.outcome, considered=considered))


def fit_signs(examples: Sequence[Example], abstain: float) -> Judge:
    """Fit a judge to what can be told by its signs, and shift it so that 0.5 abstains from that share."""
    rows = _signs(examples)
    true = np.array([example.answerable for example in examples])
    fair = np.array([_fair(example) for example in examples])
    weights = np.array([example.weight for example in examples])
    found = fit_judge(rows[fair], true[fair], weights[fair])
    main = np.array([example.main for example in examples]) & true
    line = float(np.quantile(rows[main] @ found[1:], abstain))
    return Judge(bias=round(-line, 4), weights=_named(SIGNS, found[1:]))


def crossvalidated(examples: Sequence[Example], abstain: float) -> dict[str, dict[str, float]]:
    """Fit on all groups but some and measure on those, in turn; by exam.

    Returns shares: of answerable questions the right sentence first and among the first three candidates, and
    abstained from; and of unanswerable ones abstained from.
    """
    place = folds([example.outcome.posed.group for example in examples], FOLDS)
    tallies: dict[str, list[tuple[str, float]]] = {}
    for fold in range(FOLDS):
        fitted = fit([example for example, at in zip(examples, place, strict=True) if at != fold], abstain)
        for example in (one for one, at in zip(examples, place, strict=True) if at == fold):
            again = rescored(example, fitted.scores[example.regime])
            tallies.setdefault(example.exam, []).extend(_measured(again, fitted.judges[example.regime]))
    return {name: _means(pairs) for name, pairs in sorted(tallies.items())}


def _measured(example: Example, judge: Judge) -> list[tuple[str, float]]:
    seen = example.outcome.considered
    abstained = float(probability(signs(seen.question, seen.hits, seen.ranked), judge) < ENOUGH)
    if not example.answerable:
        return [("unanswerable caught", abstained)]
    right = _choice(example).right
    return [
        ("right first", float(right[:1].any())),
        ("right in three", float(right[:3].any())),
        ("falsely abstained", abstained),
    ]


def _choice(example: Example) -> Choice:
    """Return an example's candidates in the order of their scores."""
    ranked = example.outcome.considered.ranked
    right = [
        example.outcome.posed.answered_by(CitedSentence(one.candidate.text, (one.candidate.evidence,)))
        for one in ranked
    ]
    features = np.array([astuple(one.features) for one in ranked]).reshape(-1, len(SCORES))
    return Choice(features, np.array(right, bool), example.weight)


def _fair(example: Example) -> bool:
    """Return whether the judge can learn from an example: of an answerable one, the answer must be among the best."""
    return not example.answerable or bool(_choice(example).right[:3].any())


def _signs(examples: Sequence[Example]) -> Floats:
    thoughts = [example.outcome.considered for example in examples]
    return np.array([astuple(signs(one.question, one.hits, one.ranked)) for one in thoughts])


def _means(pairs: Sequence[tuple[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for name, _ in pairs)
    return {name: round(float(np.mean([value for key, value in pairs if key == name])), 4) for name in names}


def _named(names: Sequence[str], values: Floats) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip(names, values, strict=True)}


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
