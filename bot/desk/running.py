"""One question from claim to finish: it is answered, or what was begun of it is completed, shown, and recorded.

Every step stores what it is about to do before it does it, so that a process that is killed between any two leaves a
state that `resuming` knows.
"""

import logging
import secrets
from datetime import timedelta

from bot.desk.delivering import Uncertain
from bot.desk.ending import Resting, apologised, rested, settled, stored, unrecorded
from bot.desk.flights import Answered, Flight, Interrupted, Means, Wish
from bot.desk.knowing import Plan
from bot.desk.notices import said
from bot.desk.recalling import recalled
from bot.desk.recording import Showed, withheld
from bot.desk.reporting import report
from bot.desk.resuming import Act, Next, after_restart
from bot.desk.retracting import removed
from bot.desk.types import Outcome, Posted
from bot.platform import CannotPost, PostGone
from bot.showing import folding
from bot.showing.view import View
from bot.turns import Asked, Failure
from bot.words import say
from pipeline.types import Event, Status
from storage.errors import StorageError

_TRIES = 2
"""How many turns a question has while its scope is being narrowed."""


async def run(flight: Flight, means: Means, answered: Answered) -> bool:
    """Do everything that a question needs. Returns whether it is done with: not if somebody else has it, or at rest.

    Raises:
        asyncio.CancelledError: The process is about to end; the next start goes on.
    """
    try:
        if not await _claimed(flight, means):
            return False
        flight.claimed = True
        showed = await _showed(flight, means, answered)
    except StorageError as error:
        showed = await unrecorded(flight, error)
    except Exception as error:  # noqa: BLE001 - a fault in one turn never ends the desk
        showed = await apologised(flight, error)
    answered()
    return showed is not None and await settled(flight, means, showed)


async def _claimed(flight: Flight, means: Means) -> bool:
    """Make a question ours. Only what is to be removed waits for the database: others are told that it is away."""

    async def claimed() -> bool:
        now = means.clock.now()
        until = now + timedelta(seconds=means.lease_seconds)
        return await means.queue.claim(flight.ticket, means.owner, until, now=now, sole=means.sole)

    try:
        return await (stored(flight, means, claimed) if flight.wish is Wish.REMOVE else claimed())
    except Resting:
        return False


async def _showed(flight: Flight, means: Means, answered: Answered) -> Showed | None:
    """Do what is next until it is shown; returns None where it rests."""
    step: Next | None = None
    while flight.wish is not Wish.REMOVE:
        try:
            step = step or await _next(flight, means)
            showed = await flight.unless_wanted(_done(flight, means, step, answered))
        except Interrupted:
            showed = None
        if flight.wish is not Wish.EDIT:
            return await _as_wished(flight, means, showed, answered)
        flight.wish, step = None, Next(Act.ASK)
    return await removed(flight, means, answered)


async def _as_wished(flight: Flight, means: Means, showed: Showed | None, answered: Answered) -> Showed | None:
    """Return what came of it, once what somebody wanted meanwhile is done."""
    if flight.wish is Wish.REMOVE:
        return await removed(flight, means, answered)
    if showed is not None or flight.wish is None:
        return showed
    if flight.wish is Wish.REST:
        await rested(flight, means)
        return None
    outcome = Outcome.STOPPED if flight.wish is Wish.STOP else Outcome.DELIVERED
    showed = await _deliver(flight, folding.stopped(flight.view), answered, outcome)
    return await removed(flight, means, answered) if showed is None else showed


async def _next(flight: Flight, means: Means) -> Next:
    """Find out how far it had come."""
    row, knowing = flight.row, means.knowing
    await flight.look()
    if not row.turn_id:
        return after_restart(row, flight.post.ways, (), None, fits=False)
    entries = await knowing.entries(row.turn_id)
    turn = recalled(entries)
    reworded = turn is not None and not turn.asked(flight.question.text)
    fits = turn is not None and await knowing.readable(flight.question, turn)
    return after_restart(row, flight.post.ways, entries, turn, fits=fits, reworded=reworded)


