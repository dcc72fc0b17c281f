"""How long turns of seven stages take where many are asked at once, and whether limits and memory hold meanwhile.

All but the model is what is shipped: prompts, adapter, retrieval, local check, gate and record. The model is simulated
in a process of its own and takes the same time for every reply.
"""

import asyncio
import gc
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.access import Asker
from bot.answering import answer
from bot.app import App, open_app
from bot.model_settings import ModelValues, StageValues
from bot.settings import LimitSettings, Settings
from bot.turns import Asked
from evaluation.posing import Exam, read_exam
from evaluation.speed.lags import middle, share, watched_loop
from evaluation.speed.model_server import LINES, counted, running
from ingest.refreshing import refresh

QUESTIONS = Path(__file__).parents[1] / "questions" / "example_handbook.json"
_ASKER = Asker(platform="terminal", kind="terminal")


@dataclass(frozen=True)
class Load:
    """How much is asked, of what kind of server, with which limits."""

    turns: int = 200
    """At once."""
    waves: int = 4
    seconds: float = 0.2
    """That the server takes for each reply."""
    concurrency: int = 32
    calls: int = 6
    """Of a turn, in the last wave: fewer than it takes."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What is kept of a turn: its answer would count as memory that grew."""

    how: str
    """Its status, or why it failed."""
    seconds: float
    calls: int
    failed: bool


@dataclass(frozen=True, slots=True)
class Wave:
    """What came of turns that were asked at once."""

    turns: Sequence[Ended]
    seconds: float
    lags: Sequence[float]
    memory_mb: float
    requests: int
    busiest: int

    def summary(self) -> dict[str, Any]:
        """Return the figures that are printed; milliseconds and seconds are rounded."""
        took = [one.seconds for one in self.turns]
        calls = [one.calls for one in self.turns]
        return {
            "turns": len(self.turns),
            "ended": dict(Counter(one.how for one in self.turns)),
            "seconds": round(self.seconds, 1),
            "turn_median_s": round(middle(took), 2),
            "turn_p95_s": round(share(took, 0.95), 2),
            "calls": sum(calls),
            "calls_of_a_turn_at_most": max(calls),
            "requests": self.requests,
            "at_once_at_most": self.busiest,
            "loop_lag_median_ms": round(middle(self.lags), 1),
            "loop_lag_p99_ms": round(share(self.lags, 0.99), 1),
            "loop_lag_max_ms": round(max(self.lags, default=0.0), 1),
            "memory_mb": round(self.memory_mb, 1),
        }


