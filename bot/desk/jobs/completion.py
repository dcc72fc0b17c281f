"""Complete a job: record its delivery, apologise for a failure, leave it to the next start, or retract its answer.

A retraction is stored in the question's row before anything is deleted, so that the next start completes it. Only posts
that the platform permanently refuses to delete remain, which is recorded.
"""

import asyncio
import itertools
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from bot.desk.answer_actions import remove_notes, remove_shared_answer
from bot.desk.jobs.job import Job
from bot.desk.jobs.message_writer import DeliveryUnknown
from bot.desk.platform_port import PlatformError
from bot.desk.supervisor import compute_backoff, run_beside, wait_for_first
from bot.types import DeliveryOutcome, Failure, PostedMessages, Question, build_turn_request
from bot.views.catalog import translate
from bot.views.message_layout import render_plain_text
from bot.views.turn_view import View
from bot.views.view_reducer import build_notice_view, show_restart
from pipeline.types import Status
from storage.errors import StorageError
from storage.types import EntryKind, LogEntry

T = TypeVar("T")

STOPPED_KEY = "stopped"  # marks the `edited` entry of a stopped turn, as its process may end before it is delivered
RELEASE_SECONDS = 5.0  # how long announcing that the server stops may take


class ServerStopping(Exception):
    """The server is stopping; the next start continues the job."""


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The outcome of showing a final view."""

    outcome: DeliveryOutcome
    posted: PostedMessages
    view: View | None = None
    why: str = ""  # why it was not, or may not have been, posted
    recorded: bool = False  # whether it is already in the log


def build_delivered_entry(turn_id: str, ticket: int, question: Question, result: DeliveryResult) -> LogEntry:
    """Return the entry of a question's outcome, with the reason if its answer was not shown."""
    place, view = question.place, result.view
    body = {
        "ticket": ticket,
        "outcome": result.outcome,
        "platform": place.platform,
        "workspace": place.workspace,
        "channel": place.channel,
        "thread": place.thread,
        "only_asker": question.only_asker,
        "messages": result.posted.messages,
        "text": render_plain_text(view) if view and result.outcome is not DeliveryOutcome.SILENT else "",
        "left_out": view.left_out if view else "",
        "why": result.why,
    }
    return LogEntry(turn_id, EntryKind.DELIVERED, body)


def build_withheld_entry(turn_id: str) -> LogEntry:
    why = "its sources could no longer be read there"
    return LogEntry(turn_id, EntryKind.EDITED, {"withheld": True, "why": why})


def build_stop_entry(turn_id: str, *, by: str) -> LogEntry:
    return LogEntry(turn_id, EntryKind.EDITED, {STOPPED_KEY: True, "by": by})


async def send_apology(job: Job, error: Exception) -> DeliveryResult:
    """Notify the asker, if possible, that something failed on our side.

    If the bot was not addressed and has posted nothing, it posts no apology.
    """
    job.log(logging.ERROR, "a turn failed", error)
    # Only the error's type is recorded: its message may contain anything.
    why, writer = type(error).__name__, job.writer
    if job.question.unasked and not writer.begun:
        return DeliveryResult(DeliveryOutcome.SILENT, PostedMessages(), why=why)
    apology = build_notice_view(job.ticket, job.language, translate("failed", job.language))
    writer.fault, job.delivering = None, True
    try:
        await writer.finish(apology)
    except Exception as fault:  # noqa: BLE001 - there is nothing left to try
        job.log(logging.ERROR, "cannot notify the asker of a failure", fault)
        return DeliveryResult(DeliveryOutcome.UNDELIVERABLE, writer.posted, why=why)
    return DeliveryResult(DeliveryOutcome.DELIVERED, writer.posted, apology, why)


async def send_unrecorded_notice(job: Job, error: StorageError) -> DeliveryResult:
    """Notify the asker that the question is not answered, because it cannot be recorded."""
    job.log(logging.ERROR, "a turn cannot be recorded", error)
    notice = build_notice_view(job.ticket, job.language, translate("unrecorded", job.language))
    await job.writer.settle()
    if not job.question.unasked or job.writer.begun:
        try:
            await job.writer.show_once(notice)
        except Exception as fault:  # noqa: BLE001 - there is nothing left to try
            job.log(logging.ERROR, "cannot notify the asker of a failure", fault)
    return DeliveryResult(DeliveryOutcome.UNDELIVERABLE, job.writer.posted, notice, "the turn could not be recorded")


async def release_job(job: Job) -> None:
    """Leave a job to the next start, and announce the restart in its posts if they can be edited."""
    try:
        async with asyncio.timeout(RELEASE_SECONDS):
            await job.writer.settle()  # a first post may be in progress
            if job.writer.posted and job.writer.ways.edits and not job.delivering:
                await job.writer.finish(show_restart(job.view))
    except (TimeoutError, PlatformError, DeliveryUnknown, StorageError) as error:
        job.log(logging.WARNING, "cannot announce a restart", error)
    try:
        await job.context.queue.release(job.ticket)
    except StorageError as error:
        job.log(logging.ERROR, "cannot release a question", error)


async def store_with_retry(job: Job, store: Callable[[], Awaitable[T]]) -> T:
    """Store something, retrying until the database is reachable. Raises `ServerStopping` if the server stops first."""
    for attempt in itertools.count(1):
        if job.server_stops.is_set():
            break
        try:
            return await store()
        except StorageError as error:
            job.log(logging.ERROR, "recording failed, retrying", error)
            await job.context.clock.sleep_unless(job.server_stops, compute_backoff(attempt))
    raise ServerStopping


