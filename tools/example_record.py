"""Fill a home with an invented record of two months, to try `footnote audit` and the pages.

    python -m tools.example_record HOME

The record is in `example_record.json`: a company with a handbook, six people, two channels and a server, in autumn
2026.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
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
RECORD: Mapping[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
"""Pages by key, people, places and turns.

Fields of a turn: `said` lists sentences by page and number; `opinion` is a rating; `refuted` is a claim that the first
page refutes; `alone` means that only the asker saw the answer.
"""
PAGES: Mapping[str, Sequence[str]] = RECORD["pages"]


def fill(home: Annotated[Path, typer.Argument(help="A folder; created if missing.")]) -> None:
    """Fill a home's database with the example record."""
    with open_database("", home=home) as database:
        asyncio.run(_fill(Manifest(database), AuditLog(database)))


async def _fill(manifest: Manifest, log: AuditLog) -> None:
    await manifest.describe(CORPUS, reference=False)
    packed = {key: pack_passages([_passage(key)]) for key in PAGES}
    await manifest.commit([VersionChange(CORPUS, key, _document(key), 1, packed[key]) for key in PAGES])
    for turn in RECORD["turns"]:
        await log.append(*build_entries(turn))


def _document(key: str) -> Document:
    written = datetime(2026, 8, 1, tzinfo=UTC)
    return Document(CORPUS, f"{key}.md", PAGES[key][0], f"https://handbook.example/{key}", "r1", written, "en", key)


def _passage(key: str) -> Passage:
    title, section, text = PAGES[key]
    identity = make_passage_id(CORPUS, f"{key}.md", section, text, 0)
    return Passage(identity, CORPUS, f"{key}.md", section, text, 0, hash_passage(title, section, text))


def build_entries(turn: Mapping[str, Any]) -> Iterator[LogEntry]:
    """Yield the entries of a turn, as a system without a model would record them."""
    name = sha256(turn["question"].encode()).hexdigest()[:12]
    at = datetime.fromisoformat(turn["when"]).replace(tzinfo=UTC)
    (user, user_name), where = RECORD["people"][turn["who"]], RECORD["places"][turn["where"]]
    opened = {
        "asker": {**where, "kind": "channel", "user": user, "name": user_name},
        "question": turn["question"],
        "language": "en",
        "task": "ask",
        "system": "extractive",
        "model": None,
        "corpora": {CORPUS: "2026-08-31T03:00:00+00:00"},
        "thread": str(int(at.timestamp())),
    }
    yield LogEntry(name, EntryKind.TURN_OPENED, opened, at=at)
    keys = list(dict.fromkeys([*(key for key, _ in turn.get("said", ())), "support", "travel"]))
    hits = [[_passage(key).id, round(0.9 - place / 10, 2), CORPUS, f"{key}.md"] for place, key in enumerate(keys)]
    searched = {"stage": "search", "query": turn["question"], "hits": hits, "milliseconds": 12.0}
    yield LogEntry(name, EntryKind.STEP, searched, at=at)
    closed = _build_end(turn, keys)
    yield LogEntry(name, EntryKind.TURN_CLOSED, closed, at=at)
    posted = {
        "outcome": "delivered",
        **{part: where[part] for part in ("platform", "workspace", "channel")},
        "thread": opened["thread"],
        "only_asker": turn.get("alone", False),
        "text": closed["text"],
        "messages": [f"{at.timestamp():.4f}"],
    }
    yield LogEntry(name, EntryKind.DELIVERED, posted, at=at)
    by = f"{where['platform']}:{where['workspace']}/{RECORD['people']['ADA'][0]}"
    if "opinion" in turn:
        rating = {"what": turn["opinion"], "by": by, "comment": turn.get("comment", "")}
        yield LogEntry(name, EntryKind.FEEDBACK, rating, at=at.replace(minute=55))
    if "retracted" in turn:
        edited = {"retracted": True, "by": by, "why": turn["retracted"]}
        yield LogEntry(name, EntryKind.EDITED, edited, at=at.replace(minute=57))


def _build_end(turn: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    quotes = [(_split(PAGES[key][2])[number], key) for key, number in turn.get("said", ())]
    cited = [key for key in keys if key in {key for _, key in quotes}]
    numbers = {key: number for number, key in enumerate(cited, 1)}
    sentences = [{"text": text, "citations": [numbers[key]], "note": "", "paragraph": False} for text, key in quotes]
    claims = [
        CheckedClaim(Claim(text, "retrieved"), Verdict.SUPPORTS, (_passage(key).id,), "word for word")
        for text, key in quotes
    ]
    if "refuted" in turn:
        wrong = Claim(turn["refuted"], "model")
        claims.append(CheckedClaim(wrong, Verdict.REFUTES, (_passage(keys[0]).id,), "It says another number."))
    text = " ".join(f"{text} [{numbers[key]}]" for text, key in quotes)
    nearest = [] if quotes else [asdict(Hit(_passage(key), _document(key), 0.4)) for key in keys]
    return {
        "status": "answered" if quotes else "abstained",
        "text": text or "I found nothing about that.",
        "sentences": sentences,
        "citations": [_build_citation(number, key, quotes) for key, number in numbers.items()],
        "claims": claims,
        "withheld": [dict(zip(("text", "reason"), turn["withheld"], strict=True))] if "withheld" in turn else [],
        "nearest": nearest,
        "system": "extractive",
        "model": None,
        "usage": {"llm_calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost": None},
        "seconds": 0.4,
    }


def _build_citation(number: int, key: str, quotes: Sequence[tuple[str, str]]) -> dict[str, Any]:
    passage, document = _passage(key), _document(key)
    return {
        "number": number,
        "corpus": CORPUS,
        "document": document.key,
        "section": passage.section,
        **{name: getattr(document, name) for name in ("title", "url", "revision", "date")},
        "quote": " ".join(text for text, page in quotes if page == key),
        "passage_id": passage.id,
        "passage_text": passage.text,
        "passage_hash": passage.hash,
    }


def _split(text: str) -> list[str]:
    first, _, second = text.partition(". ")
    return [f"{first}.", second]


if __name__ == "__main__":
    typer.run(fill)