def turns(
    at_once: Annotated[int, typer.Option("--turns", min=1, help="How many are asked at once.")] = Load.turns,
    waves: Annotated[int, typer.Option(min=2, help="How often.")] = Load.waves,
    seconds: Annotated[float, typer.Option(min=0, help="That the model takes for each reply.")] = Load.seconds,
    concurrency: Annotated[int, typer.Option(min=1, help="Calls at once.")] = Load.concurrency,
    calls: Annotated[int, typer.Option(min=1, help="Calls of a turn in one more wave.")] = Load.calls,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Ask many questions at once, wave after wave, of a simulated model; then once more with a smaller budget.

    Printed are the time of turns, how long the event loop keeps others waiting, calls at once, and memory after each
    wave, the first of which opens everything. The exit status is 1 if a limit does not hold.

    Example: footnote evaluate speed turns --turns 50 --waves 3 --seconds 0.5
    """
    load = Load(at_once, waves, seconds, concurrency, calls)
    report = asyncio.run(measure(read_exam(QUESTIONS), load))
    print(json.dumps(report) if as_json else _lines(report))
    if not all(report["holds"].values()):
        raise typer.Exit(1)


async def measure(exam: Exam, load: Load) -> dict[str, Any]:
    """Open a home with an exam's documents, and ask its questions wave after wave."""
    with tempfile.TemporaryDirectory() as home, running(load.seconds) as server:
        async with open_app(_settings(Path(home), server, load)) as app:
            await refresh(exam.source, exam.corpus, app.passages, progress=lambda _: None)
            texts = [posed.text for posed in exam.questions]
            found = [await _wave(app, texts, load.turns, server) for _ in range(load.waves)]
            tight = replace(app, settings=app.settings.model_copy(update={"limits": _limits(load.calls)}))
            short = await _wave(tight, texts, load.turns, server)
    return {
        "schema": 1,
        "load": asdict(load),
        "waves": [wave.summary() for wave in found],
        "short": short.summary(),
        "growth_kb_a_turn": _growth(found, load),
        "holds": _holds(found, short, load),
    }


def _holds(waves: Sequence[Wave], short: Wave, load: Load) -> dict[str, bool]:
    """Say which limits held, by the server's count: calls at once and of a turn, and that turns counted them right."""
    return {
        "concurrency": max(wave.busiest for wave in (*waves, short)) <= load.concurrency,
        "budget": max(one.calls for one in short.turns) <= load.calls
        and short.requests <= load.calls * load.turns,
        "count": all(sum(one.calls for one in wave.turns) == wave.requests for wave in waves),
        "no failure": not any(one.failed for wave in waves for one in wave.turns),
    }  # fmt: skip


def _growth(waves: Sequence[Wave], load: Load) -> float:
    """Return by how many kilobytes a turn memory grew in the later half of the waves, once caches are full."""
    middle_wave = len(waves) // 2 - 1
    grown = waves[-1].memory_mb - waves[middle_wave].memory_mb
    return round(grown * 1024 / (load.turns * (len(waves) - 1 - middle_wave)), 2)


async def _wave(app: App, texts: Sequence[str], count: int, server: str) -> Wave:
    """Ask so many questions at once, each of the exam's in turn."""
    before, started = await asyncio.to_thread(counted, server), time.monotonic()
    asked = [Asked(texts[place % len(texts)], _ASKER, system="wikichat") for place in range(count)]
    async with watched_loop() as lags:
        ended = await asyncio.gather(*(_ended(app, one) for one in asked))
    seconds, after = time.monotonic() - started, await asyncio.to_thread(counted, server)
    gc.collect()
    return Wave(ended, seconds, lags, _memory_mb(), after.requests - before.requests, after.busiest)


async def _ended(app: App, asked: Asked) -> Ended:
    done = await answer(app, asked, lambda _: None)
    how = done.failure.kind if done.failure else str(done.answer.status)
    return Ended(how, done.seconds, done.usage.llm_calls, failed=bool(done.failure))


def _settings(home: Path, server: str, load: Load) -> Settings:
    model = ModelValues(
        name="draft",
        base_url=server,
        stages={name: StageValues(name=name) for name in LINES},
        structured="text",
        max_concurrency=load.concurrency,
        retries=0,
    )
    return Settings(home=home, model=model, limits=_limits())


def _limits(calls: int = LimitSettings().calls) -> LimitSettings:
    """Return a turn's limits, its time long enough to wait for all others."""
    return LimitSettings(seconds=3_600, calls=calls)


def _memory_mb() -> float:
    """Return how much of this process is in memory, by Linux's own account."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def _lines(report: dict[str, Any]) -> str:
    rows = [*((str(place), wave) for place, wave in enumerate(report["waves"], 1)), ("short", report["short"])]
    columns = [name for name in rows[0][1] if name != "ended"]
    lines = [
        "{turns} turns at once; a reply takes {seconds} s; {concurrency} calls at once at most, and {calls} of a turn "
        "in the short wave".format(**report["load"]),
        "",
        f"| wave | {' | '.join(name.replace('_', ' ') for name in columns)} | ended |",
        "|" + "---|" * (len(columns) + 2),
        *(f"| {name} | {' | '.join(str(wave[key]) for key in columns)} | {_counts(wave)} |" for name, wave in rows),
        "",
        f"memory grew by {report['growth_kb_a_turn']} KB a turn in the later half of the waves",
        "; ".join(f"{name}: {'holds' if held else 'DOES NOT HOLD'}" for name, held in report["holds"].items()),
    ]
    return "\n".join(lines)


def _counts(wave: dict[str, Any]) -> str:
    return ", ".join(f"{count} {name}" for name, count in wave["ended"].items())
