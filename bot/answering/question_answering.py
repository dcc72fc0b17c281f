"""Answer a question: record it, let a system answer it, and record the answer before anyone reads it.

Only this module catches all errors of the pipeline: whatever happens, the turn is closed with its outcome.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter
from textwrap import shorten
from typing import Any

from structlog.contextvars import bound_contextvars

from bot.access import find_forgotten_documents, list_corpora, select_scope, select_visible
from bot.answering.introduction import load_introduction, render_introduction
from bot.answering.pinned_answers import find_pinned
from bot.answering.turn_kit import TurnTools, build_kit
from bot.answering.turn_record import (
    build_closing_entries,
    build_interruption,
    build_opening,
    build_unanswered,
    read_versions,
)
from bot.app import App
from bot.types import Failure, PinMark, TaskKind, TurnRequest, TurnResult
from bot.views.catalog import find_apology, render_answer_text, render_failure, render_verdict_text
from pipeline.errors import (
    BudgetExceeded,
    ModelRefused,
    NotAClaim,
    PipelineError,
    QuestionTooLong,
    QuestionWithoutWords,
)
from pipeline.kit import Effort, Supports, System, SystemEntry, lower_effort
from pipeline.systems import find_check, find_system, find_text_check
from pipeline.types import Answer, AnsweredSentence, Conversation, Event, SentencePassed, Status, Turn
from storage.errors import StorageError, contain_panics
from storage.language.detection import detect_language
from storage.types import DocumentId, EntryKind, Hit, LogEntry, SearchQuery

EXPECTED_ERRORS = (TimeoutError, PipelineError, StorageError)  # errors that are not bugs
_REFUSALS = (BudgetExceeded, ModelRefused, NotAClaim, QuestionTooLong, QuestionWithoutWords)
TOO_SLOW = "too_slow"
PINNED = "pinned"  # recorded as the system of a turn that showed a pinned answer
MAX_NEAREST_PAGES = 3
ABANDONED_AFTER = timedelta(hours=2)  # longer than any turn may take

log = logging.getLogger(__name__)


async def answer(app: App, request: TurnRequest, tell: Callable[[Event], None]) -> TurnResult:
    """Answer a question within the asker's scope, and record the turn.

    Other errors become a failed result.

    Raises:
        UnknownCorpus: a corpus was named that the asker cannot read.
        UnknownSystem: a system was named that does not exist.
        StorageError: the turn could not be recorded; nothing was answered.
        asyncio.CancelledError: the turn was cancelled, which is recorded.
    """
    return await _run_task(app, request, tell, _Task("ask", attrgetter("answer"), app.supports, render_answer_text))


async def check(app: App, request: TurnRequest, tell: Callable[[Event], None]) -> TurnResult:
    """Check a claim: the result has the claim with its verdict, its evidence as citations. Raises as `answer` does."""
    return await _run_task(app, request, tell, _Task("check", find_check, app.examines, render_verdict_text))


async def check_text(app: App, request: TurnRequest, tell: Callable[[Event], None]) -> TurnResult:
    """Check each statement of a text; each is a claim of the result with its own verdict. Raises as `answer` does.

    A text of one statement is checked as `check` does.
    """
    return await _run_task(app, request, tell, _Task("check", find_text_check, app.examines, render_verdict_text))


@dataclass(frozen=True, slots=True)
class _Task:
    """The functions for one kind of task: answering a question, or checking a claim."""

    name: TaskKind
    choose: Callable[[SystemEntry], System]  # picks the system's function for this task
    supports: Supports  # the local check
    render: Callable[[Answer, Turn], str]


@dataclass(frozen=True, slots=True)
class _OpenTurn:
    """A turn whose settings are resolved and whose opening is recorded."""

    app: App
    task: _Task
    request: TurnRequest
    id: str
    talk: Conversation
    scope: tuple[str, ...]
    system: SystemEntry
    tone: str
    effort: Effort | None  # None for a check, which is always equally thorough


async def _run_task(app: App, request: TurnRequest, tell: Callable[[Event], None], task: _Task) -> TurnResult:
    """Open the turn, build its tools, run the system, close the turn."""
    app = app.snapshot()
    settings, model, turn_id = app.settings, app.model, request.id or secrets.token_hex(6)
    system = find_system(request.system or app.system, app.systems)
    corpora = await list_corpora(settings, app.manifest)
    visible = select_visible(settings, corpora, request.asker)
    within = visible if request.within is None else tuple(name for name in visible if name in request.within)
    scope = select_scope(within, request.corpora)
    forgotten = await find_forgotten_documents(app.manifest, _list_documents(request.earlier))
    request = replace(request, earlier=_drop_turns(request.earlier, forgotten))
    question = Turn("user", request.text, at=datetime.now(settings.zone), language=_detect_language(request))
    talk = Conversation((*request.earlier, question))
    tone = settings.tone if request.tone is None else request.tone
    effort = _choose_effort(app, request.effort or settings.effort, system) if task.name == "ask" else {}
    ran = {"task": task.name, "system": system.name, "tone": tone, "model": model}
    ran |= {**read_versions(settings, app.passages.embedder.name), **effort}
    refreshed = {corpus.name: corpus.refreshed for corpus in corpora if corpus.name in scope}
    turn = _OpenTurn(app, task, request, turn_id, talk, scope, system, tone, effort.get("effort"))
    with bound_contextvars(turn=turn.id, **({"ticket": request.ticket} if request.ticket else {})):
        opening = build_opening(request, talk, refreshed, ran)
        await app.audit.append(LogEntry(turn.id, EntryKind.TURN_OPENED, opening))
        return await _run_turn(turn, tell)


async def _run_turn(turn: _OpenTurn, tell: Callable[[Event], None]) -> TurnResult:
    started, spoken = time.monotonic(), list[AnsweredSentence]()
    tools = build_kit(
        turn.app,
        turn.talk,
        turn.scope,
        seed=turn.request.seed or turn.id,
        tell=_collect_spoken(tell, spoken),
        supports=turn.task.supports,
        tone=turn.tone,
        effort=turn.effort or "normal",
    )
    system, seconds = turn.task.choose(turn.system), tools.kit.limits.seconds
    status, failure, pinned, introduction = Status.CANCELLED, None, None, ""
    try:
        with contain_panics():
            async with asyncio.timeout(seconds):
                pinned = await _say_pinned(turn, tools) if turn.task.name == "ask" else None
                status = Status.ANSWERED if pinned else await system(turn.talk, tools.kit)
                introduction = await _introduce(turn, tools) if status is Status.CHATTED else ""
    except EXPECTED_ERRORS as error:
        late = time.monotonic() >= tools.deadline
        status, failure = classify_error(error, turn.talk.question.language, seconds=seconds, late=late)
    except Exception as error:
        status, failure = Status.FAILED, describe_bug(error)
        raise
    finally:
        result = _build_result(turn, tools, status, failure, time.monotonic() - started)
        result = replace(result, text=introduction) if introduction else result
        result = replace(result, system=PINNED, pinned=pinned) if pinned else result
        closed = build_closing_entries(result, tools.recorder.steps, tools.gate.withheld, spoken)
        await _finish_uncancelled(turn.app.audit.append(*closed))
    return result


def _build_result(
    turn: _OpenTurn, tools: TurnTools, status: Status, failure: Failure | None, seconds: float
) -> TurnResult:
    recorder, usage, question = tools.recorder, tools.recorder.usage, turn.talk.question
    result = tools.gate.answer(status, nearest=recorder.nearest(MAX_NEAREST_PAGES), claims=recorder.claims)
    return TurnResult(
        turn.id,
        result,
        render_failure(status, failure, question.language) if failure else turn.task.render(result, question),
        turn.system.name,
        turn.app.model if usage.llm_calls else None,
        usage,
        seconds,
        failure,
        _list_documents(turn.talk.earlier),
        effort=turn.effort,
    )


async def _say_pinned(turn: _OpenTurn, tools: TurnTools) -> PinMark | None:
    """Show the answer that is pinned to the question if all its sentences pass the gate; return its mark, or None."""
    app, kit = turn.app, tools.kit
    examples = await app.examples.answers()
    if not examples:
        return None
    find_forgotten = partial(find_forgotten_documents, app.manifest)
    standing = await find_pinned(examples, turn.talk, turn.scope, find_forgotten, app.manifest.recall)
    if standing is None:
        return None
    await _record_search(turn, tools, standing.hits)
    before = ("", *(sentence.text for sentence in standing.sentences))
    judged = map(kit.judge, standing.sentences, before)
    if not all(await asyncio.gather(*judged)):
        return None
    passed = [await kit.say(sentence) for sentence in standing.sentences]
    return standing.pinned.mark if any(passed) else None


async def _introduce(turn: _OpenTurn, tools: TurnTools) -> str:
    """Return the bot's introduction if the question asks for one; empty for other small talk."""
    from pipeline.stages.question_analysis import SmallTalk, detect_small_talk  # compiles patterns on import

    question = turn.talk.question
    if detect_small_talk(question.text) is not SmallTalk.ABOUT:
        return ""
    introduction = await load_introduction(turn.app.manifest, turn.scope, question.language)
    # Its pages are recorded, so that it is shown again only where they may be read.
    await _record_search(turn, tools, introduction.sources)
    mention = turn.request.asker.kind == "channel"
    return render_introduction(introduction, question.language, turn.app.settings.zone, mention=mention)


