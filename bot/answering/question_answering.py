"""Answer a question: record it, let a system answer it, and record the answer before anyone reads it."""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, TypeVar

from structlog.contextvars import bound_contextvars

from bot.access import find_forgotten_documents, list_corpora, select_scope, select_visible
from bot.answering.turn_kit import Outcome, PreparedTurn, TurnTools, build_tools, describe_bug, run_system
from bot.answering.turn_record import (
    build_closing_entries,
    build_interruption,
    build_opening,
    build_unanswered,
    digest_settings,
    find_query,
)
from bot.app import App
from bot.types import Failure, TaskKind, TurnRequest, TurnResult
from bot.views.catalog import render_answer_text, render_failure, render_verdict_text
from pipeline.kit import Effort, Supports, System, SystemEntry, lower_effort
from pipeline.systems import find_check, find_system, find_text_check
from pipeline.types import Answer, Conversation, Event, Status, Turn
from storage.errors import StorageError
from storage.language.detection import detect_language
from storage.types import DocumentId, EntryKind, LogEntry

PINNED = "pinned"  # recorded as the system of a turn that showed a pinned answer
MAX_NEAREST_PAGES = 3
ABANDONED_AFTER = timedelta(hours=2)  # longer than any turn may take
T = TypeVar("T")

log = logging.getLogger(__name__)


async def answer(app: App, request: TurnRequest, tell: Callable[[Event], None]) -> TurnResult:
    """Answer a question within the asker's scope, and record the turn.

    Expected errors of the run become a failed or refused result. A bug is recorded as a failure, and raised.

    Raises:
        UnknownCorpus: a corpus was named that the asker cannot read.
        UnknownSystem: a system was named that does not exist.
        StorageError: the turn could not be recorded; nothing was answered.
        asyncio.CancelledError: the turn was cancelled, which is recorded.
    """
    return await _take_turn(app, request, tell, _Task("ask", attrgetter("answer"), app.supports, render_answer_text))


async def check(app: App, request: TurnRequest, tell: Callable[[Event], None]) -> TurnResult:
    """Check a claim. The result has the claim's verdict, with its evidence as citations. Raises as `answer` does."""
    return await _take_turn(app, request, tell, _Task("check", find_check, app.examines, render_verdict_text))


async def check_text(app: App, request: TurnRequest, tell: Callable[[Event], None]) -> TurnResult:
    """Check each statement of a text. Raises as `answer` does.

    Each statement becomes a claim of the result, with its own verdict. A text of one statement is checked in
    the same way as by `check`.
    """
    return await _take_turn(app, request, tell, _Task("check", find_text_check, app.examines, render_verdict_text))


@dataclass(frozen=True, slots=True)
class _Task:
    """The functions for one kind of task: answering a question, or checking a claim."""

    name: TaskKind
    choose: Callable[[SystemEntry], System]  # picks the system's function for this task
    supports: Supports  # the local check
    render: Callable[[Answer, Turn], str]


async def _take_turn(app: App, request: TurnRequest, tell: Callable[[Event], None], task: _Task) -> TurnResult:
    """Prepare a turn, record its opening, run its system, and record its end."""
    app = app.snapshot()
    turn = await _prepare_turn(app, request, task.name)
    with bound_contextvars(turn=turn.id, **({"ticket": request.ticket} if request.ticket else {})):
        await app.audit.append(turn.opening)
        started, tools = time.monotonic(), build_tools(app, turn, task.supports, tell)
        outcome = Outcome(Status.CANCELLED)
        try:
            outcome = await run_system(app, turn, tools, task.choose)
        except Exception as error:
            outcome = Outcome(Status.FAILED, describe_bug(error))
            raise
        finally:
            closing = _close_turn(app, turn, tools, outcome, task.render, time.monotonic() - started)
            result = await _finish_uncancelled(closing)
    return result


