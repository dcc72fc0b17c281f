"""Complete a job: record its delivery, apologise for a failure, release it to the next start, or retract its answer.

That an answer is to be retracted stands in the question's row before anybody is told of it, so that the next start
completes what this one does not. Only where the platform refuses for good it is left there, and that is on record.
"""

import asyncio
import itertools
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from bot.desk.answer_actions import remove_shared_answer
from bot.desk.jobs.job import Job, OnAnswered, WorkerContext
from bot.desk.jobs.message_writer import DeliveryUnknown
from bot.desk.jobs.ports import log_event
from bot.desk.types import DeliveryOutcome, Failure, PostedMessages, Question, TurnRequest
from bot.platform import PlatformError
from bot.views.answer_text import render_plain_text
from bot.views.catalog import translate
from bot.views.turn_view import View
from bot.views.view_reducer import build_notice_view, show_restart
from pipeline.types import Status
from storage.errors import StorageError
from storage.types import EntryKind, LogEntry

STOPPED_KEY = "stopped"
"""Under this key an `edited` entry says who stopped a turn, which the process may not outlive."""


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """What came of showing a final view."""

    outcome: DeliveryOutcome
    posted: PostedMessages
    view: View | None
    why: str = ""
    """Why it was not posted, or not for certain."""
    recorded: bool = False
    """Whether the log has it already."""


def build_delivered_entry(turn_id: str, ticket: int, question: Question, showed: DeliveryResult) -> LogEntry:
    """Return how a question was done with. Of an answer that nobody saw it says why."""
    place, view = question.place, showed.view
    body = {
        "ticket": ticket,
        "outcome": showed.outcome,
        "platform": place.platform,
        "workspace": place.workspace,
        "channel": place.channel,
        "thread": place.thread,
        "only_asker": question.only_asker,
        "messages": showed.posted.messages,
        "text": render_plain_text(view) if view and showed.outcome is not DeliveryOutcome.SILENT else "",
        "left_out": view.left_out if view else "",
        "why": showed.why,
    }
    return LogEntry(turn_id, EntryKind.DELIVERED, body)


def build_retracted_entry(turn_id: str, messages: Sequence[str], *, by: str, why: str) -> LogEntry:
    """Return that what was posted was taken back."""
    return LogEntry(turn_id, EntryKind.EDITED, {"retracted": True, "removed": tuple(messages), "by": by, "why": why})


def build_withheld_entry(turn_id: str) -> LogEntry:
    """Return that an answer was not shown, since what it was made from could not be read there any more."""
    why = "what it was made from could not be read there any more"
    return LogEntry(turn_id, EntryKind.EDITED, {"withheld": True, "why": why})


def build_stop_entry(turn_id: str, *, by: str) -> LogEntry:
    """Return that somebody stopped a turn."""
    return LogEntry(turn_id, EntryKind.EDITED, {STOPPED_KEY: True, "by": by})


T = TypeVar("T")

RELEASE_SECONDS = 5.0
"""How long a post may take to say that the server stops."""


class ServerStopping(Exception):
    """The server stops; the next start goes on."""


async def send_apology(flight: Job, error: Exception) -> DeliveryResult:
    """Say that something failed on our side, as far as anything can be said."""
    log_event(logging.ERROR, "a turn failed", flight.question, error, turn_id=flight.turn_id)
    apology, post = build_notice_view(flight.ticket, flight.language, translate("failed", flight.language)), flight.post
    if flight.question.unasked and not post.begun:
        return DeliveryResult(DeliveryOutcome.SILENT, PostedMessages(), None, _name_error(error))
    post.fault, flight.delivering = None, True
    try:
        await post.finish(apology)
    except Exception as fault:  # noqa: BLE001 - there is nothing left to try
        log_event(logging.ERROR, "a failure could not be said", flight.question, fault, turn_id=flight.turn_id)
        return DeliveryResult(DeliveryOutcome.UNDELIVERABLE, post.posted, None, _name_error(error))
    return DeliveryResult(DeliveryOutcome.DELIVERED, post.posted, apology, _name_error(error))