async def _record_search(turn: _OpenTurn, tools: TurnTools, hits: Sequence[Hit]) -> None:
    """Record passages as found by a search for the question, although nothing was searched."""

    async def fetch(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        del query
        return tuple(hits[:k])

    await tools.recorder.fetch(fetch, SearchQuery(turn.talk.question.text), len(hits))


def _choose_effort(app: App, requested: Effort, system: SystemEntry) -> Mapping[str, Any]:
    """Return the effort for the record: as requested, or lowered with the reason if the model is slow or busy."""
    pressure = app.load.decide(app.settings.model.slow_seconds) if system.calls else None
    effort = lower_effort(requested) if pressure else requested
    if pressure is None or effort == requested:
        return {"effort": requested}
    figures = {name: round(value, 2) for name, value in asdict(pressure.figures).items()}
    return {"effort": effort, "lowered": {"from": requested, "because": pressure.because, **figures}}


def _list_documents(turns: Iterable[Turn]) -> frozenset[DocumentId]:
    return frozenset(document for turn in turns for document in turn.documents)


def _drop_turns(turns: Sequence[Turn], forgotten: Collection[DocumentId]) -> tuple[Turn, ...]:
    """Return the turns except those made from forgotten documents, and except the question before each of these."""
    dropped = {number for number, turn in enumerate(turns) if not set(turn.documents).isdisjoint(forgotten)}
    questions = {number - 1 for number in dropped if number and turns[number - 1].speaker == "user"}
    return tuple(turn for number, turn in enumerate(turns) if number not in dropped | questions)


def _detect_language(request: TurnRequest) -> str:
    return detect_language(request.text[:2_000])


def _collect_spoken(tell: Callable[[Event], None], spoken: list[AnsweredSentence]) -> Callable[[Event], None]:
    """Pass events on, and collect the sentences that are shown before the answer is complete."""

    def collect(event: Event) -> None:
        if isinstance(event, SentencePassed):
            spoken.append(event.sentence)
        tell(event)

    return collect


async def _finish_uncancelled(work: Coroutine[Any, Any, object]) -> None:
    """Finish some work even if this task is cancelled meanwhile; then raise the cancellation."""
    task, cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError


def classify_error(error: Exception, language: str, *, seconds: float, late: bool) -> tuple[Status, Failure]:
    """Return the outcome of a turn that ended with one of `EXPECTED_ERRORS`, in the asker's language if possible.

    `seconds` is the turn's limit; if the turn is `late`, a spent budget is reported as being too slow.
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
    """Return the failure for an unexpected error, shortened: a library's message may hold whole documents."""
    return Failure("internal", shorten(f"{type(error).__name__}: {error}", 200, placeholder=" …"), "")


async def close_interrupted(app: App, turn_id: str) -> bool:
    """Close a turn that was left open, and return whether it was. It must not be running in any process.

    Raises `StorageError` if the record cannot be read or written.
    """
    entries = {entry.kind: entry for entry in await app.audit.turn(turn_id)}
    if EntryKind.TURN_OPENED not in entries or EntryKind.TURN_CLOSED in entries:
        return False
    await app.audit.append(build_interruption(entries[EntryKind.TURN_OPENED]))
    return True


async def close_abandoned(app: App, now: datetime) -> None:
    """Close the turns that killed processes left open; called before this process opens any.

    If several processes share a database, only turns too old to be still running are closed. If the record cannot be
    written now, the next start retries.
    """
    try:
        openings = await app.audit.unfinished(now - ABANDONED_AFTER if app.settings.database else None)
        if openings:
            await app.audit.append(*map(build_interruption, openings))
            log.info("closed %d turns that an earlier process left open", len(openings))
    except StorageError as error:
        log.warning("cannot close turns that an earlier process left open", extra={"cause": str(error)})


async def record_unanswered(app: App, request: TurnRequest, task: str, status: Status, failure: Failure) -> None:
    """Record a question for which nothing was searched: it was refused, stopped, or failed. Raises `StorageError`."""
    talk = Conversation((*request.earlier, Turn("user", request.text, language=_detect_language(request))))
    ran = {"task": task, "system": request.system or app.system, "model": app.model}
    ran |= read_versions(app.settings, app.passages.embedder.name)
    opened = LogEntry(request.id, EntryKind.TURN_OPENED, build_opening(request, talk, {}, ran))
    await app.audit.append(opened, build_unanswered(request.id, status, failure))
