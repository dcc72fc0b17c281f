"""Fill a record with invented turns, and measure how long it takes to append to it and to find something in it.

python -m tools.benchmarks.record_reading fill HOME --turns 100000
python -m tools.benchmarks.record_reading measure HOME
python -m tools.benchmarks.record_reading prove HOME
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer

from evaluation.speed.workload import generate_texts, median_or_nan, quantile
from storage.database.engine import Database, open_database
from storage.record.audit_log import AuditLog
from storage.record.proof.checkpoints import Checkpoints
from storage.record.proof.receipts import make_receipt
from storage.record.proof.record_check import verify_record
from storage.record.proof.signed_notes import make_signing_key
from storage.record.record_search import RecordFilter, RecordSearch, TurnSummary
from storage.types import EntryKind, LogEntry

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 300
STEPS = 7
PEOPLE, CHANNELS, DOCUMENTS = 500, 40, 2_000
STATUSES = ["answered"] * 80 + ["abstained"] * 15 + ["failed"] * 3 + ["refused"] * 2

app = typer.Typer(no_args_is_help=True)


@app.command()
def fill(home: Path, turns: int = 100_000, batch: int = 100) -> None:
    """Append invented turns of ten entries each, with feedback on some, `batch` turns a transaction."""
    with open_database("", home=home) as database:
        started = time.perf_counter()
        asyncio.run(_append(AuditLog(database), invent_turns(turns), batch))
        print(f"{turns:,} turns in {time.perf_counter() - started:.1f} s")


@app.command()
def measure(
    home: Path,
    times: Annotated[int, typer.Option(help="How often each query runs.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Time each filter, the figures, what was unanswered, and appending a turn at a time."""
    with open_database("", home=home) as database:
        report = asyncio.run(measure_record(database, times))
    for name, (median, slow, found) in {} if as_json else report.items():
        print(f"{name:<28} p50 {median:8.1f} ms   p95 {slow:8.1f} ms   {found:,} found")
    if as_json:
        print(json.dumps(report))


@app.command()
def prove(home: Path) -> None:
    """Time what proves the record: a checkpoint, a receipt, and the verification of all of it."""
    with open_database("", home=home) as database:
        for name, seconds in asyncio.run(time_proofs(database)).items():
            print(f"{name:<28} {seconds:8.2f} s")


async def time_proofs(database: Database) -> dict[str, float]:
    key = make_signing_key()
    (newest, *_) = await RecordSearch(database).find(RecordFilter(limit=1))
    work: dict[str, Callable[[], Awaitable[Any]]] = {
        "checkpoint": lambda: Checkpoints(database).make(key),
        "receipt": lambda: make_receipt(database, newest.turn_id, key),
        "verify": lambda: verify_record(database),
    }
    seconds = {}
    for name, function in work.items():
        started = time.perf_counter()
        await function()
        seconds[name] = time.perf_counter() - started
    return seconds


async def measure_record(database: Database, times: int) -> dict[str, tuple[float, float, int]]:
    """Return p50 and p95 in milliseconds, and how many were found, of each query and of appending."""
    search, log = RecordSearch(database), AuditLog(database)
    queries: dict[str, Callable[[], Awaitable[Any]]] = {
        name: lambda wanted=wanted: search.find(wanted)
        for name, wanted in list_filters(await _find_old(search)).items()
    }
    end = BEGIN + timedelta(days=DAYS)
    queries |= {
        "count of all": lambda: _count(search),
        "unanswered in 30 days": lambda: search.unanswered(end - timedelta(days=30)),
        "figures, 30 days": lambda: search.figures(end - timedelta(days=30), end, "day"),
        "figures, 300 days by month": lambda: search.figures(BEGIN, end, "month"),
        "documents cited": search.cited_documents,
        "answers citing a document": lambda: search.citing("handbook", "page7.md"),
        "feedback": lambda: search.feedback(RecordFilter(rating="down")),
    }
    report = {name: await _time(query, times) for name, query in queries.items()}
    added = invent_turns(times, seed=time.time_ns())
    report["append a turn"] = await _time(lambda: log.append(*next(added)), times)
    return report


def list_filters(old: TurnSummary) -> dict[str, RecordFilter]:
    """Return every filter by its name, of few and of many turns; `old` is one of the first turns."""
    word = old.question.split()[1]
    return {
        "newest": RecordFilter(),
        "a page far back": RecordFilter(before=old.seq + 10_000),
        "platform": RecordFilter(platform="slack"),
        "channel": RecordFilter(channel="slack:T1/C7"),
        "channel by a part": RecordFilter(channel="C7"),
        "person": RecordFilter(asker="slack:T1/U7"),
        "person by a part": RecordFilter(asker="U7"),
        "nobody": RecordFilter(asker="nobody"),
        "days long ago": RecordFilter(since=BEGIN, until=BEGIN + timedelta(days=2)),
        "abstained": RecordFilter(status="abstained"),
        "refused by a person": RecordFilter(status="refused", asker="slack:T1/U7"),
        "no such status": RecordFilter(status="chatted"),
        "refuted": RecordFilter(verdict="REFUTES"),
        "corpus": RecordFilter(corpus="handbook"),
        "document": RecordFilter(document="page7.md"),
        "document by its title": RecordFilter(document="Page 7"),
        "not helpful": RecordFilter(rating="down"),
        "a frequent word": RecordFilter(words="the"),
        "a word": RecordFilter(words=word),
        "two words": RecordFilter(words=f"{word} refund"),
        "a phrase": RecordFilter(words=f'"{" ".join(old.question.split()[1:4])}"'),
        "a beginning": RecordFilter(words="refu*"),
        "a word in a channel in May": RecordFilter(
            words="refund",
            channel="slack:T1/C7",
            since=datetime(2026, 5, 1, tzinfo=UTC),
            until=datetime(2026, 6, 1, tzinfo=UTC),
        ),
        "a word that is not there": RecordFilter(words="zzzyzx"),
    }


