"""Hand the desk so many questions a second, quoted from a home of many passages, and time each to its whole answer.

The platform is in memory and in this process; the home is that of `question_cost`.
"""

import asyncio
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.access import Asker
from bot.app import App
from bot.desk.turn_policy import open_desk
from bot.settings.tables.settings_tables import CorpusSettings, Settings
from bot.types import Place, PostedMessages, Question
from bot.views.turn_view import View
from bot.wiring import open_app
from evaluation.speed.desk_benchmark import MemoryPlatform
from evaluation.speed.workload import median_or_nan, quantile, watch_event_loop
from tools.benchmarks.question_cost import CORPUS, CostPlan, pose_questions, prepared_home

MOST_SECONDS = 1.5  # from being handed in to the whole answer, at the 95th percentile
PATIENCE = 120.0  # so long the last answers are waited for
WARMING = 10


@dataclass(frozen=True)
class RatePlan:
    rate: float = 40.0
    seconds: float = 60.0
    channels: int = 100

    @property
    def questions(self) -> int:
        return round(self.rate * self.seconds)


@dataclass
class TimingPlatform(MemoryPlatform):
    """A platform in memory that notes when each whole answer stands."""

    at: dict[str, float] = field(default_factory=dict)

    async def show(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        if view.done:
            self.at.setdefault(question.key, time.monotonic())
        return await super().show(question, view, posted)


async def measure_rate(app: App, texts: Sequence[str], plan: RatePlan) -> dict[str, Any]:
    """Hand in the questions at an even pace, each another, and return how soon they were answered."""
    shown = TimingPlatform(expected=len(texts))
    desk = open_desk(app, {shown.name: shown})
    posed = [_build_question(number, text, plan) for number, text in enumerate(texts)]
    async with desk.running(), watch_event_loop() as lags:
        for one in posed[:WARMING]:
            await desk.take(one)
        while len(shown.at) < WARMING:  # noqa: ASYNC110 - the platform tells nobody
            await asyncio.sleep(0.05)
        lags.clear()
        counted, due, used, began = posed[WARMING:], dict[str, float](), time.process_time(), time.monotonic()
        for number, one in enumerate(counted):
            due[one.key] = began + number / plan.rate
            await asyncio.sleep(due[one.key] - time.monotonic())
            await desk.take(one)
        try:
            async with asyncio.timeout(PATIENCE):
                await shown.all_done.wait()
        except TimeoutError:
            pass
        whole = time.monotonic() - began
    took = [shown.at.get(key, began + whole + PATIENCE) - at for key, at in due.items()]
    late = quantile(took, 0.95)
    return {
        "answered": sum(key in shown.at for key in due),
        "answered_a_second": round(len(due) / whole, 1),
        "answered_p50_s": round(median_or_nan(took), 3),
        "answered_p95_s": round(late, 3),
        "answered_max_s": round(max(took), 3),
        "loop_lag_p99_ms": round(quantile(lags, 0.99), 1),
        "processor_ms": round(1000 * (time.process_time() - used) / len(due), 1),
        "holds": {
            f"p95 at most {MOST_SECONDS:g} s": late <= MOST_SECONDS,
            "each answered once": all(shown.done[key] == 1 for key in due),
        },
    }


def _build_question(number: int, text: str, plan: RatePlan) -> Question:
    place = Place("slack", "T1", f"C{number % plan.channels}", str(number))
    asker = Asker("slack", "channel", "T1", place.channel, f"U{number % 50}", shared_with_other_organisations=False)
    key = f"rate/{time.time_ns()}/{number}"
    return Question(key, "ask", text, asker, place, key, datetime.now(UTC), message=str(number))


def rate(
    home: Annotated[Path, typer.Option(help="A folder for the home, as `question_cost` fills and keeps it.")],
    a_second: Annotated[float, typer.Option("--rate", min=0.1, help="Questions a second.")] = RatePlan.rate,
    seconds: Annotated[float, typer.Option(min=1, help="For how long.")] = RatePlan.seconds,
    source: Annotated[Path | None, typer.Option(help="A real dump, to fill a home with pages made of it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Hand in questions at an even pace for a while, and time each from when it was due to its whole answer.

    Times mean something on a machine that does nothing else. The exit status is 1 if a limit does not hold.

    Example: python -m tools.benchmarks.desk_rate --home /tmp/home --rate 40 --seconds 60
    """
    plan, before = RatePlan(a_second, seconds), os.getloadavg()[0]
    if not (home / ".footnote" / "filled").exists() and source is None:
        raise typer.BadParameter("An empty home is filled from --source.")
    texts = pose_questions(CostPlan(), plan.questions + WARMING)
    with prepared_home(home, CostPlan(), source or Path()) as folder:
        measured = asyncio.run(_open_and_measure(folder / ".footnote", texts, plan))
    load = [round(before, 1), round(os.getloadavg()[0], 1)]
    report: dict[str, Any] = {"schema": 1, "plan": asdict(plan), "load_of_machine": load} | measured
    print(json.dumps(report) if as_json else _lines(report))
    if not all(report["holds"].values()):
        raise typer.Exit(1)


async def _open_and_measure(home: Path, texts: Sequence[str], plan: RatePlan) -> dict[str, Any]:
    corpora = tuple(CorpusSettings(name=name, visible_to=("*",)) for name in (CORPUS, "handbook"))
    async with open_app(Settings(home=home, system="extractive", corpus=corpora)) as app:
        return await measure_rate(app, texts, plan)


def _lines(report: dict[str, Any]) -> str:
    heading = "{rate:g} questions a second for {seconds:g} s in {channels} channels, each another, quoted"
    figures = [name for name in report if name not in {"schema", "plan", "holds"}]
    lines = [heading.format(**report["plan"]), *(f"{name.replace('_', ' ')}: {report[name]}" for name in figures)]
    return "\n".join(
        [*lines, *(f"{name}: {'holds' if held else 'DOES NOT HOLD'}" for name, held in report["holds"].items())]
    )


if __name__ == "__main__":
    typer.run(rate)
