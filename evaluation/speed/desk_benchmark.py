"""Measure how fast the desk accepts questions while many are in progress; check that each is answered once, in order.

Platform and model are simulated in memory; everything else is the real code. An ingest may run at the same time.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.access import Asker
from bot.app import App
from bot.desk.desk import Desk
from bot.desk.turn_policy import open_desk
from bot.settings.tables.settings_tables import CorpusSettings, DeskSettings, LimitSettings
from bot.types import ConversationMessage, DeliveryCapabilities, Place, PostedMessages, ProgressSign, Question
from bot.views.turn_view import View
from evaluation.answers.question_sets import Exam, read_exam
from evaluation.reports.printing import AsJson, fail_unless, print_report, render_holds
from evaluation.speed.workload import append_milliseconds, describe_times, quantile, watch_event_loop
from evaluation.workbench import EXAMPLE_QUESTIONS, open_corpus, refresh_quietly
from ingest.sources.folder import FolderSource
from pipeline.kit import Kit, System
from pipeline.systems import extractive
from pipeline.types import Conversation, Status

TAKE_MS = 50.0  # limit of the time to accept a question, at the 99th percentile
LAG_MS = 200.0  # limit of the event loop's lag, at the 99th percentile


@dataclass(frozen=True)
class DeskLoad:
    in_flight: int = 100  # the size of the first burst, and how many are answered at once
    questions: int = 300
    channels: int = 10
    seconds: float = 20.0
    pause: float = 0.02


@dataclass
class MemoryPlatform:
    """A platform in memory. It counts the answers to each question."""

    name: str = "slack"
    started: list[tuple[str, int]] = field(default_factory=list)
    """Channel and number of each question, in the order of their first messages."""
    done: Counter[str] = field(default_factory=Counter)  # messages with a whole answer, by question
    all_done: asyncio.Event = field(default_factory=asyncio.Event)
    expected: int = 0

    async def asker(self, question: Question) -> Asker:
        return question.asker

    def ways(self, question: Question) -> DeliveryCapabilities:
        del question
        return DeliveryCapabilities()

    async def show(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        if not posted:
            self.started.append((question.place.channel, int(question.message)))
        self.done[question.key] += view.done
        if self.done.total() >= self.expected:
            self.all_done.set()
        return posted or PostedMessages((question.message,))

    async def show_sign(self, question: Question, view: View) -> ProgressSign:
        del question, view
        return ProgressSign.NONE

    async def find(self, question: Question) -> PostedMessages:
        del question
        return PostedMessages()

    async def remove(self, question: Question, posted: PostedMessages) -> None:
        """Remove nothing."""

    async def tell(self, question: Question, text: str) -> None:
        """Drop the message."""

    async def call(self, place: Place, text: str, people: Sequence[str]) -> PostedMessages:
        del place, text, people
        return PostedMessages()

    async def heard(self, question: Question, most: int) -> tuple[ConversationMessage, ...]:
        del question, most
        return ()

    def connected(self) -> nullcontext[None]:
        return nullcontext()

    @property
    def ready(self) -> str:
        return ""


def desk(
    in_flight: Annotated[int, typer.Option(min=1, help="Number of questions answered at once.")] = DeskLoad.in_flight,
    questions: Annotated[int, typer.Option(min=2, help="Number of questions in all.")] = DeskLoad.questions,
    channels: Annotated[int, typer.Option(min=1, help="Number of channels.")] = DeskLoad.channels,
    seconds: Annotated[float, typer.Option(min=0, help="The model's time for an answer.")] = DeskLoad.seconds,
    ingest: Annotated[Path | None, typer.Option(help="A folder to ingest repeatedly meanwhile.")] = None,
    as_json: AsJson = False,
) -> None:
    """Submit many questions to the desk, and time how long it takes to accept each while others are answered.

    The exit status is 1 if one is not answered, or twice, or out of its channel's order, or if the desk or the event
    loop is too slow: 50 ms to accept a question and 200 ms of lag at the 99th percentile.

    Example: footnote evaluate speed desk --questions 200 --seconds 5 --ingest docs
    """
    load = DeskLoad(in_flight, questions, channels, seconds)
    report = asyncio.run(measure_desk(read_exam(EXAMPLE_QUESTIONS), load, ingest))
    print_report(report, _render(report), as_json=as_json)
    fail_unless(report["holds"].values())


async def measure_desk(exam: Exam, load: DeskLoad, folder: Path | None = None) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "system": "extractive",
        "corpus": (CorpusSettings(name=exam.corpus, visible_to=("*",)),),
        "desk": DeskSettings(at_once=load.in_flight, per_channel=load.in_flight, patience_seconds=3_600),
        "limits": LimitSettings(seconds=3_600),
    }
    async with open_corpus(exam.source, exam.corpus, **settings) as opened:
        slow = replace(extractive.ENTRY, answer=_delay_system(load.seconds))
        # As on the server, an ingest leaves a core for questions.
        app = replace(opened, passages=replace(opened.passages, polite=True), systems={"extractive": slow})
        async with _ingest_meanwhile(app, folder) as passages:
            return await _run_load(app, [posed.text for posed in exam.questions], load, passages)


async def _run_load(app: App, texts: Sequence[str], load: DeskLoad, ingested: Callable[[], int]) -> dict[str, Any]:
    """Submit `in_flight` questions at once, then the others one by one. Return the figures."""
    shown, burst, times = MemoryPlatform(expected=load.questions), list[float](), list[float]()
    opened = open_desk(app, {shown.name: shown})
    posed = [_build_question(number, texts[number % len(texts)], load) for number in range(load.questions)]
    started = time.monotonic()
    async with opened.running(), watch_event_loop() as lags:
        await asyncio.gather(*(_submit(opened, question, burst) for question in posed[: load.in_flight]))
        for question in posed[load.in_flight :]:
            await _submit(opened, question, times)
            await asyncio.sleep(load.pause)
        await shown.all_done.wait()
    return {
        "load": asdict(load),
        "seconds": round(time.monotonic() - started, 1),
        **describe_times("burst", burst, "p50", "max", digits=2),
        **describe_times("take", times, "p50", "p99", "max", digits=2),
        **describe_times("loop_lag", lags, "p50", "p99", "max", digits=2),
        "answered": len(shown.done),
        "ingested_passages": ingested(),
        "holds": {
            "all answered": len(+shown.done) == load.questions,
            "none twice": max(shown.done.values()) == 1,
            "order in a channel": _is_in_order(shown.started),
            f"take p99 below {TAKE_MS:g} ms": quantile(times, 0.99) < TAKE_MS,
            f"loop lag p99 below {LAG_MS:g} ms": quantile(lags, 0.99) < LAG_MS,
        },
    }


async def _submit(opened: Desk, question: Question, times: list[float]) -> None:
    with append_milliseconds(times):
        await opened.take(question)


def _build_question(number: int, text: str, load: DeskLoad) -> Question:
    place = Place("slack", "T1", f"C{number % load.channels}", str(number))
    asker = Asker("slack", "channel", "T1", place.channel, "U1", shared_with_other_organisations=False)
    key = f"{place.channel_id}/{number}"
    return Question(key, "ask", text, asker, place, key, datetime.now(UTC), message=str(number))


def _delay_system(seconds: float) -> System:
    """Return a system that waits for some seconds, and then quotes."""

    async def answer(talk: Conversation, kit: Kit) -> Status:
        await asyncio.sleep(seconds)
        return await extractive.answer(talk, kit)

    return answer


def _is_in_order(started: Sequence[tuple[str, int]]) -> bool:
    """Return whether the questions of each channel were started in the order in which they were submitted."""
    channels = {channel for channel, _ in started}
    numbers = [[number for where, number in started if where == channel] for channel in channels]
    return all(some == sorted(some) for some in numbers)


@asynccontextmanager
async def _ingest_meanwhile(app: App, folder: Path | None) -> AsyncIterator[Callable[[], int]]:
    """Ingest a folder again and again, each time as another corpus. Yield a function that counts the passages."""
    passages: dict[str, int] = {}

    async def ingest(source: FolderSource) -> None:
        while True:
            name = f"beside-{len(passages)}"
            passages[name] = 0
            passages[name] = (await refresh_quietly(source, name, app)).passages_added

    task = asyncio.create_task(ingest(FolderSource(folder))) if folder else None
    try:
        yield lambda: sum(passages.values())
    finally:
        if task:
            task.cancel()
            await asyncio.wait([task])


def _render(report: dict[str, Any]) -> str:
    heading = "{questions} questions in {channels} channels, {in_flight} in flight, {seconds:g} s each"
    figures = [name for name in report if name not in {"load", "holds"}]
    lines = [heading.format(**report["load"]), "", *(f"{name.replace('_', ' ')}: {report[name]}" for name in figures)]
    return "\n".join([*lines, "", *render_holds(report["holds"])])
