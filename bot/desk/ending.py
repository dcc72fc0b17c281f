"""How a question ends otherwise than by being answered: taken back, failed, unrecorded, left to the next start.

And how it is done with in the record, whichever way it went.
"""

import asyncio
import logging
import secrets

from bot.desk import recording
from bot.desk.delivering import Uncertain
from bot.desk.flights import Flight, Means
from bot.desk.notices import resting, said
from bot.desk.recording import Showed
from bot.desk.reporting import report
from bot.desk.sharing import unshare
from bot.desk.types import Outcome, Posted
from bot.platform import PlatformError
from bot.turns import Asked, Failure
from bot.words import say
from pipeline.types import Status
from storage.errors import StorageError
from storage.types import EntryKind

REST_SECONDS = 5.0
"""How long a post may take to say that the server stops."""


async def apologised(flight: Flight, error: Exception) -> Showed:
    """Say that something failed on our side, as far as anything can be said."""
    report(logging.ERROR, "a turn failed", flight.question, error, turn_id=flight.turn_id)
    apology, post = said(flight.ticket, flight.language, say("failed", flight.language)), flight.post
    if flight.question.unasked and not post.begun:
        return Showed(Outcome.SILENT, Posted(), None, _named(error))
    post.fault, flight.delivering = None, True
    try:
        await post.finish(apology)
    except Exception as fault:  # noqa: BLE001 - there is nothing left to try
        report(logging.ERROR, "a failure could not be said", flight.question, fault, turn_id=flight.turn_id)
        return Showed(Outcome.UNDELIVERABLE, post.posted, None, _named(error))
    return Showed(Outcome.DELIVERED, post.posted, apology, _named(error))


def _named(error: Exception) -> str:
    """Return what kind of error it was; its words may hold anything."""
    return type(error).__name__


async def unrecorded(flight: Flight, error: StorageError) -> Showed:
    """Say that nothing is answered because no record of it can be kept, and nothing else."""
    report(logging.ERROR, "a turn cannot be recorded", flight.question, error, turn_id=flight.turn_id)
    sorry = said(flight.ticket, flight.language, say("unrecorded", flight.language))
    await flight.post.settle()
    if not flight.question.unasked or flight.post.begun:
        try:
            await flight.post.last_words(sorry)
        except Exception as fault:  # noqa: BLE001 - there is nothing left to try
            report(logging.ERROR, "a failure could not be said", flight.question, fault, turn_id=flight.turn_id)
    return Showed(Outcome.UNDELIVERABLE, flight.post.posted, sorry, "no record could be kept")


async def removed(flight: Flight, means: Means, *, recorded: bool = False) -> Showed:
    """Take back what stands there, and record by whom: before, so that the next start knows if this one does not."""
    flight.delivering, post = True, flight.post
    if flight.turn_id and not recorded:
        entry = recording.retracted(flight.turn_id, post.posted.messages, by=flight.by, why=flight.why)
        await means.knowing.append(entry)
    try:
        await post.remove()
    except PlatformError as error:
        report(logging.WARNING, "a post could not be removed", flight.question, error, turn_id=flight.turn_id)
    await _unshared(flight, means)
    return Showed(Outcome.RETRACTED, post.posted, None, recorded=True)


async def _unshared(flight: Flight, means: Means) -> None:
    """Take back what the asker shared with the channel."""
    if not (flight.question.only_asker and flight.turn_id):
        return
    try:
        await unshare(flight.post.platform, flight.question, await means.knowing.entries(flight.turn_id))
    except PlatformError as error:
        report(logging.WARNING, "a shared answer could not be removed", flight.question, error, turn_id=flight.turn_id)


async def rested(flight: Flight, means: Means) -> None:
    """Leave it to the next start, and say so where something stands there."""
    try:
        async with asyncio.timeout(REST_SECONDS):
            if flight.post.posted and flight.post.ways.edits and not flight.delivering:
                await flight.post.finish(resting(flight.view))
    except (TimeoutError, PlatformError, Uncertain, StorageError) as error:
        report(logging.WARNING, "a restart could not be announced", flight.question, error)
    try:
        await means.queue.release(flight.ticket)
    except StorageError as error:
        report(logging.ERROR, "a question could not be released", flight.question, error)


async def settled(flight: Flight, means: Means, showed: Showed) -> bool:
    """Record how it was done with, however long the database is away: it is shown, and must not be shown again.

    Returns False where the server stops before that.
    """
    flight.delivering, recorded, attempt = True, showed.recorded, 0
    while not flight.resting.is_set():
        try:
            if not recorded:
                await _opened(flight, means, showed)
                entry = recording.delivered(flight.turn_id, flight.ticket, flight.question, showed)
                await means.knowing.append(entry)
                recorded = True
            await means.queue.finish(flight.ticket, showed.outcome)
        except StorageError as error:
            report(logging.ERROR, "it could not be recorded", flight.question, error, turn_id=flight.turn_id)
            attempt += 1
            await means.clock.sleep_unless(flight.resting, min(60.0, 2.0 ** min(attempt, 10)))
        else:
            return True
    return False


async def _opened(flight: Flight, means: Means, showed: Showed) -> None:
    """See to it that the record has a turn that tells of the question, where it may have ended before it had one."""
    if flight.turn_id and not showed.why and showed.outcome is not Outcome.STOPPED:
        return
    flight.turn_id = flight.turn_id or secrets.token_hex(6)
    entries = await means.knowing.entries(flight.turn_id)
    if any(entry.kind is EntryKind.TURN_OPENED for entry in entries):
        return
    question, stopped = flight.question, showed.outcome is Outcome.STOPPED
    asked = Asked(
        question.text,
        question.asker,
        thread=question.place.thread,
        id=flight.turn_id,
        message=question.message,
        ticket=flight.ticket,
    )
    why = Failure(str(showed.outcome), showed.why or "It was stopped before it began.", "")
    await means.knowing.unanswered(asked, question.task, Status.CANCELLED if stopped else Status.FAILED, why)
