"""`footnote evaluate speed turn`: a turn against a simulated server, system beside system."""

import asyncio
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from evaluation.speed.model.settings import Pace, Simulated
from evaluation.speed.turn import corpus
from evaluation.speed.turn.figures import IN_ROUNDS, Runs, figures
from evaluation.speed.turn.measuring import Bench, Turned, bench, elsewhere, plain_call, turned
from evaluation.speed.turn.path import critical_path
from evaluation.speed.turn.picture import Panel, draw
from evaluation.speed.turn.table import parts, stages, table
from evaluation.speed.turn.timeline import bars, drawn

_SYSTEMS = ("wikichat", "wikichat-fast")


def turn(
    system: Annotated[list[str] | None, typer.Option(help="Which systems; all that ask a model if none.")] = None,
    count: Annotated[int, typer.Option("--turns", min=2, help="Of each, with another question each.")] = 5,
    first_token: Annotated[float, typer.Option(min=0, help="Seconds to a reply's first token.")] = 0.4,
    out: Annotated[float, typer.Option(min=1, help="Tokens a second of a reply.")] = 60.0,
    prompt: Annotated[float, typer.Option("--in", min=1, help="Tokens a second of a prompt.")] = 4_000.0,
    search: Annotated[float, typer.Option(min=0, help="Seconds that a search takes at least.")] = 0.05,
    cache: Annotated[
        bool, typer.Option("--cache", help="Let the server keep prompts, and read them for free.")
    ] = False,
    picture: Annotated[Path | None, typer.Option(help="Draw the timelines as a PNG file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Time single turns against a simulated server, and say what their end waited for.

    Prompts are the real ones over the example handbook; replies have set lengths. Times are told as ratios to the end
    of one plain call (200 tokens in, 120 out), and once by the pace of server and index alone, which no other load on
    this machine can change. The exit status is 1 if a mark is missed; marks hold for the default pace alone.

    Example: footnote evaluate speed turn --system wikichat --turns 5 --picture turn.png
    """
    pace = Pace(first_token=first_token, out=out, prompt=prompt, cache=cache)
    before = os.getloadavg()[0]
    runs = asyncio.run(_measure(system or [], count, pace, search))
    found = [figures(one) for one in runs]
    if pace != Pace():
        found = [one | {"marks": {}} for one in found]  # they are set for one pace
    if picture:
        draw([_panel(one) for one in runs], runs[0].plain, picture)
    if as_json:
        told = {"schema": 1, "pace": asdict(pace), "load": before, "systems": [_plain(one) for one in found]}
        print(json.dumps(_finite(told), allow_nan=False))
    else:
        print(_text(runs, found))
        print(f"\nload of this machine: {before:.1f} before, {os.getloadavg()[0]:.1f} after, of {os.cpu_count()} cores")
    if not all(held for one in found for held in one["marks"].values()):
        raise typer.Exit(1)


async def _measure(systems: Sequence[str], count: int, pace: Pace, search: float) -> list[Runs]:
    asked = corpus.questions()[: count + 1]
    async with (
        bench(Simulated(pace), search, corpus.full_passages()) as on,
        elsewhere(on, Simulated(IN_ROUNDS), 0.0) as rounds,
    ):
        await plain_call(on)
        plain = median([await plain_call(on) for _ in range(3)])
        names = systems or [name for name in _SYSTEMS if name in on.app.systems]
        return [
            Runs(name, await _each(on, name, asked), await _each(rounds, name, asked[:3]), pace, search, plain)
            for name in names
        ]


async def _each(on: Bench, system: str, asked: Sequence[str]) -> list[Turned]:
    """Run a turn for each question; the first only opens what is opened late."""
    return [await turned(on, system, question) for question in asked][1:]


def _text(runs: Sequence[Runs], found: Sequence[dict[str, Any]]) -> str:
    blocks = [table(found), *(stages(one) for one in found), *(parts(one) for one in found)]
    return "\n\n".join((*blocks, *(_timeline(one) for one in runs)))


def _timeline(runs: Runs) -> str:
    panel = _panel(runs)
    heading = f"{runs.system}: what the end waited for (#), and what ran beside it (-)"
    return f"{heading}\n{drawn(panel.lines, panel.moments, panel.moments[-1][1])}"


def _panel(runs: Runs) -> Panel:
    """Return the turn that took the median time, as it is drawn."""
    chosen = sorted(runs.turns, key=lambda one: one.seconds)[len(runs.turns) // 2]
    path = critical_path(chosen.steps, chosen.last, chosen.began, chosen.ended)
    moments = [("first sentence", chosen.first_seconds)] if chosen.said else []
    return Panel(runs.system, bars(chosen.steps, path, chosen.began), (*moments, ("end", chosen.seconds)))


def _plain(one: dict[str, Any]) -> dict[str, Any]:
    return {**one, "stages": {name: asdict(sent) for name, sent in one["stages"].items()}}


def _finite(value: Any) -> Any:
    """Return the same without numbers that JSON does not have."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
