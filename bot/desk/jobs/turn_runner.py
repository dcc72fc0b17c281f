"""Run one job from claim to completion, or continue a job that an earlier process began.

Every step stores its intention before it acts, so that a process that is killed at any point leaves a state that
`plan_recovery` understands. The queue's row records the progress of posting, the log the progress of answering.
"""

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from bot.answering.turn_record import INTERRUPTED, TurnRecord, read_turn_record
from bot.desk.jobs.completion import (
    STOPPED_KEY,
    DeliveryResult,
    ServerStopping,
    build_withheld_entry,
    release_job,
    retract_answer,
    send_apology,
    send_unrecorded_notice,
    settle_job,
    store_with_retry,
)
from bot.desk.jobs.job import EXCLUDED, Interrupt, Job, JobInterrupted, TurnPlan
from bot.desk.jobs.message_writer import DeliveryUnknown
from bot.desk.platform_port import CannotPost, PostGone
from bot.types import DeliveryCapabilities, DeliveryOutcome, Failure, PostedMessages, TurnRequest, TurnResult
from bot.views.catalog import translate
from bot.views.turn_view import View
from bot.views.view_reducer import apply_event, build_notice_view, stop_view
from pipeline.types import Event, Status
from storage.errors import StorageError, contain_panics
from storage.types import EntryKind, LogEntry, QueuedQuestion

_PLACE_UNKNOWN = "place_unknown"  # the failure kind of a turn whose asker's place could not be looked up
_MAX_TURNS = 2  # turns of a question whose scope is narrowed again and again while it is answered


class RecoveryAction(StrEnum):
    """The next step of a job."""

    ASK = "ask"  # answer it by a new turn, after closing an open one as interrupted
    SHOW = "show"  # show the recorded answer
    SHOWN = "shown"  # the answer was posted completely; record that
    SAY_STOPPED = "say_stopped"  # it was stopped; make its posts say so
    REMOVE = "remove"  # it was retracted; delete its posts
    DOUBT = "doubt"  # its last view may have been posted and the platform cannot be asked; do not post it again
    SETTLE = "settle"  # everything is done and recorded; update the queue


@dataclass(frozen=True, slots=True)
class RecoveryStep:
    """A step, and the question's outcome after it."""

    action: RecoveryAction
    outcome: DeliveryOutcome = DeliveryOutcome.DELIVERED


def plan_recovery(
    row: QueuedQuestion,
    ways: DeliveryCapabilities,
    entries: Sequence[LogEntry],
    turn: TurnRecord | None,
    *,
    fits: bool,
    reworded: bool = False,
) -> RecoveryStep:
    """Decide the next step by the question's row and its turn's log entries; pure.

    `ways` are the platform's features for the answer; `turn` is parsed from `entries`, None if there is no turn; `fits`
    means that everything behind the answer may still be read where it is shown; `reworded` means that the question was
    edited after the turn was opened.
    """
    if turn is not None and turn.retracted:
        return RecoveryStep(RecoveryAction.REMOVE, DeliveryOutcome.RETRACTED)
    if not reworded and (outcome := _find_outcome(entries)) is not None:
        return RecoveryStep(RecoveryAction.SETTLE, outcome)
    if row.sending and not ways.reads_back:
        return RecoveryStep(RecoveryAction.DOUBT, DeliveryOutcome.UNCERTAIN)
    if not reworded and any(entry.kind is EntryKind.EDITED and entry.body.get(STOPPED_KEY) for entry in entries):
        return RecoveryStep(RecoveryAction.SAY_STOPPED, DeliveryOutcome.STOPPED)
    if reworded or turn is None or _was_cut_short(turn.result):
        return RecoveryStep(RecoveryAction.ASK)
    shown = row.posted and not ways.edits
    return RecoveryStep(RecoveryAction.SHOWN if shown else RecoveryAction.SHOW if fits else RecoveryAction.ASK)


def _find_outcome(entries: Sequence[LogEntry]) -> DeliveryOutcome | None:
    delivered = (entry.body for entry in reversed(entries) if entry.kind is EntryKind.DELIVERED)
    return next((DeliveryOutcome(body["outcome"]) for body in delivered if "outcome" in body), None)


def _was_cut_short(result: TurnResult | None) -> bool:
    """Return whether a turn was cancelled or interrupted, or refused because the asker's place was unknown."""
    if result is None or result.answer.status is Status.CANCELLED:
        return True
    return result.failure is not None and result.failure.kind in {INTERRUPTED, _PLACE_UNKNOWN}


