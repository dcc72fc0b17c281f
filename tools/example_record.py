"""Fill a home with an invented record of two months, to try the commands of `footnote audit` and the pages on.

    python -m tools.example_record HOME

Nothing in it happened: a company with a handbook, six people, two channels and a server, in September and October 2026.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import typer

from storage.database.bodies import pack_passages
from storage.database.document_versions import VersionChange
from storage.database.engine import open_database
from storage.manifest import Manifest
from storage.record.audit_log import AuditLog
from storage.types import (
    CheckedClaim,
    Claim,
    Document,
    EntryKind,
    Hit,
    LogEntry,
    Passage,
    Verdict,
    hash_passage,
    make_passage_id,
)

CORPUS = "handbook"
PAGES: dict[str, tuple[str, str, str]] = {
    "refunds": (
        "Refunds",
        "Deadlines",
        "Goods can be returned within 30 days. The refund is paid in 5 days.",
    ),
    "opened": ("Refunds", "Opened goods", "Opened goods are refunded at half their price. Software is not refunded."),
    "warranty": ("Warranty", "Length", "Every pump has a warranty of two years. Seals are excluded from it."),
    "leave": ("Leave", "Days", "Everybody has 27 days of paid leave a year. Leave is asked for two weeks ahead."),
    "travel": ("Travel", "Meals", "Meals on business trips are paid up to 45 euros a day. Alcohol is not paid."),
    "support": ("Support", "Hours", "Support answers the phone from eight to six. On weekends it answers mail alone."),
}
ADA, BO, CY, DEE = ("U1", "Ada Moss"), ("U2", "Bo Lind"), ("U3", "Cy Park"), ("U4", "Dee Ray")
SALES = {"platform": "slack", "workspace": "T1", "channel": "C1", "channel_name": "sales"}
OFFICE = {"platform": "slack", "workspace": "T1", "channel": "C2", "channel_name": "office"}
FORUM = {"platform": "discord", "workspace": "77", "channel": "901", "channel_name": "customers"}


@dataclass(frozen=True)
class ExampleTurn:
    """A question and its outcome; sentences are given by their page and their number in it."""

    when: str
    who: tuple[str, str]
    where: dict[str, str]
    question: str
    said: tuple[tuple[str, int], ...] = ()
    refuted: str = ""  # a claim of the model's that the first page refutes
    withheld: tuple[str, str] = ()  # type: ignore[assignment]
    opinion: str = ""  # `up` or `down`, by the next person
    comment: str = ""
    retracted: str = ""  # why it was retracted
    alone: bool = False  # whether only the asker saw it


def _list_turns() -> Iterator[ExampleTurn]:
    first = ("refunds", 0)
    yield ExampleTurn("2026-09-01 09:12", ADA, SALES, "How long can goods be returned?", (first,), opinion="up")
    yield ExampleTurn("2026-09-03 14:40", BO, OFFICE, "How many days of leave do I get?", (("leave", 0), ("leave", 1)))
    yield ExampleTurn("2026-09-07 08:05", CY, SALES, "Do we ship to Norway?")
    yield ExampleTurn("2026-09-10 10:30", DEE, FORUM, "When does support answer the phone?", (("support", 0),))
    yield ExampleTurn("2026-09-14 11:11", BO, OFFICE, "What does a colleague earn?", alone=True)
    yield ExampleTurn("2026-09-17 16:20", CY, SALES, "Is shipping to Norway possible?")
    yield ExampleTurn("2026-09-22 09:45", ADA, OFFICE, "What is paid for meals?", (("travel", 0),), opinion="up")
    yield ExampleTurn(
        "2026-09-29 13:00",
        DEE,
        FORUM,
        "How long is the warranty of a pump?",
        (("warranty", 0), ("warranty", 1)),
        refuted="Every pump has a warranty of five years.",
    )
    yield ExampleTurn("2026-10-02 09:30", BO, SALES, "When is a refund paid?", (("refunds", 1),))
    yield ExampleTurn(
        "2026-10-06 15:10",
        CY,
        SALES,
        "Is software refunded once it was opened?",
        (("opened", 0),),
        withheld=("Opened software can be exchanged.", "no passage says so"),
        opinion="down",
        comment="Software is not refunded at all.",
        retracted="it is not about software",
    )
    yield ExampleTurn("2026-10-06 15:25", CY, SALES, "Do we refund software?", (("opened", 1),), opinion="up")
    yield ExampleTurn("2026-10-12 10:00", ADA, SALES, "Shipping to Norway: do we do it?")
    yield ExampleTurn("2026-10-15 17:45", BO, OFFICE, "Is wine paid on business trips?", (("travel", 1),))
    yield ExampleTurn(
        "2026-10-21 12:00",
        DEE,
        FORUM,
        "Are seals in the warranty?",
        (("warranty", 1),),
        opinion="down",
        comment="Which seals?",
    )
    yield ExampleTurn("2026-10-26 08:50", ADA, SALES, "Refund for opened goods?", (("opened", 0),), alone=True)
    yield ExampleTurn("2026-10-29 09:05", DEE, FORUM, "Can I rent a pump?")


def fill(home: Annotated[Path, typer.Argument(help="A folder; created if missing.")]) -> None:
    """Fill a home's database with the example record."""
    with open_database("", home=home) as database:
        asyncio.run(_fill(Manifest(database), AuditLog(database)))


