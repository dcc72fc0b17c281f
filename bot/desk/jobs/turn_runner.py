"""Run one job from claim to completion, or recover what an earlier process began of it.

Every step stores what it is about to do before it does it, so that a process that is killed between any two leaves a
state that `plan_recovery` knows: the queue's row says how far posting came, the log how far answering came.
"""

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

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
from bot.desk.jobs.job import Interrupt, Job, JobInterrupted, OnAnswered, WorkerContext
from bot.desk.jobs.message_writer import DeliveryUnknown
from bot.desk.jobs.ports import TurnPlan, log_event
from bot.desk.turn_record import INTERRUPTED, TurnRecord, read_turn_record
from bot.desk.types import DeliveryCapabilities, DeliveryOutcome, Failure, PostedMessages, TurnRequest
from bot.platform import CannotPost, PostGone
from bot.views import view_reducer
from bot.views.catalog import translate
from bot.views.turn_view import View
from bot.views.view_reducer import build_notice_view
from pipeline.types import Event, Status
from storage.errors import StorageError
from storage.types import EntryKind, LogEntry, QueuedQuestion


class RecoveryAction(StrEnum):
    """What is done next."""

    ASK = "ask"
    """It is answered by a new turn; an open one is closed as interrupted first."""
    SHOW = "show"
    """It was answered: the answer of the record is shown."""
    SHOWN = "shown"
    """Its answer was posted whole, and only the record of that is missing."""
    SAY_STOPPED = "say_stopped"
    """Somebody stopped it: what stands there has to say so."""
    REMOVE = "remove"
    """It was taken back: what stands there has to go."""
    DOUBT = "doubt"
    """Its last view was perhaps posted, and nobody can be asked: it is not posted again."""
    SETTLE = "settle"
    """All is done and recorded, but the queue does not know."""


@dataclass(frozen=True, slots=True)
class RecoveryStep:
    """What is done, and for `SETTLE` how the question ended."""

    act: RecoveryAction
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
    """Decide by the question's row and its turn's entries in the log.

    Args:
        row: The question as the queue has it.
        ways: What the platform can do with its answer.
        entries: All that the log has of the turn that the row names.
        turn: The same, read; None where there is no turn.
        fits: Whether all that the turn's answer was made from may still be read there.
        reworded: Whether the question is worded otherwise now than when the turn was opened.
    """
    if turn is not None and turn.retracted:
        return RecoveryStep(RecoveryAction.REMOVE, DeliveryOutcome.RETRACTED)
    if not reworded and (ended := _find_outcome(entries)) is not None:
        return RecoveryStep(RecoveryAction.SETTLE, ended)
    if row.sending and not ways.reads_back:
        return RecoveryStep(RecoveryAction.DOUBT, DeliveryOutcome.UNCERTAIN)
    if reworded:
        return RecoveryStep(RecoveryAction.ASK)
    if any(entry.kind is EntryKind.EDITED and entry.body.get(STOPPED_KEY) for entry in entries):
        return RecoveryStep(RecoveryAction.SAY_STOPPED, DeliveryOutcome.STOPPED)
    return RecoveryStep(_choose_answer_action(row, ways, turn, fits=fits))


def _choose_answer_action(
    row: QueuedQuestion, ways: DeliveryCapabilities, turn: TurnRecord | None, *, fits: bool
) -> RecoveryAction:
    if turn is None or _was_cut_short(turn):
        return RecoveryAction.ASK
    if row.posted and not ways.edits:
        return RecoveryAction.SHOWN
    return RecoveryAction.SHOW if fits else RecoveryAction.ASK


def _find_outcome(entries: Sequence[LogEntry]) -> DeliveryOutcome | None:
    named = [
        entry.body["outcome"] for entry in entries if entry.kind is EntryKind.DELIVERED and "outcome" in entry.body
    ]
    return DeliveryOutcome(named[-1]) if named else None


def _was_cut_short(turn: TurnRecord) -> bool:
    """Return whether a turn ended because its process did, and not by itself."""
    if turn.answered is None:
        return True
    failure = turn.answered.failure
    return turn.answered.answer.status is Status.CANCELLED or (failure is not None and failure.kind == INTERRUPTED)


_MAX_TURNS = 2
"""How many turns a question has while its scope is being narrowed."""