async def run_job(job: Job) -> bool:
    """Process a question; return False if another process has it, or the server stops first."""
    try:
        with contain_panics():
            if not await _claim(job):
                return False
            result = await _run_steps(job)
    except StorageError as error:
        result = await send_unrecorded_notice(job, error)
    except Exception as error:  # noqa: BLE001 - a fault in one turn never ends the desk
        result = await send_apology(job, error)
    job.on_answered()
    return result is not None and await settle_job(job, result)


async def _claim(job: Job) -> bool:
    """Claim a job; return whether this process may run it. Only a retraction waits for the database.

    This also stores the id of the first turn, and the fact that posting begins.
    """
    context, removes = job.context, job.interrupt is Interrupt.REMOVE
    turn_id = "" if job.turn_id or removes else secrets.token_hex(6)
    # Storing this now saves a write before the post; without a post, the platform is merely asked in vain.
    sending = bool(turn_id) and job.writer.ways.reads_back and not (job.question.handle or job.question.unasked)

    async def claim() -> bool:
        now = context.clock.now()
        until = now + timedelta(seconds=context.lease_seconds)
        begun: dict[str, Any] = {"turn_id": turn_id, "sending": True} if sending else {"turn_id": turn_id}
        known = begun if turn_id else {}
        return await context.queue.claim(job.ticket, context.owner, until, now=now, sole=context.sole, **known)

    try:
        job.claimed = await (store_with_retry(job, claim) if removes else claim())
    except ServerStopping:
        return False
    if job.claimed and turn_id:
        job.turn_id, job.unopened = turn_id, True
        job.writer.foreseen = sending
    return job.claimed


async def _run_steps(job: Job) -> DeliveryResult | None:
    """Run steps until the job is delivered; return None if the server stops."""
    step: RecoveryStep | None = None
    while job.interrupt is not Interrupt.REMOVE:
        try:
            result = await job.run_unless_interrupted(_run_step(job, step))
        except JobInterrupted:
            result = None
        if job.interrupt is not Interrupt.EDIT:
            return await _apply_interrupt(job, result)
        job.interrupt, step = None, RecoveryStep(RecoveryAction.ASK)
    return await retract_answer(job)


async def _apply_interrupt(job: Job, result: DeliveryResult | None) -> DeliveryResult | None:
    """Finish an interrupted job as its interrupt demands, and return its result; None if the server stops."""
    if job.interrupt is Interrupt.REMOVE:
        return await retract_answer(job)
    if result is not None or job.interrupt is None:
        return result
    if job.interrupt is Interrupt.STOP_SERVER:
        await release_job(job)
        return None
    outcome = DeliveryOutcome.STOPPED if job.interrupt is Interrupt.STOP else DeliveryOutcome.DELIVERED
    return await _deliver_view(job, stop_view(job.view), outcome) or await retract_answer(job)


async def _find_next_step(job: Job) -> RecoveryStep:
    row, ports, ways = job.row, job.context.ports, job.writer.ways
    entries = await ports.load_entries(row.turn_id) if row.turn_id else ()
    turn = read_turn_record(entries)
    if turn is None:
        return plan_recovery(row, ways, entries, None, fits=False)
    await job.locate_asker()
    fits = await ports.is_readable(job.question, turn)
    return plan_recovery(row, ways, entries, turn, fits=fits, reworded=not turn.asks(job.question.text))


async def _run_step(job: Job, step: RecoveryStep | None) -> DeliveryResult | None:
    """Run `step`, by default the next one, and return the result; None if an interrupt has to end the job."""
    step = step or await _find_next_step(job)
    match step.action:
        case RecoveryAction.ASK:
            return await _answer_question(job)
        case RecoveryAction.SHOW | RecoveryAction.SHOWN:
            return await _show_recorded(job, step)
        case RecoveryAction.SAY_STOPPED:
            return await _deliver_view(job, stop_view(job.view), step.outcome)
        case RecoveryAction.REMOVE:
            return await retract_answer(job)
        case RecoveryAction.DOUBT:
            await job.context.ports.close_interrupted(job.turn_id)
            why = "the process ended while it was being posted"
            return DeliveryResult(step.outcome, job.writer.posted, why=why)
        case RecoveryAction.SETTLE:
            return DeliveryResult(step.outcome, job.writer.posted, recorded=True)


