"""Build the tools of one turn, and run its system with them.

A turn searches the corpora of its scope, and the web if that is in its scope: alone in `search-engine`, or next to the
corpora (`web_beside`). The manifest lists no web pages: the web corpus exists while a search engine is configured, and
each of its pages exists until it is forgotten.

This module converts the expected errors of a turn to outcomes. Other errors are bugs: `question_answering` records and
raises them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from random import Random
from textwrap import shorten
from typing import ParamSpec, TypeVar

from bot.access import find_forgotten_documents
from bot.answering.example_pool import load_demos
from bot.answering.introduction import introduce
from bot.answering.pinned_answers import say_pinned
from bot.answering.web_beside import WebBeside, find_pages, find_stored_article, rank_with_web
from bot.app import App, WebCorpus
from bot.types import Failure, PinMark, TaskKind, TurnRequest
from bot.views.catalog import find_apology
from ingest.types import SourceUnavailable
from pipeline.errors import (
    BudgetExceeded,
    ModelRefused,
    ModelUnavailable,
    NotAClaim,
    PipelineError,
    PromptTooLong,
    QuestionTooLong,
    QuestionWithoutWords,
    SchemaNotOffered,
    SearchUnavailable,
    UnreadableReply,
)
from pipeline.gate import Exists, Gate, Recorder, Verify
from pipeline.kit import (
    Ask,
    Effort,
    Kit,
    Limits,
    Search,
    Stream,
    Supports,
    System,
    SystemEntry,
    ask_unconfigured,
    no_reranking,
    remember_scores,
    stream_unconfigured,
)
from pipeline.llm.model import BudgetMeter
from pipeline.prompts.demo_ranking import TurnDemos
from pipeline.stages.draft.sentence_judging import SentenceJudge
from pipeline.systems import DEFAULT_WITHOUT_MODEL, find_system
from pipeline.types import CitedSentence, Conversation, Event, Status
from storage.errors import StorageError, contain_panics
from storage.language.words import words
from storage.manifest import Manifest
from storage.types import Document, DocumentId, Hit, LogEntry, SearchQuery, is_web_corpus

EXPECTED_ERRORS = (TimeoutError, PipelineError, StorageError)  # errors that are not bugs
_REFUSALS = (BudgetExceeded, ModelRefused, NotAClaim, QuestionTooLong, QuestionWithoutWords)
TOO_SLOW, UNCONFIRMED = "too_slow", "unconfirmed_reply"
_MODEL_FAULTS = {TOO_SLOW, *(fault.kind for fault in (
    BudgetExceeded, ModelUnavailable, PromptTooLong, SchemaNotOffered, UnreadableReply,
))}  # fmt: skip
"""Kinds of failures after which a turn is finished without the model."""
MODEL_SHARE = 0.95  # of a turn's time: then its model call is stopped, so that the quotation comes in time
QUOTING_SECONDS = 10.0  # how long that may take, after the turn's own time

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """Everything that is decided about a turn before it runs."""

    id: str
    task: TaskKind
    request: TurnRequest  # without earlier turns made from documents that were forgotten since
    at: datetime  # when it was asked, in the time zone of the settings
    talk: Conversation  # its last turn is the question
    system: SystemEntry
    scope: tuple[str, ...]  # the corpora that may be read
    tone: str  # how the model is asked to word its text
    effort: Effort | None  # None for a check, which is always equally thorough
    limits: Limits
    opening: LogEntry


@dataclass(frozen=True, slots=True)
class TurnTools:
    """The tools of one turn: its kit, and the gate and recorder, whose results are read at the turn's end."""

    kit: Kit
    gate: Gate
    recorder: Recorder
    deadline: float  # of model calls, on `time.monotonic()`
    web: WebBeside | None = None  # the web search next to the corpora, if there is one


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the run of a turn ended."""

    status: Status
    failure: Failure | None = None
    pinned: PinMark | None = None  # set if a pinned answer was shown instead of running the system
    introduction: str = ""  # the bot's introduction of itself, if the question asked for one
    quoted_because: Failure | None = None  # why the model failed, so that the turn was finished without it


def build_tools(app: App, turn: PreparedTurn, supports: Supports, tell: Callable[[Event], None]) -> TurnTools:
    """Build the tools of a turn, and start its time limit. `supports` is its local check; `tell` gets its events."""
    deadline = time.monotonic() + MODEL_SHARE * turn.limits.seconds
    web, versions = _build_beside(app, turn), dict[DocumentId, Document]()
    search, pages = build_search(app, turn.scope, versions), build_web_search(app, turn.scope, web, versions)
    recorder = Recorder(web.join(search) if web else search, report=tell, web=pages)
    seen = Conversation(turn.talk.turns[-turn.limits.turns :])
    random = Random(turn.request.seed or turn.id)  # noqa: S311 - sampling, not secrets
    find_forgotten = partial(find_forgotten_documents, app.manifest)
    demos = TurnDemos(partial(load_demos, app.examples, turn.scope, find_forgotten), app.passages.compare)
    model = _build_model_calls(app, turn, seen, demos, recorder, random, deadline)
    gate = Gate(
        found=recorder.found,
        supports=supports,
        exists=build_existence_check(app.manifest),
        tell=tell,
        verify=model.verify,
        asked=tuple(shown.text for shown in seen.turns),
    )
    kit = Kit(
        ask=model.ask,
        stream=model.stream,
        busy=model.busy,
        search=recorder.search,
        corpora=sum(not is_web_corpus(name) for name in turn.scope),
        engine=None if web else recorder.engine,
        compare=app.passages.compare,
        demos=demos,
        rerank=no_reranking if turn.effort == "quick" and not turn.limits.one_call else remember_scores(app.rerank),
        supports=supports,
        say=gate.say,
        judge=gate.judge,
        replaced_by=gate.replaced_by,
        note=recorder.note,
        end_draft=gate.end_draft,
        quote=gate.quote,
        tell=recorder.tell,
        limits=turn.limits,
        now=turn.at,
        random=random,
        run_in_thread=app.passages.threads.think.run,
    )
    if web and app.web:
        web.connect(partial(_report_outages(_find_beside), app.web, turn.talk, replace(kit, engine=recorder.engine)))
        kit = replace(kit, with_web=partial(rank_with_web, web, turn.talk.question, kit))
    return TurnTools(kit, gate, recorder, deadline, web)


def _build_beside(app: App, turn: PreparedTurn) -> WebBeside | None:
    """Return the web search next to the corpora; None if the settings or the turn exclude it.

    The question itself is never sent, so a model must write the query. A check compares a claim with the corpora only.
    """
    engine = app.settings.search_engine
    may_read = app.web is not None and app.web.corpus in turn.scope
    writes = app.llm is not None and bool(turn.system.calls) and not turn.limits.one_call
    both = engine.every_system and may_read and writes and turn.task == "ask"
    return WebBeside(engine.wait_seconds) if both else None


async def _find_beside(web: WebCorpus, talk: Conversation, kit: Kit) -> tuple[Hit, ...]:
    web.refuse_while_resting()  # before the model writes a query
    return await find_pages(talk, kit)


@dataclass(frozen=True, slots=True)
class _ModelCalls:
    """The calls of the model in one turn; without a model they raise `ModelUnavailable`."""

    ask: Ask = ask_unconfigured
    stream: Stream = stream_unconfigured
    verify: Verify | None = None
    busy: Callable[[], bool] = lambda: False


def _build_model_calls(
    app: App,
    turn: PreparedTurn,
    seen: Conversation,
    demos: TurnDemos,
    recorder: Recorder,
    random: Random,
    deadline: float,
) -> _ModelCalls:
    """Build the model calls of a turn, which share one budget. `seen` is the conversation as the model sees it."""
    if not app.llm:
        return _ModelCalls()
    from pipeline.prompts.prompter import Prompter  # imports jinja2

    budget = app.settings.limits.budget
    prompter = Prompter(
        app.llm,
        BudgetMeter(replace(budget, calls=1) if turn.limits.one_call else budget, deadline=deadline),
        note=recorder.note,
        now=turn.at,
        random=random,
        student=turn.limits.student,
        brief=turn.limits.one_call and not turn.limits.student,
        tone=turn.tone,
        demos=lambda: demos.shown,
        sharing=app.settings.model.plain().shares_beginning,
    )
    verify = SentenceJudge(prompter.stream, seen)
    return _ModelCalls(prompter.ask, prompter.stream, verify, app.llm.busy)


async def run_system(
    app: App, turn: PreparedTurn, tools: TurnTools, choose: Callable[[SystemEntry], System]
) -> Outcome:
    """Run the function that `choose` picks of the system. Raises errors that are bugs.

    If the model fails or writes nothing that the documents confirm, the turn is finished as without a model: the asker
    gets no less than a quotation.
    """
    outcome = await _run_guarded(app, turn, tools, choose(turn.system), turn.limits.seconds)
    why = _find_model_fault(outcome, turn, tools) if turn.system.calls else None
    if not why:
        return outcome

    async def say(sentence: CitedSentence) -> bool:
        return any(sentence.text == said.text for said in tools.gate.spoken) or await tools.kit.say(sentence)

    quoting = replace(tools, kit=replace(tools.kit, say=say))
    quoted = await _run_guarded(app, turn, quoting, choose(find_system(DEFAULT_WITHOUT_MODEL)), QUOTING_SECONDS)
    if tools.gate.spoken:
        return Outcome(Status.ANSWERED, quoted_because=why)
    return replace(quoted, quoted_because=why) if outcome.failure and not quoted.failure else outcome


def _find_model_fault(outcome: Outcome, turn: PreparedTurn, tools: TurnTools) -> Failure | None:
    """Return why the model did not answer, though it might have; None if it did, or had nothing to answer with."""
    if outcome.failure:
        return outcome.failure if outcome.failure.kind in _MODEL_FAULTS else None
    misread, withheld = tools.recorder.misread, bool(tools.gate.withheld) or tools.gate.any_refused
    useless = outcome.status is not Status.ANSWERED or (misread and tools.gate.only_quotes)
    if turn.task != "ask" or not (useless and (misread or withheld)):
        return None
    kind = "unreadable_reply" if misread else UNCONFIRMED
    hint = "`footnote doctor --model` shows how well this model does."
    return Failure(kind, find_apology(kind, turn.talk.question.language), hint)


async def _run_guarded(app: App, turn: PreparedTurn, tools: TurnTools, system: System, limit: float) -> Outcome:
    """Show the answer that is pinned to the question, or else run the system. Raises errors that are bugs."""
    talk, pinned = turn.talk, None
    try:
        with contain_panics():
            async with asyncio.timeout(limit):
                if turn.task == "ask" and (examples := await app.examples.answers()):
                    pinned = await say_pinned(examples, talk, turn.scope, app.manifest, tools.kit, tools.recorder)
                if pinned:
                    return Outcome(Status.ANSWERED, pinned=pinned)
                status = await system(talk, tools.kit)
                if status is not Status.CHATTED:
                    return Outcome(status)
                mention, zone = turn.request.asker.kind == "channel", app.settings.zone
                text = await introduce(talk.question, turn.scope, app.manifest, tools.recorder, zone, mention=mention)
                return Outcome(status, introduction=text)
    except EXPECTED_ERRORS as error:
        late = time.monotonic() >= tools.deadline
        return Outcome(*classify_error(error, talk.question.language, seconds=turn.limits.seconds, late=late))


def build_search(app: App, scope: Sequence[str], versions: dict[DocumentId, Document] | None = None) -> Search:
    """Return the search of one turn in the ingested corpora of its scope."""
    corpora = tuple(name for name in scope if not is_web_corpus(name))

    @_report_outages
    async def search(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        return await app.passages.search(query.text, corpora, k)

    return snapshot_search(search, versions)


def build_web_search(
    app: App,
    scope: Sequence[str],
    beside: WebBeside | None = None,
    versions: dict[DocumentId, Document] | None = None,
) -> Search | None:
    """Return the web search of one turn; None if the web is not in its scope. It takes passages of `k` pages.

    Wikipedia articles are taken from the scope's corpora if these have them.
    """
    web, manifest = app.web, app.manifest
    if web is None or web.corpus not in scope:
        return None
    corpora = [name for name in scope if not is_web_corpus(name)]

    @_report_outages
    async def search(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        skip, seconds = await manifest.forgotten(web.corpus), beside.seconds_left if beside else None
        local = partial(find_stored_article, app.passages, corpora, query.time)
        return await web.search(query.text, k, skip, query.time, local=local, seconds=seconds)

    return snapshot_search(search, versions)


def snapshot_search(search: Search, shared: dict[DocumentId, Document] | None = None) -> Search:
    """Wrap a turn's search so that it returns each document in one version only.

    This is the version of the document's first hit; later hits in other versions are dropped. All searches of one
    turn get the same `shared` versions.
    """
    versions = {} if shared is None else shared

    async def search_snapshot(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        hits = await search(query, k)
        for hit in hits:
            versions.setdefault((hit.document.corpus, hit.document.key), hit.document)
        return tuple(hit for hit in hits if versions[hit.document.corpus, hit.document.key] == hit.document)

    return search_snapshot


def build_existence_check(manifest: Manifest) -> Exists:
    @_report_outages
    async def exists(corpus: str, key: str) -> bool:
        if is_web_corpus(corpus):
            return key not in await manifest.forgotten(corpus)
        return await manifest.document(corpus, key) is not None

    return exists


def _report_outages(read: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Wrap a function that reads, so that it raises `SearchUnavailable` if the storage or the web engine fails."""

    async def read_or_report(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await read(*args, **kwargs)
        except (StorageError, SourceUnavailable) as error:
            raise _explain_outage(error) from error

    return read_or_report


def _explain_outage(error: StorageError | SourceUnavailable) -> SearchUnavailable:
    """Return the error that a search raises for an outage, which must never look like "not found"."""
    place = "documents" if isinstance(error, StorageError) else "web"
    return SearchUnavailable(f"The {place} cannot be searched: {error}", hint=error.hint)


def classify_error(error: Exception, language: str, *, seconds: float, late: bool) -> tuple[Status, Failure]:
    """Return the outcome of a turn that ended with one of `EXPECTED_ERRORS`, in the asker's language if possible.

    `seconds` is the turn's limit; if the turn is `late`, a spent budget is reported as a turn that was too slow.
    """
    if isinstance(error, TimeoutError) or (late and isinstance(error, BudgetExceeded)):
        hint = f"The limit is {seconds:g} seconds: raise [limits] seconds, or ask again."
        return Status.FAILED, Failure(TOO_SLOW, find_apology(TOO_SLOW, language), hint)
    if not isinstance(error, PipelineError | StorageError):
        return Status.FAILED, describe_bug(error)
    status = Status.REFUSED if isinstance(error, _REFUSALS) else Status.FAILED
    sentence, detail = find_apology(error.kind, language), str(error)
    message = f"{sentence.rstrip('.。')}: {detail}" if sentence else detail
    return status, Failure(error.kind, message, error.hint)


def describe_bug(error: Exception) -> Failure:
    """Return the failure for an unexpected error. It is shortened, because the message may hold whole documents."""
    return Failure("internal", shorten(f"{type(error).__name__}: {error}", 200, placeholder=" …"), "")


def validate_query(text: str) -> str:
    """Return the query of a plain search. Raises `PipelineError`, as asking does, if it has no words or is too long."""
    if len(text) > (most := Limits().question_characters):
        message = f"The query has {len(text):,} characters; at most {most:,} are read."
        raise QuestionTooLong(message, hint="Search for a few words.")
    if not words(text):
        raise QuestionWithoutWords("There are no words in the query.", hint="Search for a few words.")
    return text
