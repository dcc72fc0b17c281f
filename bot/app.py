"""The application object, with everything that a turn or a refresh needs, and a smaller one that only reads records.

`bot.wiring` builds both; other modules receive them as arguments.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Protocol

from bot.settings.tables.settings_tables import Settings
from pipeline.kit import Rerank, Supports, SystemEntry, no_reranking
from pipeline.llm.model import LLM
from pipeline.llm.server_load import LoadWatch
from pipeline.support.support_check import check_verbatim
from pipeline.systems import DEFAULT_SYSTEM, DEFAULT_WITHOUT_MODEL, SYSTEMS
from storage.database.queue import Queue
from storage.manifest import Manifest
from storage.passages import PassageStore
from storage.record.admin_choices import ApprovedExamples, ChannelOverrides
from storage.record.audit_log import AuditLog
from storage.record.proof.receipts import RecordPosition
from storage.record.record_search import RecordSearch
from storage.record.turn_index import Spending
from storage.types import Hit, QueryTime


class SettingsSource(Protocol):
    """The source of the settings in force: fixed `Settings`, or the `LiveSettings` of a server."""

    @property
    def current(self) -> Settings: ...


class WebCorpus(AbstractContextManager["WebCorpus"], Protocol):
    """The web as a corpus.

    This protocol avoids importing `ingest.web.search_engines.web_search.WebSearch`, which needs lxml.
    """

    corpus: str

    async def find(self, query: str, count: int) -> tuple[str, ...]:
        """Return the addresses of at most `count` results. Raises `SourceUnavailable`."""
        ...

    async def search(
        self,
        query: str,
        pages: int,
        skip: Collection[str] = (),
        time: QueryTime = None,
        *,
        local: Callable[[str], Awaitable[tuple[Hit, ...]]] | None = None,
        seconds: float | None = None,
    ) -> tuple[Hit, ...]:
        """Return passages of at most `pages` pages, without those to `skip`. Raises `SourceUnavailable`.

        A page that `local` finds is not fetched. With `seconds`, the search ends earlier.
        """
        ...

    def refuse_while_resting(self) -> None:
        """Raise `SourceUnavailable` if the engine has just failed."""
        ...


@dataclass(frozen=True)
class Records:
    """The parts of the record that can be read while another process owns the home."""

    audit: AuditLog
    manifest: Manifest
    examples: ApprovedExamples
    search: RecordSearch


@dataclass(frozen=True)
class App:
    """Everything that a turn or a refresh needs."""

    settings_source: SettingsSource
    passages: PassageStore
    manifest: Manifest
    audit: AuditLog
    queue: Queue
    spending: Spending
    overrides: ChannelOverrides
    examples: ApprovedExamples
    find_position: Callable[[str], Awaitable[RecordPosition | None]]
    """Returns where a turn is in the signed record; None if it is not there. Raises `StorageError`."""
    systems: Mapping[str, SystemEntry] = field(default_factory=lambda: SYSTEMS)
    supports: Supports = check_verbatim  # the gate's local check of each sentence
    examines: Supports = check_verbatim  # the local check of claims in `check TEXT`
    llm: LLM | None = None
    load: LoadWatch = field(default_factory=LoadWatch)  # of the model's server
    rerank: Rerank = no_reranking
    web: WebCorpus | None = None  # the search engine, if one is configured
    versions: Mapping[str, str] = field(default_factory=dict)
    """The versions of code, prompts and models, for the record of each turn."""
    observe_call: Callable[[str, object, str, float], None] = lambda *_: None
    """Receives each call of a platform: the platform, the call, its outcome and its seconds."""

    @property
    def settings(self) -> Settings:
        """The settings in force now. Callers that read them again after an `await` should take a `snapshot`."""
        return self.settings_source.current

    def snapshot(self) -> "App":
        """Return this application with the settings of this moment; later changes do not affect it."""
        return replace(self, settings_source=self.settings)

    @property
    def model(self) -> str | None:
        """The names of the configured models; None if there are none."""
        return (self.settings.model.names or None) if self.llm else None

    @property
    def system(self) -> str:
        """The system that answers unless a request names another."""
        return self.settings.system or (DEFAULT_SYSTEM if self.llm else DEFAULT_WITHOUT_MODEL)