async def _fill(manifest: Manifest, log: AuditLog) -> None:
    await manifest.describe(CORPUS, reference=False)
    packed = {key: pack_passages([_passage(key)]) for key in PAGES}
    await manifest.commit([VersionChange(CORPUS, key, _document(key), 1, packed[key]) for key in PAGES])
    for turn in _list_turns():
        await log.append(*build_entries(turn))


def _document(key: str) -> Document:
    written = datetime(2026, 8, 1, tzinfo=UTC)
    return Document(CORPUS, f"{key}.md", PAGES[key][0], f"https://handbook.example/{key}", "r1", written, "en", key)


def _passage(key: str) -> Passage:
    title, section, text = PAGES[key]
    identity = make_passage_id(CORPUS, f"{key}.md", section, text, 0)
    return Passage(identity, CORPUS, f"{key}.md", section, text, 0, hash_passage(title, section, text))


def build_entries(turn: ExampleTurn) -> Iterator[LogEntry]:
    """Build the entries of a turn, as a system without a model records them."""
    name = sha256(turn.question.encode()).hexdigest()[:12]
    at = datetime.fromisoformat(turn.when).replace(tzinfo=UTC)
    asker = {**turn.where, "kind": "channel", "user": turn.who[0], "name": turn.who[1]}
    opened = {
        "asker": asker,
        "question": turn.question,
        "language": "en",
        "task": "ask",
        "system": "extractive",
        "model": None,
        "corpora": {CORPUS: "2026-08-31T03:00:00+00:00"},
        "thread": str(int(at.timestamp())),
    }
    yield LogEntry(name, EntryKind.TURN_OPENED, opened, at=at)
    keys = list(dict.fromkeys([*(key for key, _ in turn.said), "support", "travel"]))
    hits = [[_passage(key).id, round(0.9 - place / 10, 2), CORPUS, f"{key}.md"] for place, key in enumerate(keys)]
    yield LogEntry(
        name, EntryKind.STEP, {"stage": "search", "query": turn.question, "hits": hits, "milliseconds": 12.0}, at=at
    )
    closed = _build_end(turn, keys)
    yield LogEntry(name, EntryKind.TURN_CLOSED, closed, at=at)
    place = {part: turn.where[part] for part in ("platform", "workspace", "channel")}
    posted = {
        "outcome": "delivered",
        **place,
        "thread": opened["thread"],
        "only_asker": turn.alone,
        "text": closed["text"],
    }
    yield LogEntry(name, EntryKind.DELIVERED, posted | {"messages": [f"{at.timestamp():.4f}"]}, at=at)
    if turn.opinion:
        rating = {
            "what": turn.opinion,
            "by": f"{place['platform']}:{place['workspace']}/{ADA[0]}",
            "comment": turn.comment,
        }
        yield LogEntry(name, EntryKind.FEEDBACK, rating, at=at.replace(minute=55))
    if turn.retracted:
        back = {"retracted": True, "by": f"{place['platform']}:{place['workspace']}/{ADA[0]}", "why": turn.retracted}
        yield LogEntry(name, EntryKind.EDITED, back, at=at.replace(minute=57))


def _build_end(turn: ExampleTurn, keys: Sequence[str]) -> dict[str, Any]:
    said = [(_split(PAGES[key][2])[number], key) for key, number in turn.said]
    cited = [key for key in keys if key in {key for _, key in said}]
    sentences = [
        {"text": text, "citations": [cited.index(key) + 1], "note": "", "paragraph": False} for text, key in said
    ]
    claims = [
        CheckedClaim(Claim(text, "retrieved"), Verdict.SUPPORTS, (_passage(key).id,), "word for word")
        for text, key in said
    ]
    if turn.refuted:
        wrong = Claim(turn.refuted, "model")
        claims.append(CheckedClaim(wrong, Verdict.REFUTES, (_passage(keys[0]).id,), "It says another number."))
    text = " ".join(f"{sentence['text']} [{sentence['citations'][0]}]" for sentence in sentences)
    nearest = [] if said else [asdict(Hit(_passage(key), _document(key), 0.4)) for key in keys]
    return {
        "status": "answered" if said else "abstained",
        "text": text or "I found nothing about that.",
        "sentences": sentences,
        "citations": [_build_citation(number, key, said) for number, key in enumerate(cited, 1)],
        "claims": claims,
        "withheld": [{"text": turn.withheld[0], "reason": turn.withheld[1]}] if turn.withheld else [],
        "nearest": nearest,
        "system": "extractive",
        "model": None,
        "usage": {"llm_calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost": None},
        "seconds": 0.4,
    }


def _build_citation(number: int, key: str, said: Sequence[tuple[str, str]]) -> dict[str, Any]:
    passage, document = _passage(key), _document(key)
    quote = " ".join(text for text, page in said if page == key)
    return {
        "number": number,
        "corpus": CORPUS,
        "document": document.key,
        "title": document.title,
        "section": passage.section,
        "url": document.url,
        "revision": document.revision,
        "date": document.date,
        "quote": quote,
        "passage_id": passage.id,
        "passage_text": passage.text,
        "passage_hash": passage.hash,
    }


def _split(text: str) -> list[str]:
    first, _, second = text.partition(". ")
    return [f"{first}.", second]


if __name__ == "__main__":
    typer.run(fill)
