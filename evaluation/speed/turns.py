"""How long turns take where many are asked at once, and whether limits, memory and throughput hold meanwhile.

All but the model is what is shipped: prompts, adapter, retrieval, local check, gate and record. The model is simulated
in a process of its own, at a pace that can be set; its rate of tokens is shared by all turns.
"""

import asyncio
import json
import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.app import open_app
from bot.settings import LimitSettings, Settings
from bot.settings_of.model import ModelValues
from evaluation.posing import Exam, read_exam
from evaluation.speed.model.running import running
from evaluation.speed.model.settings import Pace, Simulated
from evaluation.speed.waves import Wave, wave
from ingest.refreshing import refresh

QUESTIONS = Path(__file__).parents[1] / "questions" / "example_handbook.json"
LEAST_USED = 0.9
"""Of the server's rate, while most turns run."""


@dataclass(frozen=True)
class Load:
    """How much is asked, of what kind of server, with which limits."""

    turns: int = 100
    """At once."""
    waves: int = 3
    system: str = "wikichat"
    first_token: float = 0.4
    out: float = 60.0
    prompt: float = 4_000.0
    rate: float = 1_000.0
    """Tokens a second that the server sends at most, of all replies together."""
    concurrency: int = 64
    calls: int = 6
    """Of a turn, in the last wave: fewer than it takes."""

    @property
    def pace(self) -> Pace:
        """The server's."""
        return Pace(self.first_token, self.out, self.prompt, total_out=self.rate)


def turns(
    system: Annotated[str, typer.Option(help="Which system is asked.")] = Load.system,
    at_once: Annotated[int, typer.Option("--turns", min=1, help="How many are asked at once.")] = Load.turns,
    waves: Annotated[int, typer.Option(min=2, help="How often.")] = Load.waves,
    first_token: Annotated[float, typer.Option(min=0, help="Seconds to a reply's first token.")] = Load.first_token,
    out: Annotated[float, typer.Option(min=1, help="Tokens a second of one reply.")] = Load.out,
    prompt: Annotated[float, typer.Option("--in", min=1, help="Tokens a second of one prompt.")] = Load.prompt,
    rate: Annotated[float, typer.Option(min=0, help="Tokens a second of all replies; 0: no limit.")] = Load.rate,
    concurrency: Annotated[int, typer.Option(min=1, help="Calls at once.")] = Load.concurrency,
    calls: Annotated[int, typer.Option(min=1, help="Calls of a turn in one more wave.")] = Load.calls,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Ask many questions at once, wave after wave, of a simulated model; then once more with a smaller budget.

    Printed are the time of turns, how much of the server's rate of tokens they used, how long the event loop keeps
    others waiting, calls at once, and memory after each wave, the first of which opens everything. The exit status is 1
    if a limit does not hold.

    Example: footnote evaluate speed turns --system wikichat --turns 50 --waves 3 --rate 500
    """
    load = Load(at_once, waves, system, first_token, out, prompt, rate or math.inf, concurrency, calls)
    before = os.getloadavg()[0]
    report = asyncio.run(measure(read_exam(QUESTIONS), load))
    report["load_of_machine"] = [round(before, 1), round(os.getloadavg()[0], 1)]
    print(json.dumps(report) if as_json else _lines(report))
    if not all(report["holds"].values()):
        raise typer.Exit(1)


async def measure(exam: Exam, load: Load) -> dict[str, Any]:
    """Open a home with an exam's documents, and ask its questions wave after wave."""
    with tempfile.TemporaryDirectory() as home, running(Simulated(load.pace)) as server:
        async with open_app(_settings(Path(home), server, load)) as app:
            await refresh(exam.source, exam.corpus, app.passages, progress=lambda _: None)
            texts = [posed.text for posed in exam.questions]
            found = [
                await wave(app, texts, load.turns, system=load.system, server=server, rate=load.rate)
                for _ in range(load.waves)
            ]
            tight = replace(app, settings=app.settings.model_copy(update={"limits": _limits(load.calls)}))
            short = await wave(tight, texts, load.turns, system=load.system, server=server, rate=load.rate)
    return {
        "schema": 1,
        "load": asdict(load) | {"rate": None if math.isinf(load.rate) else load.rate},
        "waves": [one.summary() for one in found],
        "short": short.summary(),
        "growth_kb_a_turn": _growth(found, load),
        "holds": _holds(found, short, load),
    }


def _holds(waves: Sequence[Wave], short: Wave, load: Load) -> dict[str, bool]:
    """Say which limits held, by the server's count: calls at once and of a turn, and that turns counted them right."""
    used = [one.summary()["rate_used_at_its_height"] for one in waves]
    held = {
        "concurrency": max(one.busiest for one in (*waves, short)) <= load.concurrency,
        "budget": max(one.calls for one in short.turns) <= load.calls
        and short.requests <= load.calls * load.turns,
        "count": all(sum(one.calls for one in found.turns) == found.requests for found in waves),
        "no failure": not any(one.failed for found in waves for one in found.turns),
    }  # fmt: skip
    return held if math.isinf(load.rate) else {**held, "rate": all(one and one >= LEAST_USED for one in used)}


def _growth(waves: Sequence[Wave], load: Load) -> float:
    """Return by how many kilobytes a turn memory grew in the later half of the waves, once caches are full."""
    middle_wave = len(waves) // 2 - 1
    grown = waves[-1].memory_mb - waves[middle_wave].memory_mb
    return round(grown * 1024 / (load.turns * (len(waves) - 1 - middle_wave)), 2)


def _settings(home: Path, server: str, load: Load) -> Settings:
    model = ModelValues(
        name="simulated",
        base_url=server,
        structured="text",
        max_concurrency=load.concurrency,
        timeout_seconds=3_600,
        first_token_seconds=3_600,
        idle_seconds=3_600,
        retries=0,
    )
    return Settings(home=home, model=model, limits=_limits())


def _limits(calls: int = LimitSettings().calls) -> LimitSettings:
    """Return a turn's limits, its time long enough to wait for all others."""
    return LimitSettings(seconds=3_600, calls=calls)


def _lines(report: dict[str, Any]) -> str:
    rows = [*((str(place), one) for place, one in enumerate(report["waves"], 1)), ("short", report["short"])]
    columns = [name for name in rows[0][1] if name != "ended"]
    lines = [
        "{system}: {turns} turns at once; {first_token} s to a first token, {out:g} tokens/s of a reply, {prompt:g} of "
        "a prompt, {rate} of all replies; {concurrency} calls at once at most, and {calls} of a turn in the short "
        "wave".format(**report["load"]),
        "",
        f"| wave | {' | '.join(name.replace('_', ' ') for name in columns)} | ended |",
        "|" + "---|" * (len(columns) + 2),
        *(f"| {name} | {' | '.join(str(one[key]) for key in columns)} | {_counts(one)} |" for name, one in rows),
        "",
        "load of this machine: {} before, {} after".format(*report["load_of_machine"]),
        f"memory grew by {report['growth_kb_a_turn']} KB a turn in the later half of the waves",
        "; ".join(f"{name}: {'holds' if held else 'DOES NOT HOLD'}" for name, held in report["holds"].items()),
    ]
    return "\n".join(lines)


def _counts(one: dict[str, Any]) -> str:
    return ", ".join(f"{count} {name}" for name, count in one["ended"].items())
