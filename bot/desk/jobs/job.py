"""Define a job, which is a question between intake and completion: its stored form, state, interrupts and ports."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

from bot.access import Asker, mark_unplaced
from bot.answering.turn_record import TurnRecord
from bot.desk.jobs.message_writer import MessageWriter
from bot.desk.platform_port import Platform, PlatformUnavailable
from bot.desk.supervisor import Clock, compute_backoff
from bot.types import Failure, PostedMessages, Question, TaskKind, TurnRequest, TurnResult, log_event
from bot.views.turn_view import View
from bot.views.view_reducer import start_view
from pipeline.types import Event, Status
from storage.database.queue import RETRACTION_KEY, Queue
from storage.record.audit_log import PreparedEntries
from storage.types import LogEntry, NewQuestion, QueuedQuestion


def encode_question(question: Question) -> NewQuestion:
    asker, place = question.asker, question.place
    body = _adapter().dump_python(replace(question, handle=""), mode="json")
    return NewQuestion(
        key=question.key,
        channel=place.channel_id,
        conversation=question.conversation,
        user=f"{place.platform}:{asker.workspace}/{asker.user}",
        message=question.message,
        body=body,
        handle=question.handle,
    )


def decode_question(row: QueuedQuestion) -> Question:
    """Return the question of a row, with its current text. Raises `ValueError` for an invalid row."""
    return replace(_adapter().validate_python(row.body), handle=row.handle)


def read_retraction(row: QueuedQuestion) -> tuple[str, str] | None:
    """Return who requested the retraction of a question's answer, and why; None if it was not requested."""
    retraction = row.body.get(RETRACTION_KEY)
    return (str(retraction.get("by", "")), str(retraction.get("why", ""))) if retraction else None


def _read_beside(row: QueuedQuestion) -> tuple[str, ...]:
    """Return further messages to delete with an answer: those whose record entries were erased."""
    return tuple(map(str, (row.body.get(RETRACTION_KEY) or {}).get("messages", ())))


@cache
def _adapter() -> TypeAdapter[Question]:
    return TypeAdapter(Question)


T = TypeVar("T")

LOCATE_TRIES, LOCATE_PAUSE = 5, 60.0
"""The most attempts to look up the asker's place, and the most seconds between two; then the asker is notified."""


EXCLUDED = "excluded"  # the failure kind of a question by an asker who is never answered


class Interrupt(IntEnum):
    """Why a job is interrupted; a higher value overrides a lower one."""

    STOP_SERVER = 1  # the server stops; the next start continues
    STOP = 2  # a user stopped the answer
    EDIT = 3  # the question was edited
    GIVE_UP = 4  # nothing more of it can be shown
    REMOVE = 5  # its posts are to be deleted


class JobInterrupted(Exception):
    """A job's work was cancelled by an interrupt."""


AnswerFunction = Callable[[TurnRequest, Callable[[Event], None]], Awaitable[TurnResult]]


async def _leave_open(question: Question, result: TurnResult) -> bool:
    del question, result
    return False


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """How a question is answered, as decided when its turn starts."""

    request: TurnRequest
    answer: AnswerFunction  # answers or checks it under the settings of the turn's start
    notice: str = ""  # shown above the answer
    refused: Failure | None = None  # why it is not answered, with a message in the asker's language
    is_readable: Callable[[Question, TurnResult], Awaitable[bool]] = _leave_open
    """Returns whether the same asker may still read everything behind the answer; False if only the record shows it."""


@dataclass(frozen=True, slots=True)
class DeskPorts:
    """The functions of the rest of the bot that jobs call."""

    plan: Callable[[Platform, Question, QueuedQuestion, str], Awaitable[TurnPlan]]
    """Decides scope, earlier conversation, channel settings and budget for the turn with this id. Raises
    `StorageError`."""
    finish_view: Callable[[View, Question, TurnResult], Awaitable[View]]
    """Returns the final view, with only what may be shown and pressed there now."""
    load_entries: Callable[[str], Awaitable[tuple[LogEntry, ...]]]  # returns the log entries of a turn
    append: Callable[[LogEntry], Awaitable[object]]  # appends to the log
    prepare: Callable[[LogEntry], PreparedEntries]  # prepares an entry that is stored with a question's end
    close_interrupted: Callable[[str], Awaitable[bool]]  # closes a turn that was opened and is no longer running
    record_unanswered: Callable[[TurnRequest, TaskKind, Status, Failure], Awaitable[None]]
    """Records a turn in which nothing was answered, with the reason."""
    is_readable: Callable[[Question, TurnRecord], Awaitable[bool]]
    """Returns whether everything behind an answer may still be read where it is to be shown."""
    may_govern: Callable[[Question, Asker], Awaitable[bool]]
    """Returns whether a person governs the question's channel, and may stop and retract others' questions."""


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """The dependencies that all jobs share."""

    queue: Queue
    ports: DeskPorts
    clock: Clock
    owner: str  # this process, for claiming questions; no other process has or had this name
    sole: bool  # whether no other process uses this database
    lease_seconds: float


