"""How a question ends otherwise than by being answered: failed, unrecorded, left to the next start.

And how it is done with in the record, whichever way it went.
"""

import asyncio
import itertools
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import TypeVar

from bot.desk import recording
from bot.desk.delivering import Uncertain
from bot.desk.flights import Flight, Means
from bot.desk.notices import resting, said
from bot.desk.recording import Showed
from bot.desk.reporting import report
from bot.desk.types import Outcome, Posted
from bot.platform import PlatformError
from bot.turns import Asked, Failure
from bot.words import say
from pipeline.types import Status
from storage.errors import StorageError
from storage.types import EntryKind

T = TypeVar("T")

REST_SECONDS = 5.0
"""How long a post may take to say that the server stops."""


class Resting(Exception):
    """The server stops; the next start goes on."""


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


async def stored(flight: Flight, means: Means, store: Callable[[], Awaitable[T]]) -> T:
    """Store something, however long the database is away. Raises `Resting` where the server stops before that."""
    for attempt in itertools.count(1):
        if flight.resting.is_set():
            break
        try:
            return await store()
        except StorageError as error:
            report(logging.ERROR, "it could not be recorded", flight.question, error, turn_id=flight.turn_id)
            await means.clock.sleep_unless(flight.resting, min(60.0, 2.0 ** min(attempt, 10)))
    raise Resting


async def settled(flight: Flight, means: Means, showed: Showed) -> bool:
    """Record how it was done with, however long the database is away: it is shown, and must not be shown again.

    Returns False where the server stops before that.
    """
    flight.delivering, gone = True, showed.outcome is Outcome.RETRACTED
    try:
        if not showed.recorded:
            await stored(flight, means, lambda: _delivered(flight, means, showed))
        # In the words of then: whoever changed them since is answered anew, also if the process ends here.
        text = flight.question.text
        return await stored(
            flight, means, lambda: means.queue.finish(flight.ticket, showed.outcome, text=text, gone=gone)
        )
    except Resting:
        return False


async def _delivered(flight: Flight, means: Means, showed: Showed) -> None:
    if not flight.turn_id or showed.why or showed.outcome is Outcome.STOPPED:
        await opened(flight, means, showed)
    await means.knowing.append(recording.delivered(flight.turn_id, flight.ticket, flight.question, showed))


async def opened(flight: Flight, means: Means, showed: Showed) -> None:
    """See to it that the record has a turn that tells of the question, where it may have ended before it had one."""
    flight.turn_id = flight.turn_id or secrets.token_hex(6)
    entries = await means.knowing.entries(flight.turn_id)
    if any(entry.kind is EntryKind.TURN_OPENED for entry in entries):
        return
    question, ended = flight.question, showed.outcome in {Outcome.STOPPED, Outcome.RETRACTED}
    asked = Asked(
        question.text,
        question.asker,
        thread=question.place.thread,
        id=flight.turn_id,
        message=question.message,
        ticket=flight.ticket,
    )
    why = Failure(str(showed.outcome), showed.why or "It was stopped before it began.", "")
    await means.knowing.unanswered(asked, question.task, Status.CANCELLED if ended else Status.FAILED, why)