async def run_job(flight: Job, means: WorkerContext, answered: OnAnswered) -> bool:
    """Do everything that a question needs. Returns whether it is done with: not if somebody else has it, or at rest.

    Raises:
        asyncio.CancelledError: The process is about to end; the next start goes on.
    """
    try:
        if not await _claim(flight, means):
            return False
        flight.claimed = True
        showed = await _run_steps(flight, means, answered)
    except StorageError as error:
        showed = await send_unrecorded_notice(flight, error)
    except Exception as error:  # noqa: BLE001 - a fault in one turn never ends the desk
        showed = await send_apology(flight, error)
    answered()
    return showed is not None and await settle_job(flight, means, showed)


async def _claim(flight: Job, means: WorkerContext) -> bool:
    """Make a question ours. Only what is to be removed waits for the database: others are told that it is away."""

    async def claimed() -> bool:
        now = means.clock.now()
        until = now + timedelta(seconds=means.lease_seconds)
        return await means.queue.claim(flight.ticket, means.owner, until, now=now, sole=means.sole)

    try:
        return await (store_with_retry(flight, means, claimed) if flight.wish is Interrupt.REMOVE else claimed())
    except ServerStopping:
        return False


async def _run_steps(flight: Job, means: WorkerContext, answered: OnAnswered) -> DeliveryResult | None:
    """Do what is next until it is shown; returns None where it rests."""
    step: RecoveryStep | None = None
    while flight.wish is not Interrupt.REMOVE:
        try:
            step = step or await _find_next_step(flight, means)
            showed = await flight.run_unless_interrupted(_run_step(flight, means, step, answered))
        except JobInterrupted:
            showed = None
        if flight.wish is not Interrupt.EDIT:
            return await _apply_interrupt(flight, means, showed, answered)
        flight.wish, step = None, RecoveryStep(RecoveryAction.ASK)
    return await retract_answer(flight, means, answered)


async def _apply_interrupt(
    flight: Job, means: WorkerContext, showed: DeliveryResult | None, answered: OnAnswered
) -> DeliveryResult | None:
    """Return what came of it, once what somebody wanted meanwhile is done."""
    if flight.wish is Interrupt.REMOVE:
        return await retract_answer(flight, means, answered)
    if showed is not None or flight.wish is None:
        return showed
    if flight.wish is Interrupt.REST:
        await release_job(flight, means)
        return None
    outcome = DeliveryOutcome.STOPPED if flight.wish is Interrupt.STOP else DeliveryOutcome.DELIVERED
    showed = await _deliver_view(flight, view_reducer.stop_view(flight.view), answered, outcome)
    return await retract_answer(flight, means, answered) if showed is None else showed


async def _find_next_step(flight: Job, means: WorkerContext) -> RecoveryStep:
    """Find out how far it had come."""
    row, knowing = flight.row, means.knowing
    await flight.look()
    if not row.turn_id:
        return plan_recovery(row, flight.post.ways, (), None, fits=False)
    entries = await knowing.entries(row.turn_id)
    turn = read_turn_record(entries)
    reworded = turn is not None and not turn.asked(flight.question.text)
    fits = turn is not None and await knowing.readable(flight.question, turn)
    return plan_recovery(row, flight.post.ways, entries, turn, fits=fits, reworded=reworded)


async def _run_step(
    flight: Job, means: WorkerContext, step: RecoveryStep, answered: OnAnswered
) -> DeliveryResult | None:
    match step.act:
        case RecoveryAction.ASK:
            return await _answer_question(flight, means, answered)
        case RecoveryAction.SHOW | RecoveryAction.SHOWN:
            return await _show_recorded(flight, means, step, answered)
        case RecoveryAction.SAY_STOPPED:
            return await _deliver_view(flight, view_reducer.stop_view(flight.view), answered, step.outcome)
        case RecoveryAction.REMOVE:
            return await retract_answer(flight, means, answered)
        case RecoveryAction.DOUBT:
            await means.knowing.interrupt(flight.turn_id)
            return DeliveryResult(step.outcome, flight.post.posted, None, "the process ended while it was being posted")
        case RecoveryAction.SETTLE:
            return DeliveryResult(step.outcome, flight.post.posted, None, recorded=True)


