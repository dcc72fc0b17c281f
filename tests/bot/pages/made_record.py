"""A recorded turn with every kind of entry, with all texts given by the test; and the pages that show it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette

from bot.app import Records
from bot.pages.pages_server import build_app
from bot.server.refresh.run_history import build_history
from bot.settings.tables.settings_tables import Settings
from bot.wiring import build_records
from storage.database.engine import open_database
from storage.types import EntryKind, LogEntry, hash_passage
from tests.bot.fake_services import FakeServices

READER, EDITOR, ADMIN = (f"{role} {role} {role * 5}" for role in ("reader", "editor", "admin"))
TOKENS = [READER, EDITOR, ADMIN]
DAY = datetime(2026, 10, 5, 9, 30, tzinfo=UTC)
WORDS = "plain words"


class Texts:
    """Gives out its texts in turn, again and again."""

    def __init__(self, *texts: str) -> None:
        self._texts, self._given = texts, 0

    def __call__(self) -> str:
        self._given += 1
        return self._texts[(self._given - 1) % len(self._texts)]


def make_turn(turn_id: str, text: Texts, *, url: str = "", status: str = "answered") -> list[LogEntry]:
    def entry(kind: EntryKind, **body: Any) -> LogEntry:
        return LogEntry(turn_id, kind, body, at=DAY)

    passage = text()
    cited = {"number": 1, "corpus": text(), "document": text(), "title": text(), "section": text(), "url": url}
    cited |= {"revision": text(), "date": DAY.isoformat(), "quote": passage, "passage_id": "p1"}
    cited |= {"passage_text": passage, "passage_hash": hash_passage("", "", passage)}
    claims = [
        {"claim": {"text": text(), "origin": origin}, "verdict": verdict, "evidence": evidence, "reasoning": text()}
        | {"looked_at": ["p2"]}
        for origin, verdict, evidence in (("model", "SUPPORTS", ["p1"]), ("retrieved", "REFUTES", []))
    ]
    asker = {"platform": "slack", "kind": "channel", "workspace": text(), "channel": text(), "user": text()}
    near = {"passage_id": "p3", "title": text(), "url": url, "passage": {"corpus": text(), "text": text()}}
    return [
        entry(EntryKind.TURN_OPENED, asker=asker, question=text(), earlier=[text()], task="ask", system=text(),
              model=text(), because=text(), tone=text(), effort=text(), lowered={"from": text(), "waited": 1.5},
              corpora={text(): None}, version=text()),
        entry(EntryKind.STEP, stage="search", query=text(),
              hits=[["p1", 1.5, "c", "d"], [text(), 0.5, text(), text()]]),
        entry(EntryKind.STEP, stage="search", query=text(), error=text(), milliseconds=3.0),
        entry(EntryKind.STEP, stage=text(), template="draft", model=text(), facts={text(): text()}, reply=text()),
        entry(EntryKind.TURN_CLOSED, status=status, text=text(), system=text(), model=text(), seconds=1.5,
              sentences=[{"text": text(), "citations": [1], "note": text(), "paragraph": True}],
              spoken=[{"text": text(), "citations": [1]}], citations=[cited], claims=claims,
              withheld=[{"text": text(), "reason": text()}], nearest=[near], usage={"llm_calls": 2},
              failure={"kind": "k", "message": text(), "hint": text()}),
        entry(EntryKind.DELIVERED, outcome="delivered", channel=text(), messages=[text()], text=text()),
        entry(EntryKind.FEEDBACK, what="down", by=text(), comment=text()),
        entry(EntryKind.EDITED, by=text(), withheld=text()),
    ]  # fmt: skip


@contextmanager
def opened_records(home: Path) -> Iterator[tuple[Records, Any]]:
    with open_database("", home=home) as database:
        yield build_records(database), build_history(database)


def made_app(records: Records, history: Any, services: FakeServices | None = None, **pages: Any) -> Starlette:
    settings = Settings.model_validate({"pages": pages, "corpus": [{"name": "handbook"}]})
    service = (services or FakeServices()).build()
    return build_app(settings, records, history, lambda: service.open_home(settings))


def browser(app: Starlette, *, peer: str = "127.0.0.1", **headers: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, client=(peer, 40_000))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8711", headers=headers)
