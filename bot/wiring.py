"""The composition root: open storage, indexes and models, and build the application from them.

`open_records` is for commands that only read the record: it takes no lock and loads no model. `open_app` owns the
home.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from datetime import datetime
from functools import partial
from random import Random

from bot import read_version
from bot.answering.turn_record import read_versions
from bot.app import App, Records, SettingsSource, WebCorpus
from bot.settings.tables.search_settings import SearchEngineSettings
from bot.settings.tables.settings_tables import Settings
from pipeline.gate import Verify
from pipeline.kit import Supports
from pipeline.llm.model import BudgetMeter
from pipeline.llm.model_client import LazyModel
from pipeline.llm.server_load import LoadWatch
from pipeline.stages.draft.sentence_judging import SentenceJudge
from pipeline.support.support_check import SupportChecker
from pipeline.types import Conversation, Turn
from storage.database.engine import Database, open_database
from storage.database.queue import Queue
from storage.database.refresh_log import Leases
from storage.database.worker_threads import IndexThreads, ThreadPool
from storage.home.home_folder import lock_home
from storage.home.record_database import open_record
from storage.indexes.dense import open_dense_index
from storage.indexes.embedding import LazyFunction, load_cross_encoder, load_token_states, open_embedder
from storage.indexes.index_state import refuse_lost_database
from storage.indexes.lexical import LexicalIndex
from storage.manifest import Manifest
from storage.passages import PassageStore
from storage.record.admin_choices import ApprovedExamples, ChannelOverrides
from storage.record.audit_log import AuditLog
from storage.record.proof.receipts import find_position
from storage.record.record_search import RecordSearch
from storage.record.turn_index import Spending
from storage.search.corpus_embedders import choose_by_language


@asynccontextmanager
async def open_records(settings: Settings) -> AsyncIterator[Records]:
    """Open only the database. Raises `StorageError`, whose message says what to do, if it cannot be used."""
    with open_record_database(settings) as database:
        yield build_records(database)


def build_records(database: Database) -> Records:
    return Records(AuditLog(database), Manifest(database), ApprovedExamples(database), RecordSearch(database))


@contextmanager
def open_record_database(settings: Settings) -> Iterator[Database]:
    """Open the database in order to read the record. Blocks; raises as `open_records` does."""
    _refuse_lost_database(settings)
    with open_record(settings.database, home=settings.home) as database:
        yield database


def _refuse_lost_database(settings: Settings) -> None:
    if not settings.database:
        refuse_lost_database(settings.home, settings.chroma_location)


@asynccontextmanager
async def open_app(source: SettingsSource, *, rebuilding: bool = False) -> AsyncIterator[App]:
    """Take the home's lock and open the database, the indexes and the embedder.

    `rebuilding` means that the home's indexes are about to be rebuilt, so their state is not checked.

    Raises:
        HomeLocked: another process owns the home.
        StorageError: the database or an index cannot be used; the message says what to do.
    """
    settings = source.current
    async with AsyncExitStack() as stack:
        stack.enter_context(lock_home(settings.home))
        await asyncio.to_thread(_refuse_lost_database, settings)
        database = stack.enter_context(open_database(settings.database, home=settings.home))
        if not settings.database:
            # We have the home's lock, so the process that held a lease has ended.
            await Leases(database).clear()
        manifest = Manifest(database)
        indexes = stack.enter_context(ExitStack())
        store = await asyncio.to_thread(partial(_open_store, source, manifest, indexes, rebuilding=rebuilding))
        if not rebuilding:
            await store.recover()
            await store.check()
        stack.push_async_callback(store.flush)
        supports, examines = _build_checkers(settings, store.threads.states)
        web, load = open_web_search(settings.search_engine), LoadWatch()
        yield App(
            source,
            store,
            manifest,
            AuditLog(database),
            Queue(database),
            Spending(database),
            ChannelOverrides(database),
            ApprovedExamples(database),
            supports=supports,
            examines=examines,
            llm=LazyModel(settings.model.plain(), stack, load.observe) if settings.model.configured else None,
            load=load,
            versions=read_versions(store.embedder.name),
            rerank=LazyFunction(load_cross_encoder, store.threads.rerank),
            web=stack.enter_context(web) if web else None,
            find_position=partial(find_position, database),
        )


def _build_checkers(settings: Settings, threads: ThreadPool) -> tuple[SupportChecker, SupportChecker]:
    """Return the local checks of answers, and of claims that users ask about."""
    states = LazyFunction(load_token_states, threads)
    strictness, names = settings.support.strictness, settings.support.names
    answers = SupportChecker(states, strictness or "normal", names)
    return answers, SupportChecker(states, strictness or "strict", names)


def open_web_search(search: SearchEngineSettings) -> WebCorpus | None:
    """Return the configured search engine, which a `with` block opens; None if none is configured."""
    if not search.corpus:
        return None
    # Imported late: most commands search no web.
    from ingest.web.search_engines.engine import ENGINES, EngineAccess
    from ingest.web.search_engines.web_search import ReadingBounds, WebSearch
    from ingest.web.web_client import build_user_agent

    agent = build_user_agent(search.contact or "no contact given", read_version())
    access = EngineAccess(search.address, agent, search.api_key.get_secret_value(), search.seconds)
    bounds = ReadingBounds(agent, search.seconds, search.page_tokens, search.hosts)
    return WebSearch(ENGINES[search.type](access), bounds)


@asynccontextmanager
async def open_text_check(settings: Settings, question: str) -> AsyncIterator[tuple[Supports, Verify | None]]:
    """Open the local check of an answer that a person wrote, and the model's check if one is configured."""
    async with AsyncExitStack() as stack:
        supports, _ = _build_checkers(settings, stack.enter_context(ThreadPool("states")))
        verify: Verify | None = None
        if settings.model.configured:
            from pipeline.prompts.prompter import Prompter  # imports jinja2

            limits, now = settings.limits.kit(student=settings.model.student), datetime.now(settings.zone)
            spent = BudgetMeter(settings.limits.budget, deadline=time.monotonic() + limits.seconds)
            model, random = LazyModel(settings.model.plain(), stack), Random(question)  # noqa: S311 - sampling
            talk = Conversation((Turn("user", question, at=now),))
            prompter = Prompter(model, spent, note=lambda *_: None, now=now, random=random, student=limits.student)
            verify = SentenceJudge(prompter.stream, talk)
        yield supports, verify


def _open_store(source: SettingsSource, manifest: Manifest, stack: ExitStack, *, rebuilding: bool) -> PassageStore:
    settings = source.current
    chosen = settings.embedding
    embedder = open_embedder(chosen.function, chosen.options)
    dense = open_dense_index(settings.chroma_location, embedder.name, rebuilding=rebuilding)
    stack.callback(dense.close)
    lexical = LexicalIndex(settings.home / "lexical", rebuilding=rebuilding)
    stack.callback(lexical.close)
    # The threads end before the indexes close: a cancelled task may still be committing.
    threads = IndexThreads.start(stack)

    def own_first() -> float:
        return source.current.ranking.own_first

    def choose_embedder(corpus: str, language: str) -> str:
        choice = source.current.find_corpus(corpus).embedder
        return choice or ("" if chosen.function else choose_by_language(corpus, language))

    places = manifest, dense, lexical, embedder, threads
    return PassageStore(*places, own_first=own_first, choose=choose_embedder, kept=chosen.kept)
