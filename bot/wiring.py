"""The composition root: open storage, indexes and models, and build what one turn works with.

`open_records` is for commands that only read the record: it takes no lock and loads no model. `open_app` owns the
home. `build_kit` makes a turn's kit, gate and recorder, all new for each turn, with one budget for all that is asked
of a model.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from importlib import resources
from random import Random
from typing import TYPE_CHECKING

from bot import read_version
from bot.access import Asker, select_readable
from bot.curation.example_pool import load_demos
from bot.settings.live.live_settings import LiveSettings, SettingsSource, read_current
from bot.settings.tables.settings_tables import Settings
from bot.turn_search import (
    build_engine,
    build_find_document,
    build_search,
    list_corpora,
    open_web_search,
    require_existing,
    snapshot_search,
)
from pipeline.gate import Gate, Recorder, Verify
from pipeline.kit import (
    Ask,
    Effort,
    Kit,
    Rerank,
    Stream,
    Supports,
    SystemEntry,
    ask_unconfigured,
    no_reader,
    stream_unconfigured,
)
from pipeline.llm.model_client import OpenAIModel, open_model
from pipeline.llm.model_settings import ModelSettings
from pipeline.llm.server_load import CallSample, LoadWatch
from pipeline.model import LLM, BudgetMeter, ModelCall, ModelReply, ReplyPiece
from pipeline.stages.draft.sentence_judging import SentenceJudge
from pipeline.stages.examples.demo_ranking import TurnDemos
from pipeline.support.support_check import SupportChecker, check_verbatim
from pipeline.systems import DEFAULT_SYSTEM, DEFAULT_WITHOUT_MODEL, SYSTEMS
from pipeline.types import Conversation, Event, Turn
from storage.database.engine import Database, open_database, open_record
from storage.database.queue import Queue
from storage.database.refresh_log import Leases
from storage.database.worker_threads import ThreadPool
from storage.errors import StorageError
from storage.home.home_folder import lock_home
from storage.indexes.chroma_connection import ChromaLocation, ChromaServer
from storage.indexes.dense import open_dense_index
from storage.indexes.embedding import READER_SHA256, LazyReader, load_answer_reader, load_token_states, open_embedder
from storage.indexes.index_state import refuse_lost_database
from storage.indexes.lexical import LexicalIndex
from storage.manifest import Manifest
from storage.passages import IndexThreads, PassageStore
from storage.record.admin_choices import ApprovedExamples, ChannelOverrides
from storage.record.audit_log import AuditLog
from storage.record.proof.receipts import RecordPosition, find_position
from storage.record.record_search import RecordSearch
from storage.record.spending import Spending
from storage.types import DocumentId, is_web_corpus

if TYPE_CHECKING:
    from ingest.web.search_engines.web_search import WebSearch


class LazyModel:
    """An `LLM`. What is wrong with its settings is said by the first call, so that all else works without it."""

    def __init__(
        self, settings: ModelSettings, stack: AsyncExitStack, observe: Callable[[CallSample], None] = lambda _: None
    ) -> None:
        """Take the model's settings, the stack that closes it in the end, and who is told what each call took."""
        self._settings = settings
        self._stack = stack
        self._observe = observe
        self._opening = asyncio.Lock()
        self._opened: OpenAIModel | None = None

    def structured(self, stage: str) -> bool:
        """Return whether calls of a stage may carry a schema, as far as is known now."""
        return self._opened.structured(stage) if self._opened else self._settings.plan(stage).structured != "text"

    def busy(self) -> bool:
        """Return whether a call would have to wait for its place now."""
        return self._opened is not None and self._opened.busy()

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        return await (await self.open()).complete(call, spent)

    async def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncGenerator[ReplyPiece | ModelReply, None]:
        async with aclosing((await self.open()).stream(call, spent)) as parts:
            async for part in parts:
                yield part

    async def open(self) -> OpenAIModel:
        """Open it unless it is open; nothing is sent. Raises `ModelUnavailable`."""
        async with self._opening:
            if self._opened is None:
                self._opened = await self._stack.enter_async_context(open_model(self._settings, observe=self._observe))
            return self._opened