async def _prepare_turn(app: App, request: TurnRequest, task: TaskKind) -> PreparedTurn:
    """Decide everything about a turn. Raises `UnknownCorpus`, `UnknownSystem` and `StorageError`."""
    settings, turn_id = app.settings, request.id or secrets.token_hex(6)
    system = find_system(request.system or app.system, app.systems)
    corpora = await list_corpora(settings, app.manifest)
    visible = select_visible(settings, corpora, request.asker)
    within = visible if request.within is None else tuple(name for name in visible if name in request.within)
    scope = select_scope(within, request.corpora)
    forgotten = await find_forgotten_documents(app.manifest, _list_documents(request.earlier))
    request = replace(request, earlier=_drop_turns(request.earlier, forgotten))
    at = datetime.now(settings.zone)
    question = Turn("user", request.text, at=at, language=_detect_language(request))
    talk = Conversation((*request.earlier, question))
    tone = settings.tone if request.tone is None else request.tone
    chosen: Mapping[str, Any] = {}
    if task == "ask":
        requested = request.effort or settings.effort
        chosen = _choose_effort(app, requested) if system.calls else {"effort": requested}
    effort: Effort | None = chosen.get("effort")
    one_call = system.one_call and "lowered" not in chosen  # only if quick effort was requested, not if lowered to it
    limits = settings.limits.kit(student=settings.model.student).at(effort or "normal", one_call=one_call)
    ran = {"task": task, "system": system.name, "tone": tone, "model": app.model, **_list_versions(app), **chosen}
    refreshed = {corpus.name: corpus.refreshed for corpus in corpora if corpus.name in scope}
    opening = LogEntry(turn_id, EntryKind.TURN_OPENED, build_opening(request, talk, refreshed, ran))
    return PreparedTurn(turn_id, task, request, at, talk, system, scope, tone, effort, limits, opening)


async def _close_turn(
    app: App,
    turn: PreparedTurn,
    tools: TurnTools,
    outcome: Outcome,
    render: Callable[[Answer, Turn], str],
    seconds: float,
) -> TurnResult:
    """Record the end of a turn, and return its result."""
    if tools.web:
        await tools.web.close()
    gate, recorder, question, failure = tools.gate, tools.recorder, turn.talk.question, outcome.failure
    fault = tools.web.fault if tools.web and not failure else None
    answer = gate.answer(outcome.status, nearest=recorder.nearest(MAX_NEAREST_PAGES), claims=recorder.claims)
    usage = recorder.usage
    text = render_failure(outcome.status, failure, question.language) if failure else render(answer, question)
    result = TurnResult(
        turn.id,
        answer,
        outcome.introduction or text,
        PINNED if outcome.pinned else turn.system.name,
        app.model if usage.llm_calls else None,
        usage,
        seconds,
        failure,
        _list_documents(turn.talk.earlier),
        pinned=outcome.pinned,
        effort=turn.effort,
        quoted_because=outcome.quoted_because,
        study=None if outcome.pinned else turn.request.study,
        web_fault=Failure(fault.kind, str(fault), fault.hint) if fault else None,
    )
    entries = build_closing_entries(result, recorder.steps, gate.withheld, gate.spoken)
    await app.audit.append(*entries)
    return replace(result, query=find_query(entries))


def _choose_effort(app: App, requested: Effort) -> Mapping[str, Any]:
    """Return the effort for the record: as requested, or lowered with the reason if the model is slow or busy."""
    pressure = app.load.decide(app.settings.model.slow_seconds)
    effort = lower_effort(requested) if pressure else requested
    if pressure is None or effort == requested:
        return {"effort": requested}
    figures = {name: round(value, 2) for name, value in asdict(pressure.figures).items()}
    return {"effort": effort, "lowered": {"from": requested, "because": pressure.because, **figures}}


def _list_versions(app: App) -> Mapping[str, str]:
    return {**app.versions, "settings": digest_settings(app.settings)}


def _list_documents(turns: Iterable[Turn]) -> frozenset[DocumentId]:
    return frozenset(document for turn in turns for document in turn.documents)


def _drop_turns(turns: Sequence[Turn], forgotten: Collection[DocumentId]) -> tuple[Turn, ...]:
    """Return the turns without those made from forgotten documents, and without the questions that these answer."""
    dropped = {number for number, turn in enumerate(turns) if not set(turn.documents).isdisjoint(forgotten)}
    questions = {number - 1 for number in dropped if number and turns[number - 1].speaker == "user"}
    return tuple(turn for number, turn in enumerate(turns) if number not in dropped | questions)


def _detect_language(request: TurnRequest) -> str:
    return detect_language(request.text[:2_000])


async def _finish_uncancelled(work: Coroutine[Any, Any, T]) -> T:
    """Finish some work even if this task is cancelled in the meantime; then raise the cancellation."""
    task, cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    result = task.result()
    if cancelled:
        raise asyncio.CancelledError
    return result


async def close_interrupted(app: App, turn_id: str) -> bool:
    """Close a turn that was left open and that no process runs; return whether it was open. Raises `StorageError`."""
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
    ran |= _list_versions(app)
    opened = LogEntry(request.id, EntryKind.TURN_OPENED, build_opening(request, talk, {}, ran))
    await app.audit.append(opened, build_unanswered(request.id, status, failure))