async def _find_old(search: RecordSearch) -> TurnSummary:
    return (await search.find(RecordFilter(before=100)))[-1]


async def _count(search: RecordSearch) -> list[int]:
    return [await search.count(RecordFilter())]


async def _time(query: Callable[[], Awaitable[Any]], times: int) -> tuple[float, float, int]:
    taken: list[float] = []
    found: Any = ()
    for _ in range(times):
        started = time.perf_counter()
        found = await query()
        taken.append((time.perf_counter() - started) * 1000)
    return round(median_or_nan(taken), 2), round(quantile(taken, 0.95), 2), len(found)


async def _append(log: AuditLog, turns: Iterator[list[LogEntry]], batch: int) -> None:
    while several := list(islice(turns, batch)):
        await log.append(*(entry for turn in several for entry in turn))


def invent_turns(count: int, seed: int = 1) -> Iterator[list[LogEntry]]:
    """Invent turns as a system with a model leaves them: ten entries, of 10 KB in all."""
    random = Random(seed)
    texts = list(islice(generate_texts(random, 90), 2_000))
    for number in range(count):
        at = BEGIN + timedelta(days=DAYS) * (number / count)
        yield list(_invent_turn(f"{random.getrandbits(48):012x}", at, random, texts))


def _invent_turn(turn: str, at: datetime, random: Random, texts: list[str]) -> Iterator[LogEntry]:
    platform = random.choice(["slack", "slack", "discord"])
    place = {"platform": platform, "workspace": "T1", "channel": f"C{int(random.expovariate(0.1)) % CHANNELS}"}
    asker = place | {"kind": "channel", "user": f"U{random.randrange(PEOPLE)}", "name": "Somebody"}
    status, question = random.choice(STATUSES), random.choice(texts)[: random.randrange(30, 120)]
    if random.random() < 0.02:
        question += " refund"
    opened = {
        "asker": asker,
        "question": question,
        "task": "ask",
        "system": "wikichat-fast",
        "corpora": {"handbook": None},
    }
    yield LogEntry(turn, EntryKind.TURN_OPENED, opened, at=at)
    pages = [random.randrange(DOCUMENTS) for _ in range(3)]
    hits = [[f"{page:032x}", 1.0, "handbook", f"page{page}.md"] for page in range(10)]
    for place_of_step in range(STEPS):
        facts = (
            {"query": question, "hits": hits}
            if place_of_step < 2
            else {"template": "verify", "reply": random.choice(texts)}
        )
        yield LogEntry(turn, EntryKind.STEP, {"stage": "search", "milliseconds": 3.0, **facts}, at=at)
    yield LogEntry(turn, EntryKind.TURN_CLOSED, _invent_end(status, pages, random, texts), at=at)
    yield LogEntry(turn, EntryKind.DELIVERED, place | {"outcome": "delivered", "text": random.choice(texts)}, at=at)
    if random.random() < 0.1:
        what = random.choice(["up", "up", "down"])
        yield LogEntry(turn, EntryKind.FEEDBACK, {"what": what, "by": f"slack:T1/U{random.randrange(PEOPLE)}"}, at=at)


def _invent_end(status: str, pages: list[int], random: Random, texts: list[str]) -> dict[str, Any]:
    said = [random.choice(texts)[:150] for _ in range(3)]
    cited = [
        {
            "number": number,
            "corpus": "handbook",
            "document": f"page{page}.md",
            "title": f"Page {page}",
            "section": "Rules",
            "quote": text,
            "passage_id": f"{page:032x}",
            "passage_text": random.choice(texts),
            "passage_hash": f"{page:032x}",
        }
        for number, (page, text) in enumerate(zip(pages, said, strict=True), 1)
    ]
    verdicts = [random.choice(["SUPPORTS"] * 8 + ["REFUTES", "NOT ENOUGH INFO"]) for _ in range(5)]
    claims = [
        {
            "claim": {"text": random.choice(texts)[:120], "origin": "model"},
            "verdict": one,
            "reasoning": random.choice(texts),
        }
        for one in verdicts
    ]
    body: dict[str, Any] = {
        "status": status,
        "claims": claims,
        "seconds": random.expovariate(0.2),
        "model": "some-model",
    }
    body["usage"] = {"llm_calls": 5, "prompt_tokens": 3_900, "completion_tokens": 70, "cost": 0.004}
    if status != "answered":
        document = {"corpus": "handbook", "key": f"page{pages[0]}.md", "title": f"Page {pages[0]}"}
        return body | {"text": "I found nothing.", "nearest": [{"document": document}]}
    sentences = [{"text": text, "citations": [number]} for number, text in enumerate(said, 1)]
    return body | {"text": " ".join(said), "sentences": sentences, "citations": cited}


if __name__ == "__main__":
    app()