@dataclass(frozen=True)
class Records:
    """The log and the manifest, which can be read beside a process that owns the home."""

    audit: AuditLog
    manifest: Manifest
    examples: ApprovedExamples
    search: RecordSearch


@dataclass(frozen=True)
class App:
    """Everything a turn or a refresh needs, opened."""

    settings_source: SettingsSource
    passages: PassageStore
    manifest: Manifest
    audit: AuditLog
    queue: Queue
    spending: Spending
    overrides: ChannelOverrides
    examples: ApprovedExamples
    systems: Mapping[str, SystemEntry] = field(default_factory=lambda: SYSTEMS)
    supports: Supports = check_verbatim  # the local check that the gate holds every sentence to
    examines: Supports = check_verbatim  # the local check of claims that somebody asks about
    llm: LLM | None = None
    load: LoadWatch = field(default_factory=LoadWatch)  # of the model's server
    rerank: Rerank = no_reader
    web: "WebSearch | None" = None  # the search engine, where one is configured
    observe_call: Callable[[str, object, str, float], None] = lambda *_: None
    """Told of calls of platforms: whose, which, how it ended, and in how many seconds."""

    @property
    def settings(self) -> Settings:
        """The settings in force now. Whoever reads them more than once, with a wait in between, takes a `snapshot`."""
        return read_current(self.settings_source)

    def snapshot(self) -> "App":
        """Return it under the settings in force now, whatever they are later."""
        return replace(self, settings_source=self.settings)

    @property
    def versions(self) -> Mapping[str, str]:
        """What a turn ran under, for its record: code, settings, prompts, support check, reader, and who embeds."""
        return {
            "version": read_version(),
            "settings": digest_settings(self.settings),
            "prompts": digest_files("pipeline.prompts", ".j2", ".json"),
            "support": digest_files("pipeline.support", "weights.json"),
            "reader": READER_SHA256[:16],
            "embedder": self.passages.embedder.name,
        }

    @property
    def model(self) -> str | None:
        """The names of the models that may be asked; None where none is configured."""
        return self.settings.model.names or None

    async def find_position(self, turn_id: str) -> RecordPosition | None:
        """Return where an answer stands in the record; None where there is none. Raises `StorageError`."""
        return await find_position(self.audit.database, turn_id)

    @property
    def system(self) -> str:
        """The system that answers where nothing else is asked for."""
        return self.settings.system or (DEFAULT_SYSTEM if self.settings.model.configured else DEFAULT_WITHOUT_MODEL)


async def find_visible_corpora(app: App, asker: Asker) -> tuple[str, ...]:
    """Return the corpora that there are and whose readers admit somebody where they stand. Raises `StorageError`."""
    readers = app.settings.visible_to
    there = await list_corpora(app.settings, app.manifest)
    return select_readable({info.name: readers.get(info.name, ()) for info in there}, asker)


async def find_forgotten_documents(app: App | Records, documents: Collection[DocumentId]) -> frozenset[DocumentId]:
    """Return those of the documents that were forgotten. Raises `StorageError`.

    One without a key is one that nobody knows: it may be any that was forgotten in its corpus.
    """
    gone = {corpus: await app.manifest.forgotten(corpus) for corpus in sorted({corpus for corpus, _ in documents})}
    return frozenset(one for one in documents if gone[one[0]] and one[1] in {"", *gone[one[0]]})


@asynccontextmanager
async def open_records(settings: Settings) -> AsyncIterator[Records]:
    """Open the database alone.

    Raises:
        StorageError: the database cannot be used; the message says what to do.
    """
    with open_record_database(settings) as database:
        yield build_records(database)


def build_records(database: Database) -> Records:
    return Records(AuditLog(database), Manifest(database), ApprovedExamples(database), RecordSearch(database))


@contextmanager
def open_record_database(settings: Settings) -> Iterator[Database]:
    """Open the database for whoever only reads the record. Blocks; raises as `open_records` does."""
    _refuse_lost_database(settings)
    with open_record(settings.database, home=settings.home) as database:
        yield database


