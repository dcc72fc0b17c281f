"""Fill a record with invented turns, and time its appends, searches and proofs.

python -m tools.benchmarks.record_reading fill HOME --turns 100000
python -m tools.benchmarks.record_reading measure HOME
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer

from evaluation.speed.workload import append_milliseconds, generate_texts, median_or_nan
from storage.database.engine import Database, open_database
from storage.record.audit_log import AuditLog
from storage.record.proof.checkpoints import Checkpoints
from storage.record.proof.receipts import make_receipt
from storage.record.proof.record_check import verify_record
from storage.record.proof.signed_notes import make_signing_key
from storage.record.record_search import RecordFilter, RecordSearch
from storage.types import EntryKind, LogEntry

BEGIN, DAYS = datetime(2026, 1, 1, tzinfo=UTC), 300
STEPS = 7
PEOPLE, CHANNELS, DOCUMENTS = 500, 40, 2_000

app = typer.Typer(no_args_is_help=True)


@app.command()
def fill(home: Path, turns: int = 100_000, batch: int = 100) -> None:
    """Append invented turns of ten entries each, some with feedback, `batch` turns in a transaction."""
    with open_database("", home=home) as database:
        started = time.perf_counter()
        asyncio.run(_append(AuditLog(database), invent_turns(turns), batch))
        print(f"{turns:,} turns in {time.perf_counter() - started:.1f} s")


@app.command()
def measure(home: Path, times: Annotated[int, typer.Option(help="How often each search runs.")] = 20) -> None:
    """Print the milliseconds of an append, of searches, and of a checkpoint, a receipt and a whole verification."""
    with open_database("", home=home) as database:
        for name, milliseconds in asyncio.run(measure_record(database, times)).items():
            print(f"{name:<28} {milliseconds:10.1f} ms")


async def measure_record(database: Database, times: int) -> dict[str, float]:
    """Return the median milliseconds of each operation; proofs run only once."""
    search, log, key = RecordSearch(database), AuditLog(database), make_signing_key()
    newest, added = (await search.find(RecordFilter(limit=1)))[0], invent_turns(times, seed=time.time_ns())
    end = BEGIN + timedelta(days=DAYS)
    repeated: dict[str, Callable[[], Awaitable[Any]]] = {
        "append a turn": lambda: log.append(*next(added)),
        "newest": lambda: search.find(RecordFilter()),
        "person": lambda: search.find(RecordFilter(asker="slack:T1/U7")),
        "a word": lambda: search.find(RecordFilter(words=newest.question.split()[1])),
        "a word in a channel": lambda: search.find(RecordFilter(words="refund", channel="slack:T1/C7")),
        "a word that is not there": lambda: search.find(RecordFilter(words="zzzyzx")),
        "document": lambda: search.find(RecordFilter(document="page7.md")),
        "count of all": lambda: search.count(RecordFilter()),
        "unanswered in 30 days": lambda: search.unanswered(end - timedelta(days=30)),
        "figures, by month": lambda: search.figures(BEGIN, end, "month"),
    }
    proofs: dict[str, Callable[[], Awaitable[Any]]] = {
        "checkpoint": lambda: Checkpoints(database).make(key),
        "receipt": lambda: make_receipt(database, newest.turn_id, key),
        "verify": lambda: verify_record(database),
    }
    medians = {name: await _time(work, times) for name, work in repeated.items()}
    return medians | {name: await _time(work, 1) for name, work in proofs.items()}


async def _time(work: Callable[[], Awaitable[Any]], times: int) -> float:
    milliseconds = list[float]()
    for _ in range(times):
        with append_milliseconds(milliseconds):
            await work()
    return median_or_nan(milliseconds)


async def _append(log: AuditLog, turns: Iterator[list[LogEntry]], batch: int) -> None:
    while group := list(islice(turns, batch)):
        await log.append(*(entry for turn in group for entry in turn))


def invent_turns(count: int, seed: int = 1) -> Iterator[list[LogEntry]]:
    """Yield the entries of invented turns of a system with a model. Each turn has ten entries, 10 KB in all."""
    random = Random(seed)
    texts = list(islice(generate_texts(random, 90), 2_000))
    for number in range(count):
        at = BEGIN + timedelta(days=DAYS) * (number / count)
        yield list(_invent_turn(f"{random.getrandbits(48):012x}", at, random, texts))


def _invent_turn(turn: str, at: datetime, random: Random, texts: list[str]) -> Iterator[LogEntry]:
    platform = random.choice(["slack", "slack", "discord"])
    place = {"platform": platform, "workspace": "T1", "channel": f"C{int(random.expovariate(0.1)) % CHANNELS}"}
    asker = place | {"kind": "channel", "user": f"U{random.randrange(PEOPLE)}", "name": "Person"}
    question = random.choice(texts)[: random.randrange(30, 120)] + " refund" * (random.random() < 0.02)
    opened = {"asker": asker, "question": question, "task": "ask", "system": "wikichat-fast"}
    yield LogEntry(turn, EntryKind.TURN_OPENED, opened | {"corpora": {"handbook": None}}, at=at)
    hits = [[f"{page:032x}", 1.0, "handbook", f"page{page}.md"] for page in range(10)]
    for number in range(STEPS):
        made = (
            {"query": question, "hits": hits} if number < 2 else {"template": "verify", "reply": random.choice(texts)}
        )
        yield LogEntry(turn, EntryKind.STEP, {"stage": "search", "milliseconds": 3.0, **made}, at=at)
    yield LogEntry(turn, EntryKind.TURN_CLOSED, _invent_end(random, texts), at=at)
    yield LogEntry(turn, EntryKind.DELIVERED, place | {"outcome": "delivered", "text": random.choice(texts)}, at=at)
    if random.random() < 0.1:
        rating = random.choice(["up", "up", "down"])
        feedback = {"what": rating, "by": f"slack:T1/U{random.randrange(PEOPLE)}"}
        yield LogEntry(turn, EntryKind.FEEDBACK, feedback, at=at)


def _invent_end(random: Random, texts: list[str]) -> dict[str, Any]:
    """Return the last entry of a turn that has three sentences, their citations, and claims."""
    quotes = [random.choice(texts)[:150] for _ in range(3)]
    pages = [random.randrange(DOCUMENTS) for _ in quotes]
    cited = [
        {
            "number": number,
            "corpus": "handbook",
            "document": f"page{page}.md",
            "title": f"Page {page}",
            "section": "Rules",
            "quote": text,
            "passage_id": f"{page:032x}",
            "passage_hash": f"{page:032x}",
            "passage_text": random.choice(texts),
        }
        for number, (page, text) in enumerate(zip(pages, quotes, strict=True), 1)
    ]
    claims = [
        {"claim": {"text": text[:120], "origin": "model"}, "verdict": verdict, "reasoning": text}
        for text in random.choices(texts, k=5)
        for verdict in random.choices(["SUPPORTS", "REFUTES"], [4, 1])
    ]
    usage = {"llm_calls": 5, "prompt_tokens": 3_900, "completion_tokens": 70, "cost": 0.004}
    status = random.choices(["answered", "abstained", "failed", "refused"], [80, 15, 3, 2])[0]
    body = {"status": status, "claims": claims, "seconds": random.expovariate(0.2), "model": "some-model"}
    sentences = [{"text": text, "citations": [number]} for number, text in enumerate(quotes, 1)]
    spoken = {"text": " ".join(quotes), "sentences": sentences, "citations": cited}
    return {**body, "usage": usage, **(spoken if status == "answered" else {"text": "I found nothing.", "nearest": []})}


if __name__ == "__main__":
    app()
