"""Scripted services behind the command line; nothing is opened."""

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bot.cli.command_context import Services
from bot.server.refresh.document_lookup import ForgottenDocument
from bot.server.refresh.run_history import RefreshSummary, summarize_refreshes
from bot.server.service import LocalService
from bot.settings.live.live_settings import ReloadReport
from bot.settings.tables.settings_tables import DenseChoice, Settings
from bot.settings.tables.source_settings import SourceSettings
from bot.types import Failure, TurnRequest, TurnResult
from ingest.types import EngineName, RefreshProgress, RefreshReport
from pipeline.types import Answer, AnsweredSentence, Event, SearchStarted, Status, Usage
from storage.record.audit_log import AuditLog
from storage.record.record_search import RecordSearch
from storage.types import (
    Citation,
    CorpusInfo,
    Document,
    DocumentId,
    DocumentRef,
    EntryKind,
    Hit,
    LogEntry,
    NightRecord,
    Passage,
    RefreshRun,
    hash_passage,
)
from tests.storage.stores import open_empty_database

DAY = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def passage(text: str = "The quay opens at seven. It closes at nine.", number: int = 1) -> Passage:
    digest = hash_passage("Harbour", "Hours", text)
    return Passage(f"p{number}", "handbook", "harbour.md", "Hours", text, 0, digest)


def document(**changes: Any) -> Document:
    facts = {"title": "Harbour", "url": "https://example.com/harbour.md", "revision": "r1", "date": DAY}
    return Document("handbook", "harbour.md", **(facts | changes))


def hit(number: int = 1, **changes: Any) -> Hit:
    return Hit(passage(number=number), document(**changes), score=1.25)


def citation(number: int = 1, **changes: Any) -> Citation:
    text = passage().text
    facts = {
        "title": "Harbour",
        "section": "Hours",
        "url": "https://example.com/harbour.md",
        "revision": "r1",
        "date": DAY,
        "quote": "The quay opens at seven.",
        "passage_text": text,
        "passage_hash": passage().hash,
    }
    return Citation(number=number, corpus="handbook", document="harbour.md", passage_id="p1", **(facts | changes))


def answered(**changes: Any) -> TurnResult:
    facts = {
        "answer_id": "abc123",
        "answer": Answer(Status.ANSWERED, (AnsweredSentence("The quay opens at seven.", (1,)),), (citation(),)),
        "text": "The quay opens at seven. [1]",
        "system": "extractive",
        "model": None,
        "usage": Usage(),
        "seconds": 0.25,
    }
    return TurnResult(**(facts | changes))


def abstained() -> TurnResult:
    return answered(answer=Answer(Status.ABSTAINED, nearest=(hit(),)), text="I found nothing.")


def refused() -> TurnResult:
    failure = Failure("question_without_words", "The question has no words.", "Ask in words.")
    return answered(answer=Answer(Status.REFUSED), text=failure.message, failure=failure)


def logged() -> tuple[LogEntry, LogEntry, LogEntry]:
    cited = {
        "number": 1,
        "corpus": "handbook",
        "document": "harbour.md",
        "title": "Harbour",
        "section": "Hours",
        "url": "https://example.com/harbour.md",
        "revision": "r1",
        "date": DAY.isoformat(),
        "quote": "The quay opens at seven.",
        "passage_id": "p1",
        "passage_text": passage().text,
        "passage_hash": passage().hash,
    }
    sentence = {"text": "The quay opens at seven.", "citations": [1], "note": "", "paragraph": False}
    closed = {"status": "answered", "system": "extractive", "text": "The quay opens at seven. [1]", "seconds": 0.25}
    step = {"stage": "search", "query": "quay", "hits": [["p1", 1.25]], "milliseconds": 3.0}
    return (
        LogEntry("abc123", EntryKind.TURN_OPENED, {"question": "When does the quay open?"}, 1, DAY),
        LogEntry("abc123", EntryKind.STEP, step, 2, DAY),
        LogEntry("abc123", EntryKind.TURN_CLOSED, closed | {"sentences": [sentence], "citations": [cited]}, 3, DAY),
    )