async def _answer_question(flight: Job, means: WorkerContext, answered: OnAnswered) -> DeliveryResult | None:
    """Answer it by a new turn; by another, once, where its scope was narrowed while it was being answered."""
    knowing, question = means.knowing, flight.question
    for _ in range(_MAX_TURNS):
        plan = await _start_turn(flight, means)
        if plan.refused:
            return await _refuse(flight, means, plan.asked, plan.refused, answered)
        if flight.unplaced:
            lost = Failure("place_unknown", translate("desk_place_unknown", flight.language), "")
            return await _refuse(flight, means, plan.asked, lost, answered)
        answering = knowing.check if question.task == "check" else knowing.answer
        done = await answering(plan.asked, lambda event: _show_event(flight, event))
        if await _is_presentable(flight, means):
            final = await knowing.ended(flight.view, question, done)
            return await _deliver_view(flight, final, answered, silent=done.answer.status is not Status.ANSWERED)
        await knowing.append(build_withheld_entry(flight.turn_id))
    plan = await _start_turn(flight, means)
    narrowed = Failure("scope_narrowed", translate("desk_narrowed", flight.language), "")
    return await _refuse(flight, means, plan.asked, narrowed, answered)


async def _start_turn(flight: Job, means: WorkerContext) -> TurnPlan:
    """Begin a new turn, with nothing shown of one before it."""
    if flight.turn_id:
        await means.knowing.interrupt(flight.turn_id)
    turn_id = secrets.token_hex(6)
    await means.queue.note(flight.ticket, turn_id=turn_id)
    flight.turn_id, flight.view = turn_id, flight.fresh()
    flight.post.offer(flight.view)
    await flight.look()
    plan = await means.knowing.plan(flight.post.platform, flight.question, flight.row, turn_id)
    flight.view = flight.fresh(plan.notice)
    return plan


async def _is_presentable(flight: Job, means: WorkerContext) -> bool:
    """Return whether all that the turn was made from may be read there now, which settings may forbid at any time."""
    turn = read_turn_record(await means.knowing.entries(flight.turn_id))
    await flight.look()
    return turn is None or await means.knowing.readable(flight.question, turn)


async def _refuse(
    flight: Job, means: WorkerContext, asked: TurnRequest, why: Failure, answered: OnAnswered
) -> DeliveryResult | None:
    """Say why nothing is answered, once the record does."""
    await means.knowing.unanswered(asked, flight.question.task, Status.REFUSED, why)
    return await _deliver_view(
        flight, build_notice_view(flight.ticket, flight.language, why.message), answered, silent=True
    )


def _show_event(flight: Job, event: Event) -> None:
    """Show what happens. What cannot be shown on the way does not end the turn."""
    try:
        flight.view = view_reducer.apply_event(flight.view, event)
    except Exception as error:  # noqa: BLE001 - the answer matters, not the way to it
        log_event(logging.ERROR, "an event could not be shown", flight.question, error, turn_id=flight.turn_id)
    else:
        flight.post.offer(flight.view)


async def _show_recorded(
    flight: Job, means: WorkerContext, step: RecoveryStep, answered: OnAnswered
) -> DeliveryResult | None:
    """Show the answer that the record has."""
    turn = read_turn_record(await means.knowing.entries(flight.turn_id))
    if turn is None or turn.answered is None:
        raise AssertionError("only what was answered is shown again")
    final = await means.knowing.ended(flight.view, flight.question, turn.answered)
    if step.act is RecoveryAction.SHOWN:
        return DeliveryResult(step.outcome, flight.post.posted, final)
    return await _deliver_view(flight, final, answered, silent=turn.answered.answer.status is not Status.ANSWERED)


async def _deliver_view(
    flight: Job,
    view: View,
    answered: OnAnswered,
    outcome: DeliveryOutcome = DeliveryOutcome.DELIVERED,
    *,
    silent: bool = False,
) -> DeliveryResult | None:
    """Show what stays. Returns None where somebody deleted what stood there, who then wants all of it to go.

    `silent` is what nobody wants to read who did not ask.
    """
    flight.delivering, post = True, flight.post
    answered()
    if silent and flight.question.unasked and not post.begun:
        return DeliveryResult(DeliveryOutcome.SILENT, PostedMessages(), view)
    try:
        await post.finish(view)
    except PostGone:
        flight.want(Interrupt.REMOVE, why="what was posted was deleted")
        return None
    except DeliveryUnknown as error:
        return DeliveryResult(DeliveryOutcome.UNCERTAIN, post.posted, view, str(error))
    except CannotPost as error:
        log_event(logging.WARNING, "an answer cannot be posted", flight.question, error, turn_id=flight.turn_id)
        return DeliveryResult(DeliveryOutcome.UNDELIVERABLE, post.posted, view, str(error))
    return DeliveryResult(outcome, post.posted, view)