def _refuse_lost_database(settings: Settings) -> None:
    if not settings.database:
        refuse_lost_database(settings.home, locate_chroma(settings))


@asynccontextmanager
async def open_app(source: SettingsSource, *, rebuilding: bool = False) -> AsyncIterator[App]:
    """Take the home's lock and open the database, the indexes and the embedder.

    With `rebuilding`, the home's indexes are about to be made again, whatever their state.

    Raises:
        HomeLocked: another process owns the home.
        StorageError: something there cannot be used; the message says what to do.
    """
    live = source if isinstance(source, LiveSettings) else LiveSettings(source)
    settings = live.current
    async with AsyncExitStack() as stack:
        stack.enter_context(lock_home(settings.home))
        await asyncio.to_thread(_refuse_lost_database, settings)
        database = stack.enter_context(open_database(settings.database, home=settings.home))
        if not settings.database:
            # Whoever held one is gone: the home's lock is ours, and nobody else has its database.
            await Leases(database).clear()
        manifest = Manifest(database)
        indexes = stack.enter_context(ExitStack())
        store = await asyncio.to_thread(partial(_open_store, live, manifest, indexes, rebuilding=rebuilding))
        if not rebuilding:
            await store.recover()
            await store.check()
        stack.push_async_callback(store.lazy.flush)
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
            rerank=LazyReader(load_answer_reader, store.threads.states),
            web=stack.enter_context(web) if web else None,
        )


def _build_checkers(settings: Settings, threads: ThreadPool) -> tuple[SupportChecker, SupportChecker]:
    """Return the local checks of answers, and of claims that somebody asks about."""
    states = LazyReader(load_token_states, threads)
    strictness, names = settings.support.strictness, settings.support.names
    answers = SupportChecker(states, strictness or "normal", names)
    return answers, SupportChecker(states, strictness or "strict", names)


@asynccontextmanager
async def open_text_check(settings: Settings, question: str) -> AsyncIterator[tuple[Supports, Verify | None]]:
    """Give what a gate holds an answer to that a person wrote: the local check, and the model where there is one."""
    async with AsyncExitStack() as stack:
        supports, _ = _build_checkers(settings, stack.enter_context(ThreadPool("states")))
        verify: Verify | None = None
        if settings.model.configured:
            from pipeline.prompts.prompter import Prompter  # imports jinja2

            limits, now = settings.limits.kit(student=settings.model.student), datetime.now(settings.zone)
            spent = BudgetMeter(settings.limits.budget, deadline=time.monotonic() + limits.seconds)
            model, random = LazyModel(settings.model.plain(), stack), Random(question)  # noqa: S311 - sampling
            student, talk = limits.student, Conversation((Turn("user", question, at=now),))
            prompter = Prompter(model, spent, note=lambda *_: None, now=now, random=random, student=student)
            verify = SentenceJudge(prompter.stream, talk, student=student)
        yield supports, verify


def locate_chroma(settings: Settings) -> ChromaLocation:
    """Return the Chroma server of the settings, or else the folder in the home.

    Raises `StorageError` for a folder beside a database that other homes share: none would hold all vectors.
    """
    chroma = settings.chroma
    if not chroma.url and settings.database:
        hint = "Name a Chroma server for all of them in [chroma] url (`chroma run` starts one), or empty `database`."
        raise StorageError("A PostgreSQL database is shared by homes, but the vectors would be in this one.", hint=hint)
    if not chroma.url:
        return settings.home / "chroma"
    token = chroma.token.get_secret_value()
    return ChromaServer(chroma.url, chroma.tenant, chroma.database, token, chroma.scheme, chroma.ca_file)


def _open_store(live: LiveSettings, manifest: Manifest, stack: ExitStack, *, rebuilding: bool) -> PassageStore:
    settings = live.current
    chosen = settings.embedding
    embedder = open_embedder(chosen.function, chosen.options, chosen.bits)
    dense = open_dense_index(locate_chroma(settings), embedder.name, rebuilding=rebuilding)
    stack.callback(dense.close)
    lexical = LexicalIndex(settings.home / "lexical", rebuilding=rebuilding)
    stack.callback(lexical.close)
    # They end first: what was cancelled may still be in the middle of a commit.
    threads = IndexThreads.start(stack)

    def own_first() -> float:
        return live.current.ranking.own_first

    return PassageStore(manifest, dense, lexical, embedder, threads, own_first=own_first, kept=chosen.kept)


