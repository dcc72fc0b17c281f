"""The composition root: storage is opened here, and everything else gets what it needs as arguments.

`open_records` is for commands that only read the record: it takes no lock and loads no model. `open_app` owns the home.
"""

import asyncio
import hashlib
import json
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from bot.lazy_model import LazyModel
from bot.settings import Settings
from bot.versions import VERSION, prompts_digest, support_digest
from pipeline import checking, checking_texts
from pipeline.kit import Supports, System
from pipeline.model import LLM
from pipeline.supporting import Checker, verbatim
from pipeline.systems import extractive, wikichat, wikichat_fast
from storage.audit import AuditLog
from storage.chroma import ChromaServer
from storage.database import open_database
from storage.dense import DenseIndex
from storage.embedding.lazy_states import LazyStates
from storage.embedding.opening import open_embedder
from storage.leases import Leases
from storage.lexical import LexicalIndex
from storage.lock import hold
from storage.manifest import Manifest
from storage.overrides import ChannelOverrides
from storage.passages import PassageStore
from storage.queue import Queue
from storage.retrieving import Threads
from storage.spending import Spending

MODELLED = "wikichat-fast"
"""The system that answers where a model is configured and no system is set."""
SYSTEMS: Mapping[str, System] = MappingProxyType(
    {MODELLED: wikichat_fast.answer, "wikichat": wikichat.answer, "extractive": extractive.answer}
)
"""Every system by the name that settings and `--system` use."""
CHECKS: Mapping[str, System] = MappingProxyType(
    {MODELLED: checking.by_model, "wikichat": checking.by_model, "extractive": checking.by_rules}
)
"""What checks a claim, by the name of the system that is of its kind."""
TEXT_CHECKS: Mapping[str, System] = MappingProxyType(
    {
        MODELLED: checking_texts.by_model,
        "wikichat": checking_texts.by_model,
        "extractive": checking_texts.by_rules,
    }
)
"""What checks each statement of a text, by the same names."""


@dataclass(frozen=True)
class Records:
    """What can be read beside a process that owns the home."""

    audit: AuditLog
    manifest: Manifest


@dataclass(frozen=True)
class App:
    """Everything a turn or a refresh needs, opened."""

    settings: Settings
    passages: PassageStore
    manifest: Manifest
    audit: AuditLog
    queue: Queue
    spending: Spending
    overrides: ChannelOverrides
    systems: Mapping[str, System] = field(default_factory=lambda: SYSTEMS)
    supports: Supports = verbatim
    """The local check that the gate holds every sentence to."""
    examines: Supports = verbatim
    """The local check of claims that somebody asks about."""
    llm: LLM | None = None

    @property
    def versions(self) -> Mapping[str, str]:
        """What a turn ran under, for its record: code, settings, prompts, support check, and who embeds."""
        return {
            "version": VERSION,
            "settings": settings_digest(self.settings),
            "prompts": prompts_digest(),
            "support": support_digest(),
            "embedder": self.passages.embedder.name,
        }

    @property
    def model(self) -> str | None:
        """The names of the models that may be asked; None where none is configured."""
        return self.settings.model.names or None

    @property
    def system(self) -> str:
        """The system that answers where nothing else is asked for."""
        return self.settings.system or (MODELLED if self.settings.model.configured else "extractive")


@asynccontextmanager
async def open_records(settings: Settings) -> AsyncIterator[Records]:
    """Open the database alone.

    Raises:
        StorageError: the database cannot be used; the message says what to do.
    """
    with open_database(settings.database, home=settings.home) as database:
        yield Records(AuditLog(database), Manifest(database))


@asynccontextmanager
async def open_app(settings: Settings, *, rebuilding: bool = False) -> AsyncIterator[App]:
    """Take the home's lock and open the database, the indexes and the embedder.

    With `rebuilding`, the home's indexes are removed first, whatever their state: they are about to be made again.

    Raises:
        HomeLocked: another process owns the home.
        StorageError: something there cannot be used; the message says what to do.
    """
    async with AsyncExitStack() as stack:
        stack.enter_context(hold(settings.home))
        database = stack.enter_context(open_database(settings.database, home=settings.home))
        if not settings.database:
            # Whoever held one is gone: the home's lock is ours, and nobody else has its database.
            await Leases(database).clear()
        manifest = Manifest(database)
        if rebuilding:
            await asyncio.to_thread(_remove_indexes, settings.home)
        indexes = stack.enter_context(ExitStack())
        store = await asyncio.to_thread(_store, settings, manifest, indexes)
        if not rebuilding:
            await store.check()
        states = LazyStates(settings.home, store.threads.states)
        strictness, names = settings.support.strictness, settings.support.names
        yield App(
            settings,
            store,
            manifest,
            AuditLog(database),
            Queue(database),
            Spending(database),
            ChannelOverrides(database),
            supports=Checker(states, strictness or "normal", names),
            examines=Checker(states, strictness or "strict", names),
            llm=LazyModel(settings.model.plain(), stack) if settings.model.configured else None,
        )


def _store(settings: Settings, manifest: Manifest, stack: ExitStack) -> PassageStore:
    options = settings.embedding.options
    embedder = open_embedder(settings.embedding.function, options)
    place = ChromaServer(settings.chroma.url) if settings.chroma.url else settings.home / "chroma"
    dense = DenseIndex(place, embedder=embedder.name)
    stack.callback(dense.close)
    lexical = LexicalIndex(settings.home / "lexical")
    stack.callback(lexical.close)
    # They end first: what was cancelled may still be in the middle of a commit.
    threads = Threads.started(stack)
    return PassageStore(manifest, dense, lexical, embedder, threads, own_first=settings.ranking.own_first)


def _remove_indexes(home: Path) -> None:
    for name in ("chroma", "lexical"):
        shutil.rmtree(home / name, ignore_errors=True)


def settings_digest(settings: Settings) -> str:
    """Return a short hash of the settings a turn ran under; where two turns differ, so did their settings.

    No secret goes into it: those of models and platforms count as set or not, and the database's address not at all.
    """
    plain = json.dumps(settings.model_dump(mode="json", exclude={"database"}), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:16]