async def _done(flight: Flight, means: Means, step: Next, answered: Answered) -> Showed | None:
    match step.act:
        case Act.ASK:
            return await _ask(flight, means, answered)
        case Act.SHOW | Act.SHOWN:
            return await _show_again(flight, means, step, answered)
        case Act.SAY_STOPPED:
            return await _deliver(flight, folding.stopped(flight.view), answered, step.outcome)
        case Act.REMOVE:
            return await removed(flight, means, answered)
        case Act.DOUBT:
            await means.knowing.interrupt(flight.turn_id)
            return Showed(step.outcome, flight.post.posted, None, "the process ended while it was being posted")
        case Act.SETTLE:
            return Showed(step.outcome, flight.post.posted, None, recorded=True)


async def _ask(flight: Flight, means: Means, answered: Answered) -> Showed | None:
    """Answer it by a new turn; by another, once, where its scope was narrowed while it was being answered."""
    knowing, question = means.knowing, flight.question
    for _ in range(_TRIES):
        plan = await _planned(flight, means)
        if plan.refused:
            return await _refused(flight, means, plan.asked, plan.refused, answered)
        if flight.unplaced:
            lost = Failure("place_unknown", say("desk_place_unknown", flight.language), "")
            return await _refused(flight, means, plan.asked, lost, answered)
        answering = knowing.check if question.task == "check" else knowing.answer
        done = await answering(plan.asked, lambda event: _tell(flight, event))
        if await _presentable(flight, means):
            final = await knowing.ended(flight.view, question, done)
            return await _deliver(flight, final, answered, silent=done.answer.status is not Status.ANSWERED)
        await knowing.append(withheld(flight.turn_id))
    plan = await _planned(flight, means)
    narrowed = Failure("scope_narrowed", say("desk_narrowed", flight.language), "")
    return await _refused(flight, means, plan.asked, narrowed, answered)


async def _planned(flight: Flight, means: Means) -> Plan:
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


async def _presentable(flight: Flight, means: Means) -> bool:
    """Return whether all that the turn was made from may be read there now, which settings may forbid at any time."""
    turn = recalled(await means.knowing.entries(flight.turn_id))
    await flight.look()
    return turn is None or await means.knowing.readable(flight.question, turn)


async def _refused(flight: Flight, means: Means, asked: Asked, why: Failure, answered: Answered) -> Showed | None:
    """Say why nothing is answered, once the record does."""
    await means.knowing.unanswered(asked, flight.question.task, Status.REFUSED, why)
    return await _deliver(flight, said(flight.ticket, flight.language, why.message), answered, silent=True)


def _tell(flight: Flight, event: Event) -> None:
    """Show what happens. What cannot be shown on the way does not end the turn."""
    try:
        flight.view = folding.after(flight.view, event)
    except Exception as error:  # noqa: BLE001 - the answer matters, not the way to it
        report(logging.ERROR, "an event could not be shown", flight.question, error, turn_id=flight.turn_id)
    else:
        flight.post.offer(flight.view)


async def _show_again(flight: Flight, means: Means, step: Next, answered: Answered) -> Showed | None:
    """Show the answer that the record has."""
    turn = recalled(await means.knowing.entries(flight.turn_id))
    if turn is None or turn.answered is None:
        raise AssertionError("only what was answered is shown again")
    final = await means.knowing.ended(flight.view, flight.question, turn.answered)
    if step.act is Act.SHOWN:
        return Showed(step.outcome, flight.post.posted, final)
    return await _deliver(flight, final, answered, silent=turn.answered.answer.status is not Status.ANSWERED)


async def _deliver(
    flight: Flight, view: View, answered: Answered, outcome: Outcome = Outcome.DELIVERED, *, silent: bool = False
) -> Showed | None:
    """Show what stays. Returns None where somebody deleted what stood there, who then wants all of it to go.

    `silent` is what nobody wants to read who did not ask.
    """
    flight.delivering, post = True, flight.post
    answered()
    if silent and flight.question.unasked and not post.begun:
        return Showed(Outcome.SILENT, Posted(), view)
    try:
        await post.finish(view)
    except PostGone:
        flight.want(Wish.REMOVE, why="what was posted was deleted")
        return None
    except Uncertain as error:
        return Showed(Outcome.UNCERTAIN, post.posted, view, str(error))
    except CannotPost as error:
        report(logging.WARNING, "an answer cannot be posted", flight.question, error, turn_id=flight.turn_id)
        return Showed(Outcome.UNDELIVERABLE, post.posted, view, str(error))
    return Showed(outcome, post.posted, view)
