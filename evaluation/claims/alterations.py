"""`footnote evaluate alterations`: how many altered sentences a verifier catches, and how many harmless ones it keeps.

A verifier that only scores decides here by the threshold at which it loses 2% of what should be kept.
"""

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, Any

import numpy as np
import typer

from evaluation.claims.altering import Altered, altered, chosen, true_sentences
from evaluation.claims.changes.neighbours import NEIGHBOURS
from evaluation.claims.judging import Outcome, judge_all
from evaluation.claims.measures import Scored, threshold_losing
from evaluation.claims.types import LabelledClaim
from evaluation.claims.verifying import VERIFIERS, opener
from evaluation.errors import EvaluationError
from ingest.sources.dumps.wikipedia import WikipediaDump
from ingest.sources.folder import Folder
from storage.types import Verdict

LOST = 0.02


@dataclass(frozen=True, slots=True)
class Tried:
    """A sentence that was changed, and whether the verifier accepted it."""

    altered: Altered
    outcome: Outcome
    accepted: bool

    @property
    def right(self) -> bool:
        """Whether it was kept though changed harmlessly, or caught though it read like a true one."""
        return self.accepted == self.altered.true


def alterations(
    dump: Annotated[Path, typer.Option(help="Where true sentences come from: a dump of a wiki, or a folder.")],
    count: Annotated[int, typer.Option(min=1, help="How many true sentences.")] = 500,
    seed: Annotated[int, typer.Option(help="Chooses the sentences and what is changed in them.")] = 7,
    verifier: Annotated[str, typer.Option(help=f"Whom to measure: {', '.join(VERIFIERS)}.")] = "local",
    examples: Annotated[int, typer.Option(min=0, help="Show so many mistakes of each kind.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure how many altered sentences are caught, by kind, and how many true and harmlessly changed ones are kept.

    Each sentence is held against its own passage. That an altered one is not true is made sure of: the new number,
    name, date or unit does not stand in the passage. Rows "of the same passage" are the harder half: there the new
    value stands in another sentence of the passage, which says it of something else.

    Example: footnote evaluate alterations --dump enwiki-2016-shortened.xml.bz2 --examples 3
    """
    open_verifier = opener(verifier)
    rng = Random(seed)
    sentences = chosen(list(true_sentences(Folder(dump) if dump.is_dir() else WikipediaDump(dump))), count, rng)
    if not sentences:
        raise EvaluationError(f"{dump} holds no sentence that could be altered.", hint="Name a dump with articles.")
    made = list(altered(sentences, rng))
    claims = [as_claim(each, number) for number, each in enumerate(made)]
    outcomes = asyncio.run(judge_all(claims, open_verifier(claims)))
    tried = decided(made, outcomes)
    if as_json:
        print(json.dumps({"schema": 1, "verifier": verifier, **report(tried), "mistakes": mistakes(tried, examples)}))
        return
    print(table(verifier, report(tried)), *_lines(mistakes(tried, examples)), sep="\n")


def as_claim(each: Altered, number: int) -> LabelledClaim:
    """Return a changed sentence as a claim with its passage for evidence."""
    label = Verdict.SUPPORTS if each.true else Verdict.NOT_ENOUGH_INFO
    return LabelledClaim(str(number), each.kind, each.change.text, (each.origin.passage,), label, each.origin.text)


def decided(made: Sequence[Altered], outcomes: Sequence[Outcome]) -> list[Tried]:
    """Return what was accepted: by the verifier's own verdicts, or by a threshold where it gives none."""
    scores = np.array([outcome.judged.score for outcome in outcomes], dtype=np.float64)
    threshold = threshold_losing([Scored(scores, np.array([each.true for each in made], dtype=bool))], LOST)
    return [
        Tried(
            each,
            outcome,
            accepted=outcome.judged.score >= threshold
            if outcome.judged.verdict is None
            else outcome.judged.verdict is Verdict.SUPPORTS,
        )
        for each, outcome in zip(made, outcomes, strict=True)
    ]


def report(tried: Sequence[Tried]) -> dict[str, Any]:
    """Return counts and shares by kind: of altered sentences those caught, of the others those kept.

    Those altered with what their own passage says elsewhere, the harder half, are counted apart: `caught_nearby`.
    """
    taken = [each.outcome.milliseconds for each in tried]
    return {
        "sentences": len({each.altered.origin for each in tried}),
        "caught": _shares(each for each in tried if not each.altered.true and each.altered.kind not in NEIGHBOURS),
        "caught_nearby": _shares(each for each in tried if each.altered.kind in NEIGHBOURS),
        "kept": _shares(each for each in tried if each.altered.true),
        "milliseconds": {name: round(float(np.quantile(taken, at)), 3) for name, at in (("p50", 0.5), ("p95", 0.95))},
    }


def mistakes(tried: Sequence[Tried], most: int) -> dict[str, list[dict[str, Any]]]:
    """Return up to `most` mistakes of each kind, in order of appearance, with the verifier's reasons."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in tried:
        listed = found.setdefault(each.altered.kind, [])
        if not each.right and len(listed) < most:
            listed.append(
                {
                    "sentence": each.altered.change.text,
                    "old": each.altered.change.old,
                    "new": each.altered.change.new,
                    "passage": each.altered.origin.passage,
                    "score": round(each.outcome.judged.score, 4),
                    "reasons": list(each.outcome.judged.reasons),
                }
            )
    return {kind: listed for kind, listed in found.items() if listed}


def table(verifier: str, found: dict[str, Any]) -> str:
    """Return a report as a table in Markdown."""
    taken = found["milliseconds"]
    lines = [
        f"**{verifier}** over {found['sentences']:,} true sentences",
        "",
        f"A claim takes {taken['p50']:.2f} ms on one core, {taken['p95']:.2f} at p95.",
        "",
        "| changed | sentences | caught | kept |",
        "|---|---|---|---|",
        *(
            f"| {kind} | {at['count']:,} | {at['share']:.3f} | |"
            for half in ("caught", "caught_nearby")
            for kind, at in found[half].items()
        ),
        *(f"| {kind} | {at['count']:,} | | {at['share']:.3f} |" for kind, at in found["kept"].items()),
    ]
    return "\n".join(lines)


def _shares(tried: Iterable[Tried]) -> dict[str, dict[str, Any]]:
    by_kind: dict[str, list[bool]] = {}
    for each in tried:
        by_kind.setdefault(each.altered.kind, []).append(each.right)
    every = [right for several in by_kind.values() for right in several]
    return {
        kind: {"count": len(right), "share": round(sum(right) / len(right), 4)}
        for kind, right in (*by_kind.items(), *([("all of these", every)] if every else []))
    }


def _lines(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    lines = []
    for kind, listed in found.items():
        lines += ["", f"mistaken where {kind}:"]
        for each in listed:
            lines += [f"- {each['sentence']} ({each['old']!r} -> {each['new']!r}, scored {each['score']:.3f})"]
            lines += [f"  because {reason}" for reason in each["reasons"]]
    return lines