async def settle_job(job: Job, result: DeliveryResult) -> bool:
    """Record a job's outcome, retrying because its answer must not be posted twice; False if the server stops."""
    job.delivering = True
    try:
        return await store_with_retry(job, lambda: _store_end(job, result))
    except ServerStopping:
        return False


async def _store_end(job: Job, result: DeliveryResult) -> bool:
    ports, finish, entries = job.context.ports, job.context.queue.finish, None
    if not result.recorded:
        if not job.turn_id or result.why or result.outcome is DeliveryOutcome.STOPPED:
            await _ensure_turn_opened(job, result)
        entries = ports.prepare(build_delivered_entry(job.turn_id, job.ticket, job.question, result))
    # Stored with the answered text: if the question was edited since, it is answered again, even after a crash here.
    text, gone = job.question.text, result.outcome is DeliveryOutcome.RETRACTED
    facts: dict[str, Any] = {"text": text, "gone": gone, "posted": job.writer.unstored}
    done = await finish(job.ticket, result.outcome, **facts, record=entries.insert if entries else None)
    if entries is not None:
        entries.report()
    return done


async def _ensure_turn_opened(job: Job, result: DeliveryResult) -> None:
    """Record a turn for a question that ended before it had one."""
    job.turn_id = job.turn_id or secrets.token_hex(6)
    entries = await job.context.ports.load_entries(job.turn_id)
    if any(entry.kind is EntryKind.TURN_OPENED for entry in entries):
        return
    cancelled = result.outcome in {DeliveryOutcome.STOPPED, DeliveryOutcome.RETRACTED}
    request = build_turn_request(job.question, turn_id=job.turn_id, ticket=job.ticket)
    why = Failure(str(result.outcome), result.why or "It was stopped before it began.", "")
    status = Status.CANCELLED if cancelled else Status.FAILED
    await job.context.ports.record_unanswered(request, job.question.task, status, why)


@dataclass(frozen=True, slots=True)
class Removal:
    removed: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()  # messages that the platform refused to delete
    why: str = ""  # the platform's reason


async def retract_answer(job: Job) -> DeliveryResult | None:
    """Delete the posts of an answer; return None if the server stops first.

    The requester is recorded before the deletion, the deleted posts after it.
    """
    job.delivering = True
    job.on_answered()
    try:
        entries = await store_with_retry(job, lambda: _begin_retraction(job))
        removal = await _remove_unless_stopping(job, entries)
        await store_with_retry(job, lambda: _record_removal(job, removal))
    except ServerStopping:
        await release_job(job)
        return None
    return DeliveryResult(DeliveryOutcome.RETRACTED, PostedMessages(removal.standing), recorded=True)


async def _begin_retraction(job: Job) -> tuple[LogEntry, ...]:
    """Record the retraction of a closed turn; return the turn's earlier entries."""
    ports = job.context.ports
    if not job.turn_id:
        turn_id = secrets.token_hex(6)
        await job.context.queue.note(job.ticket, turn_id=turn_id)
        job.turn_id = turn_id
    why = "It was retracted before it began."
    await _ensure_turn_opened(job, DeliveryResult(DeliveryOutcome.RETRACTED, PostedMessages(), why=why))
    await ports.close_interrupted(job.turn_id)
    entries = await ports.load_entries(job.turn_id)
    if not any(entry.body.get("retracted") for entry in _select_edits(entries)):
        # From now on nothing of the turn is shown anywhere.
        body = {"retracted": True, "by": job.by, "why": job.why}
        await ports.append(LogEntry(job.turn_id, EntryKind.EDITED, body))
    return entries


async def _remove_unless_stopping(job: Job, entries: tuple[LogEntry, ...]) -> Removal:
    """Delete the posts. Raises `ServerStopping` if the server stops first; the next start deletes them again."""
    async with run_beside(_remove_messages(job, entries), name="removal") as removal:
        await wait_for_first(removal, job.server_stops.wait())
        if not removal.done():
            raise ServerStopping
        return removal.result()


async def _remove_messages(job: Job, entries: tuple[LogEntry, ...]) -> Removal:
    """Delete the answer, the notes under it, and its shared copy, each even if another cannot be deleted."""
    writer, removal = job.writer, Removal()

    async def remove_shared() -> tuple[str, ...]:
        return await writer.call_patiently(lambda: remove_shared_answer(writer.platform, job.question, entries))

    async def remove_beneath() -> tuple[str, ...]:
        return await writer.call_patiently(lambda: remove_notes(writer.platform, job.question, entries, job.beside))

    shared = (remove_shared,) if job.question.only_asker else ()
    for remove in (writer.remove, remove_beneath, *shared):
        try:
            removal = replace(removal, removed=removal.removed + await remove())
        except PlatformError as error:
            job.log(logging.WARNING, "cannot delete a post", error)
            removal = replace(removal, standing=writer.posted.messages, why=str(error))
    return removal


async def _record_removal(job: Job, removal: Removal) -> None:
    entries = _select_edits(await job.context.ports.load_entries(job.turn_id))
    # Older records have the messages in the entry of the request, before they are deleted.
    if any("removed" in entry.body and not entry.body.get("retracted") for entry in entries):
        return
    refused = {"standing": removal.standing, "why": removal.why} if removal.why else {}
    await job.context.ports.append(LogEntry(job.turn_id, EntryKind.EDITED, {"removed": removal.removed, **refused}))


def _select_edits(entries: Iterable[LogEntry]) -> tuple[LogEntry, ...]:
    return tuple(entry for entry in entries if entry.kind is EntryKind.EDITED)