async def _answer_question(job: Job) -> DeliveryResult | None:
    """Answer by a new turn. If its scope was narrowed in the meantime, answer once more."""
    ports = job.context.ports
    for _ in range(_MAX_TURNS):
        plan = await _start_turn(job)
        if plan.refused:
            return await _refuse(job, plan.request, plan.refused)
        if job.unplaced:
            return await _refuse(
                job, plan.request, Failure(_PLACE_UNKNOWN, translate("desk_place_unknown", job.language), "")
            )
        result = await plan.answer(plan.request, lambda event: _show_event(job, event))
        if await _is_presentable(job, plan, result):
            return await _deliver_result(job, result)
        await ports.append(build_withheld_entry(job.turn_id))
    plan = await _start_turn(job)
    return await _refuse(job, plan.request, Failure("scope_narrowed", translate("desk_narrowed", job.language), ""))


async def _start_turn(job: Job) -> TurnPlan:
    """Start a new turn, showing nothing of an earlier one."""
    context, resumed = job.context, job.writer.begun or not job.unopened
    if not job.unopened:
        if job.turn_id:
            await context.ports.close_interrupted(job.turn_id)
        turn_id = secrets.token_hex(6)
        await context.queue.note(job.ticket, turn_id=turn_id)
        job.turn_id = turn_id
    job.unopened, job.view = False, job.start_view()
    if resumed:  # the asker's rights may have changed since the question was accepted
        await job.locate_asker()
    if not job.question.asker.exclusion:
        job.writer.offer(job.view)
    if not resumed:
        await job.locate_asker()
    plan = await context.ports.plan(job.writer.platform, job.question, job.row, job.turn_id)
    job.view = replace(job.start_view(plan.notice), study=bool(plan.request.study))
    return plan


async def _is_presentable(job: Job, plan: TurnPlan, result: TurnResult) -> bool:
    """Return whether everything behind the turn may be read in the asker's place now; settings may have changed."""
    asker = job.question.asker
    await job.locate_asker()
    if job.context.sole and job.question.asker == asker and await plan.is_readable(job.question, result):
        return True
    turn = read_turn_record(await job.context.ports.load_entries(job.turn_id))
    return turn is None or await job.context.ports.is_readable(job.question, turn)


async def _refuse(job: Job, request: TurnRequest, why: Failure) -> DeliveryResult | None:
    """Record the reason of a refusal, then reply with it; an excluded asker gets a reply only to an interaction."""
    await job.context.ports.record_unanswered(request, job.question.task, Status.REFUSED, why)
    unexpected = why.kind == EXCLUDED and not job.question.handle
    notice = build_notice_view(job.ticket, job.language, why.message)
    return await _deliver_view(job, notice, silent=job.question.unasked or unexpected)


def _show_event(job: Job, event: Event) -> None:
    """Show an event. An error in showing it does not end the turn."""
    try:
        job.view = apply_event(job.view, event)
    except Exception as error:  # noqa: BLE001 - progress is optional, the answer is not
        job.log(logging.ERROR, "cannot show an event", error)
    else:
        job.writer.offer(job.view)


async def _show_recorded(job: Job, step: RecoveryStep) -> DeliveryResult | None:
    turn = read_turn_record(await job.context.ports.load_entries(job.turn_id))
    if turn is None or turn.result is None:
        raise AssertionError("only a recorded answer is shown again")
    if step.action is RecoveryAction.SHOW:
        return await _deliver_result(job, turn.result)
    view = await job.context.ports.finish_view(job.view, job.question, turn.result)
    return DeliveryResult(step.outcome, job.writer.posted, view)


async def _deliver_result(job: Job, result: TurnResult) -> DeliveryResult | None:
    view = await job.context.ports.finish_view(job.view, job.question, result)
    silent = job.question.unasked and result.answer.status is not Status.ANSWERED
    return await _deliver_view(job, view, silent=silent)


async def _deliver_view(
    job: Job, view: View, outcome: DeliveryOutcome = DeliveryOutcome.DELIVERED, *, silent: bool = False
) -> DeliveryResult | None:
    """Show the final view. Returns None if a user deleted a post, which means that the whole answer is to be deleted.

    A `silent` view is shown only if something is already posted.
    """
    job.delivering, writer = True, job.writer
    job.on_answered()
    try:
        if silent and not await writer.has_posted():
            return DeliveryResult(DeliveryOutcome.SILENT, PostedMessages(), view)
        view = await writer.finish(view, ends=True)
    except PostGone:
        job.request(Interrupt.REMOVE, why="its post was deleted")
        return None
    except DeliveryUnknown as error:
        return DeliveryResult(DeliveryOutcome.UNCERTAIN, writer.posted, view, str(error))
    except CannotPost as error:
        job.log(logging.WARNING, "cannot post an answer", error)
        return DeliveryResult(DeliveryOutcome.UNDELIVERABLE, writer.posted, view, str(error))
    return DeliveryResult(outcome, writer.posted, view)
