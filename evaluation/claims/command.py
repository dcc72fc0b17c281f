"""`footnote evaluate claims`: how well verifiers tell which claims their evidence supports."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer

from evaluation.claims.judging import judge_all
from evaluation.claims.reading import FORMS, read_all
from evaluation.claims.report import blind, report
from evaluation.claims.tables import examples as shown
from evaluation.claims.tables import tables
from evaluation.claims.types import LabelledClaim, UnreadableClaims
from evaluation.claims.verifying import VERIFIERS, opener

_SEED = 7


def claims(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Files of labelled claims, or folders; else $FOOTNOTE_DATA/claims."),
    ] = None,
    verifier: Annotated[
        list[str] | None, typer.Option(help=f"Whom to measure, of {', '.join(VERIFIERS)}; else all of them.")
    ] = None,
    form: Annotated[
        str, typer.Option(help=f"The files' form, if their first row does not tell it: {', '.join(FORMS)}.")
    ] = "",
    limit: Annotated[int, typer.Option(min=0, help="At most so many claims of each set; 0 for all.")] = 0,
    examples: Annotated[int, typer.Option(min=0, help="Show so many of the worst mistakes of either kind.")] = 0,
    titles: Annotated[bool, typer.Option("--titles", help="Put the page's title above each passage.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure how well verifiers tell which claims their evidence supports.

    Your own claims go into a file of JSON lines, each {"claim": "The office opens at nine.", "evidence": ["a passage",
    "another"], "label": "SUPPORTS"}; the label may be SUPPORTS, REFUTES or NOT ENOUGH INFO, and claims that share a
    "group" are kept together. Read besides are FEVER-symmetric, Fool Me Twice, WiCE, BEGIN, FaithDial's audit,
    Factcheck-GPT and QAGS.

    Example: footnote evaluate claims ours.jsonl --verifier local --examples 5
    """
    found = drawn(read_all(paths or [_default()], form), limit)
    if not found:
        raise UnreadableClaims("There are no labelled claims there.", hint="Name a file that has some.")
    offered = [titled(claim) for claim in found] if titles else found
    measured = [_measured(name, offered, examples) for name in verifier or VERIFIERS]
    if as_json:
        print(json.dumps({"schema": 1, "verifiers": measured}))
        return
    print(tables(measured))
    for each in measured if examples else ():
        print("", shown(each["verifier"], each["examples"]), sep="\n")


def drawn(found: Sequence[LabelledClaim], limit: int) -> Sequence[LabelledClaim]:
    """Return at most `limit` claims of each source, the same ones each time and in their order; all of them at 0."""
    if not limit:
        return found
    rng = Random(_SEED)
    sources = dict.fromkeys(claim.source for claim in found)
    by_source = [[place for place, claim in enumerate(found) if claim.source == source] for source in sources]
    chosen = {place for places in by_source for place in rng.sample(places, min(limit, len(places)))}
    return [claim for place, claim in enumerate(found) if place in chosen]


def titled(claim: LabelledClaim) -> LabelledClaim:
    """Return a claim with the title of its page above each passage, if it is known."""
    if not claim.title:
        return claim
    return replace(claim, evidence=tuple(f"{claim.title}\n\n{passage}" for passage in claim.evidence))


def _measured(name: str, found: Sequence[LabelledClaim], examples: int) -> dict[str, Any]:
    open_verifier = opener(name)
    print(f"{name}: {len(found):,} claims", file=sys.stderr)
    outcomes = asyncio.run(judge_all(found, open_verifier(found)))
    return {**report(name, outcomes), **({"examples": blind(outcomes, examples)} if examples else {})}


def _default() -> Path:
    data = os.environ.get("FOOTNOTE_DATA", "")
    if not data:
        raise UnreadableClaims("No file of labelled claims is named.", hint="Name one, or set FOOTNOTE_DATA.")
    return Path(data) / "claims"