def _name_error(error: Exception) -> str:
    """Return what kind of error it was; its words may hold anything."""
    return type(error).__name__


async def send_unrecorded_notice(flight: Job, error: StorageError) -> DeliveryResult:
    """Say that nothing is answered because no record of it can be kept, and nothing else."""
    log_event(logging.ERROR, "a turn cannot be recorded", flight.question, error, turn_id=flight.turn_id)
    sorry = build_notice_view(flight.ticket, flight.language, translate("unrecorded", flight.language))
    await flight.post.settle()
    if not flight.question.unasked or flight.post.begun:
        try:
            await flight.post.show_once(sorry)
        except Exception as fault:  # noqa: BLE001 - there is nothing left to try
            log_event(logging.ERROR, "a failure could not be said", flight.question, fault, turn_id=flight.turn_id)
    return DeliveryResult(DeliveryOutcome.UNDELIVERABLE, flight.post.posted, sorry, "no record could be kept")


async def release_job(flight: Job, means: WorkerContext) -> None:
    """Leave it to the next start, and say so where something stands there."""
    try:
        async with asyncio.timeout(RELEASE_SECONDS):
            if flight.post.posted and flight.post.ways.edits and not flight.delivering:
                await flight.post.finish(show_restart(flight.view))
    except (TimeoutError, PlatformError, DeliveryUnknown, StorageError) as error:
        log_event(logging.WARNING, "a restart could not be announced", flight.question, error)
    try:
        await means.queue.release(flight.ticket)
    except StorageError as error:
        log_event(logging.ERROR, "a question could not be released", flight.question, error)


async def store_with_retry(flight: Job, means: WorkerContext, store: Callable[[], Awaitable[T]]) -> T:
    """Store something, however long the database is away. Raises `Resting` where the server stops before that."""
    for attempt in itertools.count(1):
        if flight.resting.is_set():
            break
        try:
            return await store()
        except StorageError as error:
            log_event(logging.ERROR, "it could not be recorded", flight.question, error, turn_id=flight.turn_id)
            await means.clock.sleep_unless(flight.resting, min(60.0, 2.0 ** min(attempt, 10)))
    raise ServerStopping


async def settle_job(flight: Job, means: WorkerContext, showed: DeliveryResult) -> bool:
    """Record how it was done with, however long the database is away: it is shown, and must not be shown again.

    Returns False where the server stops before that.
    """
    flight.delivering, gone = True, showed.outcome is DeliveryOutcome.RETRACTED
    try:
        if not showed.recorded:
            await store_with_retry(flight, means, lambda: _append_delivered(flight, means, showed))
        # In the words of then: whoever changed them since is answered anew, also if the process ends here.
        text = flight.question.text
        return await store_with_retry(
            flight, means, lambda: means.queue.finish(flight.ticket, showed.outcome, text=text, gone=gone)
        )
    except ServerStopping:
        return False


async def _append_delivered(flight: Job, means: WorkerContext, showed: DeliveryResult) -> None:
    if not flight.turn_id or showed.why or showed.outcome is DeliveryOutcome.STOPPED:
        await ensure_turn_opened(flight, means, showed)
    await means.knowing.append(build_delivered_entry(flight.turn_id, flight.ticket, flight.question, showed))


async def ensure_turn_opened(flight: Job, means: WorkerContext, showed: DeliveryResult) -> None:
    """See to it that the record has a turn that tells of the question, where it may have ended before it had one."""
    flight.turn_id = flight.turn_id or secrets.token_hex(6)
    entries = await means.knowing.entries(flight.turn_id)
    if any(entry.kind is EntryKind.TURN_OPENED for entry in entries):
        return
    question, ended = flight.question, showed.outcome in {DeliveryOutcome.STOPPED, DeliveryOutcome.RETRACTED}
    asked = TurnRequest(
        question.text,
        question.asker,
        thread=question.place.thread,
        id=flight.turn_id,
        message=question.message,
        ticket=flight.ticket,
    )
    why = Failure(str(showed.outcome), showed.why or "It was stopped before it began.", "")
    await means.knowing.unanswered(asked, question.task, Status.CANCELLED if ended else Status.FAILED, why)


