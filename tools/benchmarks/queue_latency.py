"""Measure how long a question takes to be queued: alone, beside turns in flight, beside an ingest."""

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer

from evaluation.speed.search_benchmark import generate_pages, open_store
from evaluation.speed.workload import generate_texts, median_or_nan, quantile, watch_event_loop
from ingest.refresh.corpus_refresh import refresh_corpus
from storage.database.engine import Database, open_database
from storage.database.queue import Queue
from storage.indexes.embedding import open_embedder
from storage.passages import PassageStore
from storage.record.audit_log import AuditLog
from storage.types import EntryKind, LogEntry, NewQuestion

PAUSE = 0.01
"""Seconds between two questions."""
STEPS = 12
"""Searches and model calls of a turn."""


@dataclass(frozen=True)
class QueueLoad:
    """What goes on beside the questions."""

    turns: int = 0
    ingest: bool = False


LOADS = {
    "alone": QueueLoad(),
    "in_flight": QueueLoad(turns=100),
    "ingesting": QueueLoad(ingest=True),
    "both": QueueLoad(turns=100, ingest=True),
}


def queue(
    questions: Annotated[int, typer.Option(help="How many are put into the queue under each load.", min=1)] = 1_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Time how long a question takes to be kept, alone and beside other writing.

    Example: python -m tools.benchmarks.queue_latency --questions 300
    """
    with tempfile.TemporaryDirectory() as scratch:
        report = asyncio.run(_measure(Path(scratch), questions))
    print(json.dumps(report) if as_json else _lines(report))


async def _measure(home: Path, questions: int) -> dict[str, Any]:
    with ExitStack() as stack:
        database = stack.enter_context(open_database("", home=home))
        store = open_store(home, open_embedder("minilm", {}), database, stack)
        await refresh_corpus(generate_pages(50, 0), "warm", store, progress=lambda _: None)
        return {name: await measure_under(load, name, database, store, questions) for name, load in LOADS.items()}


async def measure_under(
    load: QueueLoad, name: str, database: Database, store: PassageStore, questions: int
) -> dict[str, float]:
    """Put so many questions into the queue while a load goes on, and return the figures; names are unique by `name`."""
    async with (
        _ingesting(store, name) if load.ingest else _do_nothing(),
        _turns(AuditLog(database), load.turns) as ended,
    ):
        started = time.perf_counter()
        async with watch_event_loop() as lags:
            times = await _time_puts(Queue(database), name, questions)
        seconds, written = time.perf_counter() - started, len(ended)
    return {
        "questions": questions,
        "put_p50_ms": round(median_or_nan(times), 2),
        "put_p99_ms": round(quantile(times, 0.99), 2),
        "put_max_ms": round(max(times), 2),
        "loop_lag_p99_ms": round(quantile(lags, 0.99), 2),
        "turns_per_second": round(written / seconds, 1),
    }


async def _time_puts(queue: Queue, name: str, count: int) -> list[float]:
    times: list[float] = []
    body = {"text": next(generate_texts(Random(1), 20)), "task": "ask"}
    for number in range(count):
        place, user = f"slack:T1/C{number % 10}", f"slack:T1/U{number % 50}"
        started = time.perf_counter()
        await queue.put(NewQuestion(f"{name}-{number}", place, f"{place}/{number}", user, f"{number}", body, "secret"))
        times.append((time.perf_counter() - started) * 1000)
        await asyncio.sleep(PAUSE)
    return times


@asynccontextmanager
async def _do_nothing() -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def _ingesting(store: PassageStore, corpus: str) -> AsyncIterator[None]:
    """Ingest pages, as many as it takes, until the context is left."""
    under_way = asyncio.Event()
    source = generate_pages(1_000_000, len(corpus))
    task = asyncio.create_task(refresh_corpus(source, corpus, store, progress=lambda _: under_way.set()))
    await under_way.wait()
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def _turns(log: AuditLog, count: int) -> AsyncIterator[list[str]]:
    """Keep so many turns in flight, one after the other in each place; gives the ids of those that ended."""
    ended: list[str] = []
    tasks = [asyncio.create_task(_record_turns(log, number, ended)) for number in range(count)]
    try:
        yield ended
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def _record_turns(log: AuditLog, place: int, ended: list[str]) -> None:
    random = Random(place)
    text = next(generate_texts(random, 100))
    asker = {"platform": "slack", "workspace": "T1", "channel": f"C{place}", "user": f"U{place}"}
    while True:
        turn = f"{place}-{len(ended)}-{random.random()}"
        await log.append(LogEntry(turn, EntryKind.TURN_OPENED, {"asker": asker, "question": text}))
        await asyncio.sleep(random.random())
        steps = [LogEntry(turn, EntryKind.STEP, {"stage": "draft", "reply": text}) for _ in range(STEPS)]
        body = {"text": text, "citations": [{"passage_text": text}] * 5, "usage": {"prompt_tokens": 900}}
        await log.append(*steps, LogEntry(turn, EntryKind.TURN_CLOSED, body))
        ended.append(turn)


def _lines(report: dict[str, Any]) -> str:
    return "\n".join(
        f"{name.replace('_', ' ')}: put p50 {times['put_p50_ms']} ms, p99 {times['put_p99_ms']} ms, "
        f"max {times['put_max_ms']} ms over {times['questions']:,} questions; "
        f"loop lag p99 {times['loop_lag_p99_ms']} ms; {times['turns_per_second']} turns/s"
        for name, times in report.items()
    )


if __name__ == "__main__":
    typer.run(queue)