@dataclass
class FakeServices:
    """What the commands open. An `answer`, `report` or `forgotten` that is an exception is raised."""

    corpora: tuple[CorpusInfo, ...] = (CorpusInfo("handbook", 3, 12, DAY, 1),)
    hits: tuple[Hit, ...] = ()
    answer: TurnResult | BaseException = field(default_factory=answered)
    interrupted: int = 0
    """How many of the next answers are interrupted with Ctrl-C."""
    report: RefreshReport | Exception = field(
        default_factory=lambda: RefreshReport("handbook", 2, 0, 1, 0, 9, 0, (("scan.pdf", "holds no text"),), 1.5)
    )
    forgotten: ForgottenDocument | Exception = field(
        default_factory=lambda: ForgottenDocument(
            DocumentRef("handbook", "old.md", "Old rules", "https://example.com/old.md"), 4
        )
    )
    away: tuple[DocumentRef, ...] = ()
    """The documents forgotten earlier."""
    runs: tuple[RefreshRun, ...] = ()
    nights: tuple[NightRecord, ...] = ()
    record: tuple[LogEntry, ...] = field(default_factory=logged)
    passages: Mapping[str, tuple[Passage, Document]] = field(default_factory=dict)
    """The stored passages that a recorded turn found, by id."""
    asked: list[TurnRequest] = field(default_factory=list)
    searched: list[tuple[str, tuple[str, ...], int]] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)
    restored: list[bool] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    confirmed: list[bool] = field(default_factory=list)
    """Whether removals were confirmed, for each refresh."""
    denses: list[DenseChoice | None] = field(default_factory=list)
    engines: list[EngineName | None] = field(default_factory=list)
    """The engine of each refresh."""
    named: list[tuple[str, object]] = field(default_factory=list)
    """The single documents requested, and where."""
    opened: list[bool] = field(default_factory=list)
    """Whether it was for rebuilding, for each opening."""

    def build(self) -> Services:
        return Services(self._open_home, self._open_app, self._open_records, self._open_history)

    @asynccontextmanager
    async def _open_home(self, settings: Settings) -> AsyncIterator[LocalService]:
        del settings
        self.opened.append(False)
        yield FakeHome(self)

    @asynccontextmanager
    async def _open_app(self, settings: Settings, *, rebuilding: bool = False) -> AsyncIterator[Any]:
        self.opened.append(rebuilding)
        yield SimpleNamespace(settings=settings, passages=self, manifest=_Manifest(self.corpora))

    @asynccontextmanager
    async def _open_records(self, settings: Settings) -> AsyncIterator[Any]:
        del settings
        with tempfile.TemporaryDirectory() as home, open_empty_database(Path(home)) as database:
            await AuditLog(database).append(*self.record)
            manifest = _Manifest(self.corpora, self.away, self.passages)
            yield SimpleNamespace(audit=AuditLog(database), manifest=manifest, search=RecordSearch(database))

    @asynccontextmanager
    async def _open_history(self, settings: Settings) -> AsyncIterator[Any]:
        del settings
        yield _History(self.runs, self.nights)

    async def reindex(self, progress: Callable[[int, int], None], *, vectors: bool = True) -> int:
        del vectors
        progress(12, 12)
        return 12


@dataclass
class FakeHome:
    """A home's `LocalService`, scripted by `services`."""

    services: FakeServices

    async def answer(self, asked: TurnRequest, tell: Callable[[Event], None]) -> TurnResult:
        services = self.services
        services.asked.append(asked)
        tell(SearchStarted(asked.text))
        if services.interrupted:
            services.interrupted -= 1
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()
        if isinstance(services.answer, BaseException):
            raise services.answer
        return services.answer

    async def check(self, asked: TurnRequest, tell: Callable[[Event], None]) -> TurnResult:
        return await self.answer(asked, tell)

    async def search(self, query: str, corpora: Sequence[str], count: int) -> tuple[Hit, ...]:
        self.services.searched.append((query, tuple(corpora), count))
        return self.services.hits

    async def corpora(self) -> tuple[CorpusInfo, ...]:
        return self.services.corpora

    async def refresh(
        self,
        corpus: str,
        source: SourceSettings,
        tell: Callable[[RefreshProgress], None],
        *,
        confirm_removal: bool = False,
        restore: bool = False,
        engine: EngineName | None = None,
        dense: DenseChoice | None = None,
    ) -> RefreshReport:
        del corpus
        self.services.denses.append(dense)
        self.services.restored.append(restore)
        self.services.engines.append(engine)
        self.services.confirmed.append(confirm_removal)
        self.services.sources.append(source.model_dump(exclude={"type"}))
        tell(RefreshProgress(3, 3, 9, 1.5))
        if isinstance(self.services.report, Exception):
            raise self.services.report
        return self.services.report

    async def reload(self) -> ReloadReport:
        return ReloadReport(changed=("limits.seconds",), waiting=("home",))

    async def read_one(self, address: str, sources: Mapping[str, SourceSettings]) -> tuple[RefreshReport, ...]:
        self.services.named.append((address, dict(sources)))
        if isinstance(self.services.report, Exception):
            raise self.services.report
        return (self.services.report,)

    async def remove(self, corpus: str) -> RefreshReport:
        self.services.removed.append(corpus)
        if isinstance(self.services.report, Exception):
            raise self.services.report
        return self.services.report

    async def forget(self, address: str, corpus: str) -> ForgottenDocument:
        self.services.named.append((address, corpus))
        if isinstance(self.services.forgotten, Exception):
            raise self.services.forgotten
        return self.services.forgotten


@dataclass
class _History:
    runs: tuple[RefreshRun, ...]
    nights: tuple[NightRecord, ...]

    async def summarize(self, settings: Settings, now: datetime, *, count: int) -> RefreshSummary:
        return summarize_refreshes(settings, self.runs[:count], self.nights[:count], now, watching=False)


@dataclass
class _Manifest:
    infos: tuple[CorpusInfo, ...]
    away: tuple[DocumentRef, ...] = ()
    passages: Mapping[str, tuple[Passage, Document]] = field(default_factory=dict)

    async def corpora(self) -> tuple[CorpusInfo, ...]:
        return self.infos

    async def recall(self, _ids: Sequence[str], _among: Sequence[DocumentId]) -> Mapping[str, tuple[Passage, Document]]:
        return self.passages

    async def catalogue(self) -> tuple[()]:
        return ()

    async def sample(self, corpus: str, count: int) -> tuple[()]:
        del corpus, count
        return ()

    async def all_forgotten(self) -> tuple[DocumentRef, ...]:
        return self.away
