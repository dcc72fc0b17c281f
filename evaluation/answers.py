"""`footnote evaluate answers`: how often the extractive system quotes the right sentence, and how well it abstains."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import numpy as np
import typer

from evaluation.asking import Outcome, ask_all, opened
from evaluation.posing import Exam, read_exam
from pipeline.extraction.abstention import ENOUGH

FALSE_ABSTENTIONS = (0.02, 0.05, 0.1, 0.15, 0.2)


@dataclass(frozen=True, slots=True)
class Asked:
    """An exam, and what was made of its questions; and of those again without the documents that answer them."""

    exam: Exam
    outcomes: Sequence[Outcome]
    without: Sequence[Outcome]


def answers(
    exams: Annotated[list[Path], typer.Argument(help="Question sets, and question files over handbooks.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    wrong: Annotated[bool, typer.Option(help="List the questions that go wrong.")] = False,
    home: Annotated[Path | None, typer.Option(help="Keep the indexes here, one folder an exam.")] = None,
) -> None:
    """Measure how often the right sentence is quoted, and how well the system abstains.

    Example: footnote evaluate answers evaluation/questions/example_handbook.json --wrong
    """
    asked = [asyncio.run(_asked(read_exam(path), home)) for path in exams]
    reports = [report(one) for one in asked]
    if as_json:
        print(json.dumps({"schema": 1, "exams": reports}))
        return
    for one, found in zip(asked, reports, strict=True):
        print(_table(found), *(_faults(one.outcomes) if wrong else ()), "", sep="\n")


async def _asked(exam: Exam, home: Path | None) -> Asked:
    async with opened(exam, home and home / exam.name) as store:
        outcomes = await ask_all(exam, store)
        return Asked(exam, outcomes, await ask_all(exam, store, without_answers=True) if exam.removable else ())


def report(asked: Asked) -> dict[str, Any]:
    """Return what a report says of one exam; shares are None where there is nothing to share."""
    known = [outcome for outcome in asked.outcomes if outcome.posed.answers]
    unknown = [*(outcome for outcome in asked.outcomes if not outcome.posed.answers), *asked.without]
    disputed = [outcome for outcome in known if outcome.posed.disagreement]
    return {
        "exam": asked.exam.name,
        "answerable": len(known),
        "unanswerable": len(unknown),
        "if it never abstained": {
            "right in the first sentence": _share([outcome.right_first for outcome in known]),
            "right in the reply": _share([outcome.right for outcome in known]),
            "sentences a reply": round(fmean(len(outcome.sentences) for outcome in known), 2) if known else None,
        },
        "as it is": {
            "right in the reply": _share([outcome.right and _speaks(outcome) for outcome in known]),
            "abstains though answerable": _share([not _speaks(outcome) for outcome in known]),
            "abstains where unanswerable": _share([not _speaks(outcome) for outcome in unknown]),
        },
        "both sides shown, in order": _share(
            [outcome.posed.disagreement_shown(outcome.sentences) for outcome in disputed]
        ),
        "verbatim": _share([outcome.verbatim for outcome in asked.outcomes]),
        "caught at false abstentions of": curve(
            [outcome.considered.chance for outcome in known], [outcome.considered.chance for outcome in unknown]
        ),
    }


def curve(known: Sequence[float], unknown: Sequence[float]) -> dict[str, float]:
    """Return the share of unanswerable questions caught, by the share of answerable ones abstained from with them."""
    if not known or not unknown:
        return {}
    lines = {share: float(np.quantile(known, share)) for share in FALSE_ABSTENTIONS}
    return {f"{share:.2f}": round(fmean(chance < line for chance in unknown), 4) for share, line in lines.items()}


def _speaks(outcome: Outcome) -> bool:
    return outcome.considered.chance >= ENOUGH


def _share(values: Sequence[bool]) -> float | None:
    return round(fmean(values), 4) if values else None


def _table(found: dict[str, Any]) -> str:
    never, real = found["if it never abstained"], found["as it is"]
    lines = [f"**{found['exam']}**: {found['answerable']:,} answerable, {found['unanswerable']:,} unanswerable", ""]
    rows = [
        *((f"{name}, never abstaining", value) for name, value in never.items()),
        *real.items(),
        ("both sides of a disagreement, newer first", found["both sides shown, in order"]),
        ("replies verbatim in what they cite", found["verbatim"]),
        *((f"caught at false abstentions of {name}", value) for name, value in _curve(found)),
    ]
    lines += ["| measure | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows if value is not None)]
    return "\n".join(lines)


def _curve(found: dict[str, Any]) -> list[tuple[str, float]]:
    return list(found["caught at false abstentions of"].items())


def _faults(outcomes: Sequence[Outcome]) -> list[str]:
    return [line for outcome in outcomes if (line := _fault(outcome))]


def _fault(outcome: Outcome) -> str:
    """Return a line about a question that went wrong, else nothing."""
    posed, chance = outcome.posed, outcome.considered.chance
    said = outcome.sentences[0].text if outcome.sentences else ""
    if not posed.answers:
        kind = "answered" if _speaks(outcome) else ""
    elif not outcome.right:
        kind = "wrong" if _speaks(outcome) else "abstained, would be wrong"
    else:
        kind = "" if _speaks(outcome) else "abstained, would be right"
    return f"{kind} ({chance:.2f}): {posed.text} -> {' '.join(said.split())[:120]}" if kind else ""