def digest_settings(settings: Settings) -> str:
    """Return a short hash of the settings a turn ran under; where two turns differ, so did their settings.

    No secret goes into it: those of models and platforms count as set or not, and the database's address not at all.
    """
    plain = json.dumps(settings.model_dump(mode="json", exclude={"database"}), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:16]


@cache
def digest_files(package: str, *endings: str) -> str:
    """Return a short hash of the names and contents of a package's files."""
    whole = hashlib.sha256()
    files = [file for file in resources.files(package).iterdir() if file.name.endswith(endings)]
    for file in sorted(files, key=lambda file: file.name):
        for part in (file.name.encode(), file.read_bytes()):
            whole.update(len(part).to_bytes(8))
            whole.update(part)
    return whole.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class TurnTools:
    """One turn's kit, and what is asked of gate and recorder when it has ended."""

    kit: Kit
    gate: Gate
    recorder: Recorder
    deadline: float  # on `time.monotonic()`


def build_kit(
    app: App,
    talk: Conversation,
    scope: tuple[str, ...],
    *,
    seed: str,
    tell: Callable[[Event], None],
    supports: Supports,
    tone: str = "",
    effort: Effort = "normal",
) -> TurnTools:
    """Return what a system works with to answer the last turn of a conversation; its time begins now.

    `scope` are the corpora that may be read; `seed` makes fences and samples the same again; `tone` is how a model is
    asked to word what it writes; `effort` how much is looked up and verified.
    """
    limits = app.settings.limits.kit(student=app.settings.model.student).at(effort)
    deadline = time.monotonic() + limits.seconds
    engine = build_engine(app.web, app.manifest, scope)
    recorder = Recorder(
        snapshot_search(build_search(app.passages, scope)), tell=tell, engine=engine and snapshot_search(engine)
    )
    random = Random(seed)  # noqa: S311 - sampling, not secrets
    now = talk.question.at or datetime.now(app.settings.zone)
    ask: Ask = ask_unconfigured
    stream: Stream = stream_unconfigured
    verify: Verify | None = None
    seen = Conversation(talk.turns[-limits.turns :])
    compare = app.passages.compare
    demos = TurnDemos(partial(load_demos, app.examples, scope, partial(find_forgotten_documents, app)), compare)
    if app.llm:
        from pipeline.prompts.prompter import Prompter  # imports jinja2

        spent, student = BudgetMeter(app.settings.limits.budget, deadline=deadline), limits.student
        prompter = Prompter(
            app.llm,
            spent,
            note=recorder.note,
            now=now,
            random=random,
            student=student,
            tone=tone,
            demos=lambda: demos.shown,
            sharing=app.settings.model.plain().shares_beginning,
        )
        ask, stream = prompter.ask, prompter.stream
        verify = SentenceJudge(stream, seen, student=student)
    still_there = require_existing(supports, build_find_document(app.manifest))
    asked = tuple(turn.text for turn in seen.turns)
    gate = Gate(found=recorder.found, supports=still_there, tell=tell, verify=verify, asked=asked)
    kit = Kit(
        ask=ask,
        stream=stream,
        search=recorder.search,
        corpora=sum(not is_web_corpus(name) for name in scope),
        engine=recorder.engine,
        compare=compare,
        demos=demos,
        rerank=app.rerank,
        supports=supports,
        say=gate.say,
        judge=gate.judge,
        prefers_quotation=gate.prefers_quotation,
        end_draft=gate.end_draft,
        tell=recorder.tell,
        limits=limits,
        now=now,
        random=random,
        run_in_thread=app.passages.threads.think.run,
        busy=app.llm.busy if app.llm else lambda: False,
        quote=gate.quote,
    )
    return TurnTools(kit, gate, recorder, deadline)