@dataclass(frozen=True, slots=True)
class Removal:
    """What came of removing what was posted."""

    removed: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()
    """What the platform would not remove."""
    why: str = ""
    """Why not."""


async def retract_answer(flight: Job, means: WorkerContext, answered: OnAnswered) -> DeliveryResult | None:
    """Take back what stands there, and record by whom before, and what is gone after. None where it rests."""
    flight.delivering = True
    answered()
    try:
        entries = await store_with_retry(flight, means, lambda: _begin_retraction(flight, means))
        removal = await _remove_unless_stopping(flight, entries)
        await store_with_retry(flight, means, lambda: _record_removal(flight, means, removal))
    except ServerStopping:
        await release_job(flight, means)
        return None
    return DeliveryResult(DeliveryOutcome.RETRACTED, PostedMessages(removal.standing), None, recorded=True)


def build_retraction_entry(turn_id: str, *, by: str, why: str) -> LogEntry:
    """Return that somebody wants what was posted to be gone; from then on nobody is shown anything of it."""
    return LogEntry(turn_id, EntryKind.EDITED, {"retracted": True, "by": by, "why": why})


def build_removal_entry(turn_id: str, removal: Removal) -> LogEntry:
    """Return what was removed, and what the platform would not remove."""
    left = {"standing": removal.standing, "why": removal.why} if removal.why else {}
    return LogEntry(turn_id, EntryKind.EDITED, {"removed": removal.removed, **left})


async def _begin_retraction(flight: Job, means: WorkerContext) -> tuple[LogEntry, ...]:
    """See to it that the record has its turn, closed, and who takes it back; returns what it has."""
    if not flight.turn_id:
        turn_id = secrets.token_hex(6)
        await means.queue.note(flight.ticket, turn_id=turn_id)
        flight.turn_id = turn_id
    await ensure_turn_opened(
        flight,
        means,
        DeliveryResult(DeliveryOutcome.RETRACTED, PostedMessages(), None, "It was taken back before it began."),
    )
    await means.knowing.interrupt(flight.turn_id)
    entries = await means.knowing.entries(flight.turn_id)
    if not any(entry.body.get("retracted") for entry in _select_edits(entries)):
        await means.knowing.append(build_retraction_entry(flight.turn_id, by=flight.by, why=flight.why))
    return entries


async def _remove_unless_stopping(flight: Job, entries: tuple[LogEntry, ...]) -> Removal:
    """Remove what stands there. Raises `Resting` where the server stops before that: it can be done again."""
    work = asyncio.ensure_future(_remove_messages(flight, entries))
    rest = asyncio.ensure_future(flight.resting.wait())
    try:
        await asyncio.wait({work, rest}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ServerStopping
        return work.result()
    finally:
        work.cancel()
        rest.cancel()


async def _remove_messages(flight: Job, entries: tuple[LogEntry, ...]) -> Removal:
    """Remove the answer, and what its asker shared of it with the channel: each, whatever becomes of the other."""
    post, removal = flight.post, Removal()

    async def unshared() -> tuple[str, ...]:
        return await post.patiently(lambda: remove_shared_answer(post.platform, flight.question, entries))

    for remove in (post.remove, unshared) if flight.question.only_asker else (post.remove,):
        try:
            removal = replace(removal, removed=removal.removed + await remove())
        except PlatformError as error:
            log_event(logging.WARNING, "a post could not be removed", flight.question, error, turn_id=flight.turn_id)
            removal = replace(removal, standing=post.posted.messages, why=str(error))
    return removal


async def _record_removal(flight: Job, means: WorkerContext, removal: Removal) -> None:
    entries = _select_edits(await means.knowing.entries(flight.turn_id))
    # Older records name what is to be removed before it is, with who wants it.
    if not any("removed" in entry.body and not entry.body.get("retracted") for entry in entries):
        await means.knowing.append(build_removal_entry(flight.turn_id, removal))


def _select_edits(entries: Iterable[LogEntry]) -> tuple[LogEntry, ...]:
    return tuple(entry for entry in entries if entry.kind is EntryKind.EDITED)
