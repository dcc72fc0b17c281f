"""Execute commands in this process; `RemoteService` sends them to the process that has the home open."""

import asyncio
import gc
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, Union

from bot.answering import question_answering as answering
from bot.app import App
from bot.settings.live.live_settings import ReloadReport
from bot.settings.tables.settings_tables import DenseChoice, Settings
from bot.settings.tables.source_settings import SourceContext, SourceSettings
from bot.types import TurnRequest, TurnResult
from ingest.types import Engine, EngineName, LiveSource, RefreshProgress, RefreshRefused, RefreshReport
from pipeline.errors import PipelineError
from pipeline.llm.model_client import LazyModel
from pipeline.replies.abstention import is_abstention
from pipeline.stages.question_analysis import detect_small_talk
from pipeline.types import Event
from storage.clock import utc_now
from storage.errors import UnknownCorpus
from storage.indexes.embedders import find_key
from storage.indexes.embedding import Embedder, open_embedder
from storage.language.lazy_pattern import compile_all
from storage.types import CorpusInfo, DenseMode, Hit

if TYPE_CHECKING:
    from bot.server.control.remote_service import RemoteService  # imports httpx
    from bot.server.refresh.document_lookup import ForgottenDocument  # imports all sources


@dataclass(frozen=True)
class LocalService:
    """The service of a home that this process has open. Every method raises `ReportableError`s.

    A cancelled method stops its work, and the turn's record says so. Methods import modules that only refreshes need,
    so that `ask` starts sooner.
    """

    app: App
    reloading: Callable[[], Awaitable[ReloadReport]] | None = None  # reads the settings again; None outside a server
    _refreshing: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def answer(self, asked: TurnRequest, report: Callable[[Event], None]) -> TurnResult:
        """Answer a question; `report` receives its events."""
        return await answering.answer(self.app, asked, report)

    async def check(self, asked: TurnRequest, report: Callable[[Event], None]) -> TurnResult:
        return await answering.check(self.app, asked, report)

    async def search(self, query: str, corpora: Sequence[str], count: int) -> tuple[Hit, ...]:
        """Return the `count` passages of `corpora` that match a query best, best first."""
        return await self.app.passages.search(query, corpora, count)

    async def corpora(self) -> tuple[CorpusInfo, ...]:
        return await self.app.manifest.corpora()

    async def reload(self) -> ReloadReport:
        """Read the settings again. Raises `StorageError`, changing nothing, if a change of scope cannot be recorded."""
        return await self.reloading() if self.reloading else ReloadReport(faults=("No server is running here.",))

    async def refresh(
        self,
        corpus: str,
        source: SourceSettings,
        report: Callable[[RefreshProgress], None],
        *,
        confirm_removal: bool = False,
        restore: bool = False,
        engine: EngineName | None = None,
        night: datetime | None = None,
        dense: DenseChoice | None = None,
    ) -> RefreshReport:
        """Bring a corpus up to date. `report` receives the progress. Only one corpus is refreshed at a time.

        If suspiciously many documents are missing, they are removed only with `confirm_removal`. Forgotten documents
        come back only with `restore`. `engine` reads and embeds, and `dense` is how passages are embedded; both default
        to the settings. `night` is when the nightly refresh that this run belongs to was due, if any.
        """
        from ingest.refresh.corpus_refresh import refresh_corpus

        async with self._refreshing, self._open_engine(engine) as distant:
            opened, store = await self._opened(corpus, source, night, distant), self.app.passages
            if distant is not None:
                from ingest.refresh.distributed_source import distribute

                embedder = await asyncio.to_thread(store.embedders.find, corpus)
                opened, store = distribute(opened, store, distant, embedder, find_local_opener(embedder.name))
            return await refresh_corpus(
                opened,
                corpus,
                store,
                progress=report,
                dense=await self._choose_dense(corpus, source, dense),
                confirm_removal=confirm_removal,
                restore=restore,
                source_digest=hash_source(source),
                night=night,
            )

    async def _choose_dense(self, corpus: str, source: SourceSettings, choice: DenseChoice | None) -> DenseMode | None:
        if choice is None:
            choice = self.app.settings.find_corpus(corpus).dense
        if choice:
            return DenseMode(choice)
        names = {info.name for info in await self.app.manifest.catalogue()}
        return None if corpus in names or not is_large_dump(source) else DenseMode.LAZY

    @property
    def refreshing(self) -> bool:
        """Whether a corpus is being refreshed by this process."""
        return self._refreshing.locked()

    async def read_one(self, address: str, sources: Mapping[str, SourceSettings]) -> tuple[RefreshReport, ...]:
        """Ingest one document again; return a report for each corpus that has it. `sources` are by corpus."""
        from bot.server.refresh import document_lookup

        return await document_lookup.reread_document(self.app, address, sources, self._around)

    async def remove(self, corpus: str) -> RefreshReport:
        from ingest.refresh.document_refresh import remove_corpus

        known = [info.name for info in await self.app.manifest.catalogue()]
        if corpus not in known:
            raise UnknownCorpus(f"There is no corpus “{corpus}”.", hint=f"There are: {', '.join(known) or 'none'}.")
        async with self._refreshing:
            return await remove_corpus(self.app.passages, corpus)

    async def forget(self, address: str, corpus: str) -> "ForgottenDocument":
        """Forget the document with this address, key or title; an empty `corpus` means any."""
        from bot.server.refresh import document_lookup

        return await document_lookup.forget_document(self.app, address, corpus)

    @asynccontextmanager
    async def _open_engine(self, name: EngineName | None) -> AsyncIterator[Engine | None]:
        """Yield the engine that reads and embeds; None if this process does both itself."""
        settings = self.app.settings.ingest
        if (name or settings.engine) == "local":
            yield None
            return
        from ingest.refresh.ray_engine import RayEngine

        engine = RayEngine(settings.ray_address)
        try:
            yield engine
        finally:
            await asyncio.to_thread(engine.close)

    async def _opened(
        self, corpus: str, source: SourceSettings, night: datetime | None, engine: Engine | None
    ) -> LiveSource:
        """Open a source. If that fails, the failure is recorded in the history, like that of any refresh."""
        from bot.server.refresh import source_factory
        from ingest.refresh.refresh_run import hold_lease, record_run

        try:
            return await asyncio.to_thread(source_factory.open_source, source, replace(self._around, engine=engine))
        except Exception:
            store = self.app.passages
            with suppress(RefreshRefused):  # another process refreshes the corpus
                begun = RefreshReport(corpus)
                async with (
                    hold_lease(store.leases, corpus, clock=utc_now) as lease,
                    record_run(store.runs, begun, lease.owner, night, utc_now),
                ):
                    raise
            raise

    @property
    def _around(self) -> SourceContext:
        return SourceContext(self.app.settings.home, os.environ, programs=self.app.settings.ingest.programs)