class Job:
    """A question in progress. Its methods are called on the event loop, and none of them blocks."""

    def __init__(self, row: QueuedQuestion, platform: Platform, context: WorkerContext) -> None:
        """Create the job of a queued question. Raises `ValueError` for an invalid row."""
        self.row, self.ticket, self.turn_id, self.context = row, row.ticket, row.turn_id, context
        self.question = decode_question(row)
        self.unplaced = False
        """Whether the last attempt to look up the asker's place failed."""
        self.delivering = self.started = self.claimed = False
        self.unopened = False
        """Whether its turn has an id from the claim, but is not opened yet."""
        self.task: asyncio.Task[None] | None = None
        """Runs the job, once it is started."""
        self.on_answered: Callable[[], None] = lambda: None
        """Called, once or more often, when the job is no longer being answered, only delivered."""
        self.interrupt: Interrupt | None = None
        self.by = self.why = ""
        """Who requested the interrupt, and why."""
        self.beside = _read_beside(row)
        self.server_stops = asyncio.Event()
        self.finished = asyncio.Event()
        """Set when the desk is done with it."""
        self.writer = MessageWriter(
            platform,
            self.question,
            PostedMessages(row.posted),
            lambda **notes: context.queue.note(row.ticket, **notes),
            context.clock,
            sending=row.sending,
            on_fault=lambda: self.request(Interrupt.GIVE_UP),
        )
        self.view = self.start_view()
        self._work: asyncio.Task[Any] | None = None
        if retraction := read_retraction(row):
            self.request(Interrupt.REMOVE, by=retraction[0], why=retraction[1])

    @property
    def language(self) -> str:
        return self.question.language

    def start_view(self, notice: str = "") -> View:
        """Return the first view. It includes the question's text if no message in the channel shows it."""
        asked = "" if self.question.message or self.question.only_asker else self.question.text
        return start_view(self.ticket, self.language, notice=notice, asked=asked)

    def log(self, level: int, event: str, error: BaseException | None = None) -> None:
        log_event(level, event, self.question, error, turn_id=self.turn_id)

    async def locate_asker(self) -> None:
        """Look up the asker's current place, retrying for a while if the platform is unreachable."""
        self.unplaced, asker = True, mark_unplaced(self.question.asker)
        for attempt in range(LOCATE_TRIES):
            try:
                asker, self.unplaced = await self.writer.platform.asker(self.question), False
                break
            except PlatformUnavailable as error:
                self.log(logging.WARNING, "cannot look up an asker's place", error)
                pause = max(error.seconds or 0.0, compute_backoff(attempt))
                if attempt + 1 == LOCATE_TRIES or pause > LOCATE_PAUSE:
                    break
                await self.context.clock.sleep(pause)
        self.question = self.writer.question = replace(self.question, asker=asker)

    def reword(self, text: str) -> bool:
        """Replace the question's text. Return False if it is too late, because the answer is being delivered."""
        if self.delivering or self.finished.is_set():
            return False
        self.question = self.writer.question = replace(self.question, text=text)
        if self.started:
            self.request(Interrupt.EDIT)
        return True

    def request(self, interrupt: Interrupt, *, by: str = "", why: str = "") -> None:
        """Interrupt the job. A delivery is cancelled only if the server stops."""
        if interrupt is Interrupt.STOP_SERVER:
            self.server_stops.set()
        if self.interrupt is not None and self.interrupt >= interrupt:
            return
        self.interrupt, self.by, self.why = interrupt, by, why
        if self._work is not None and (interrupt is Interrupt.STOP_SERVER or not self.delivering):
            self._work.cancel()

    async def run_unless_interrupted(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work until it ends or the job is interrupted. Raises `JobInterrupted`."""
        if self.interrupt is not None:
            work.close()
            raise JobInterrupted
        self._work = asyncio.ensure_future(work)
        try:
            done: T = await self._work
        except asyncio.CancelledError:
            if self.interrupt is None or not self._work.done():
                raise
            raise JobInterrupted from None
        finally:
            self._work = None
        return done
