"""Measure single turns against a simulated server, system beside system (`footnote evaluate speed turn`).

The example handbook's pages are joined into passages of full length, which is what verification usually reads.
"""

import asyncio
import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from evaluation.corpus_home import EXAMPLE_QUESTIONS, PageSource
from evaluation.question_sets import SetText, build_set_source, read_exam
from evaluation.simulated_model.model_pace import ServerPace, SimulatedModel
from evaluation.speed.turn_figures import IN_ROUNDS, SystemRuns, compute_figures
from evaluation.speed.turn_trace import (
    MeasuredTurn,
    TurnBench,
    measure_turn,
    open_bench,
    open_second_server,
    time_plain_call,
)
from evaluation.speed.turn_view import (
    Timeline,
    build_timeline,
    draw_timelines,
    render_figures,
    render_parts,
    render_stages,
    render_timeline,
)

HANDBOOK = Path(__file__).parents[2] / "examples" / "handbook"
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_NO_PROSE = re.compile(r"^(?:#|\||\s*[-*]\s|\s*\d+\.\s|```|>)")


def load_handbook() -> PageSource:
    """Return the handbook as a source of one long page a folder."""
    return build_set_source(tuple(_folder_pages(HANDBOOK)), "en")


def load_questions() -> tuple[str, ...]:
    return tuple(dict.fromkeys(posed.text for posed in read_exam(EXAMPLE_QUESTIONS).questions))


def _folder_pages(handbook: Path) -> Iterator[SetText]:
    for folder in sorted(handbook.iterdir()):
        paragraphs = [prose for file in sorted(folder.rglob("*.md")) for prose in _page_prose(file.read_text("utf-8"))]
        if paragraphs:
            yield SetText(folder.name, folder.name.capitalize(), " ".join(paragraphs))


def _page_prose(page: str) -> Iterator[str]:
    """Yield a page's paragraphs, each on one line; its headings, lists and tables are left out."""
    for block in re.split(r"\n\s*\n", _FRONT.sub("", page)):
        if not _NO_PROSE.match(block):
            yield " ".join(block.split())


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
    pace = ServerPace(first_token=first_token, out=out, prompt=prompt, cache=cache)
    before = os.getloadavg()[0]
    runs = asyncio.run(_measure_systems(system or [], count, pace, search))
    found = [compute_figures(one) for one in runs]
    if pace != ServerPace():
        found = [one | {"marks": {}} for one in found]  # they are set for one pace
    if picture:
        draw_timelines([_median_timeline(one) for one in runs], runs[0].plain, picture)
    if as_json:
        told = {"schema": 1, "pace": asdict(pace), "load": before, "systems": [_system_document(one) for one in found]}
        print(json.dumps(_drop_infinite(told), allow_nan=False))
    else:
        print(_render_report(runs, found))
        print(f"\nload of this machine: {before:.1f} before, {os.getloadavg()[0]:.1f} after, of {os.cpu_count()} cores")
    if not all(held for one in found for held in one["marks"].values()):
        raise typer.Exit(1)


async def _measure_systems(systems: Sequence[str], count: int, pace: ServerPace, search: float) -> list[SystemRuns]:
    asked = load_questions()[: count + 1]
    async with (
        open_bench(SimulatedModel(pace), search, load_handbook()) as on,
        open_second_server(on, SimulatedModel(IN_ROUNDS), 0.0) as rounds,
    ):
        await time_plain_call(on)
        plain = median([await time_plain_call(on) for _ in range(3)])
        names = systems or [name for name in _SYSTEMS if name in on.app.systems]
        return [await _run_system(name, asked, on, rounds, pace, plain) for name in names]


async def _run_system(
    name: str, asked: Sequence[str], on: TurnBench, rounds: TurnBench, pace: ServerPace, plain: float
) -> SystemRuns:
    turns, in_rounds = await _measure_turns(on, name, asked), await _measure_turns(rounds, name, asked[:3])
    return SystemRuns(name, turns, in_rounds, pace, on.search, plain)


async def _measure_turns(on: TurnBench, system: str, asked: Sequence[str]) -> list[MeasuredTurn]:
    """Run a turn for each question; the first only opens what is opened late."""
    return [await measure_turn(on, system, question) for question in asked][1:]


def _render_report(runs: Sequence[SystemRuns], found: Sequence[dict[str, Any]]) -> str:
    blocks = [render_figures(found), *map(render_stages, found), *map(render_parts, found)]
    return "\n\n".join((*blocks, *(render_timeline(_median_timeline(one)) for one in runs)))


def _median_timeline(runs: SystemRuns) -> Timeline:
    return build_timeline(runs.system, sorted(runs.turns, key=lambda one: one.seconds)[len(runs.turns) // 2])


def _system_document(one: dict[str, Any]) -> dict[str, Any]:
    return {**one, "stages": {name: asdict(sent) for name, sent in one["stages"].items()}}


def _drop_infinite(value: Any) -> Any:
    """Return the same without numbers that JSON does not have."""
    if isinstance(value, dict):
        return {name: _drop_infinite(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_drop_infinite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