_COLLECTED = (1_000, 5, 100)
"""Thresholds of the garbage collector: young objects take 5 ms to collect; all objects are collected rarely."""


async def load_ahead(app: App) -> None:
    """Load what the first question would have to load, and exempt it from garbage collection. Takes seconds."""
    if isinstance(app.llm, LazyModel):
        with suppress(PipelineError):  # the first call reports it
            await app.llm.open()
    await asyncio.to_thread(_load_code, app.settings)


def _load_code(settings: Settings) -> None:
    if settings.model.configured:
        from pipeline.prompts.prompt_templates import load_templates  # imports jinja2

        load_templates(student=settings.model.student, sharing=settings.model.plain().shares_beginning)
    is_abstention("")
    detect_small_talk("")
    compile_all()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTED)


def find_local_opener(embedder: str) -> Callable[[], Embedder] | None:
    """Return a function by which any process can open this embedder; None if only this process has its key."""
    return partial(open_embedder, key, {}, threads=1) if (key := find_key(embedder)) else None


BotService: TypeAlias = Union[LocalService, "RemoteService"]


_LARGE = {".xml": 240_000_000}  # bytes of a dump with about 200,000 passages
_LARGE_PACKED = 60_000_000


def is_large_dump(source: SourceSettings) -> bool:
    """Return whether a source is a dump whose passages would take hours to embed, such as any dump on a mirror."""
    if getattr(source, "type", "") != "wikipedia":
        return False
    dump = getattr(source, "dump", None)
    return dump is None or (dump.is_file() and dump.stat().st_size > _LARGE.get(dump.suffix, _LARGE_PACKED))


def hash_source(source: SourceSettings) -> str:
    """Return a short hash of a source's settings; if they change, the checkpoint of a refresh becomes invalid."""
    return hashlib.sha256(source.model_dump_json().encode()).hexdigest()[:16]
