"""A question between intake and completion: as the queue stores it, its state, its interrupts, its ports."""

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
    """Return the question that was put in, in the words that it has now.

    Raises:
        ValueError: The row was not written by `encode_question`.
    """
    return replace(_adapter().validate_python(row.body), handle=row.handle)


def read_retraction(row: QueuedQuestion) -> tuple[str, str] | None:
    """Return who wants a question's answer retracted, and why; None where nobody does."""
    retraction = row.body.get(RETRACTION_KEY)
    return (str(retraction.get("by", "")), str(retraction.get("why", ""))) if retraction else None


def _read_beside(row: QueuedQuestion) -> tuple[str, ...]:
    """Return the messages beside an answer that are to go with it and that the record does not name any more."""
    return tuple(map(str, (row.body.get(RETRACTION_KEY) or {}).get("messages", ())))


@cache
def _adapter() -> TypeAdapter[Question]:
    return TypeAdapter(Question)


T = TypeVar("T")

LOCATE_TRIES, LOCATE_PAUSE = 5, 60.0
"""How often it is asked where somebody stands, and how many seconds lie between two tries at most: after that they are
told that it cannot be told."""


EXCLUDED = "excluded"  # the kind of failure of a question whose asker is not answered at all


class Interrupt(IntEnum):
    """Why a job is interrupted; the higher one counts."""

    STOP_SERVER = 1  # the server stops: the next start goes on
    STOP = 2  # somebody wants no answer any more
    EDIT = 3  # it is asked in other words
    GIVE_UP = 4  # nothing more can be shown of it
    REMOVE = 5  # what is posted is to go


class JobInterrupted(Exception):
    """A job's work was broken off for an interrupt."""


AnswerFunction = Callable[[TurnRequest, Callable[[Event], None]], Awaitable[TurnResult]]


async def _leave_open(question: Question, result: TurnResult) -> bool:
    del question, result
    return False


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """How a question is answered, decided when its turn comes."""

    request: TurnRequest
    answer: AnswerFunction
    """Answers or checks it under the settings of the turn's start; raises what the answering function raises."""
    notice: str = ""  # what the reader must know beforehand
    refused: Failure | None = None
    """Why nothing is answered, its message in the asker's language; nothing is asked then."""
    is_readable: Callable[[Question, TurnResult], Awaitable[bool]] = _leave_open
    """Whether all that its answer was made from may still be read where the same asker stands now; False where only the
    record tells."""


@dataclass(frozen=True, slots=True)
class DeskPorts:
    """What jobs use of the rest of the bot."""

    plan: Callable[[Platform, Question, QueuedQuestion, str], Awaitable[TurnPlan]]
    """Decides on scope, remembered conversation, settings of the channel and budgets, for the turn of that id. Raises
    `StorageError`."""
    finish_view: Callable[[View, Question, TurnResult], Awaitable[View]]
    """Makes of the last view on the way the one that stays, with what may be seen and pressed there now."""
    load_entries: Callable[[str], Awaitable[tuple[LogEntry, ...]]]  # all that the log has of a turn
    append: Callable[[LogEntry], Awaitable[object]]  # adds to the log
    prepare: Callable[[LogEntry], PreparedEntries]  # what is added with the end of a question
    close_interrupted: Callable[[str], Awaitable[bool]]  # closes a turn that was opened and that nobody runs any more
    record_unanswered: Callable[[TurnRequest, TaskKind, Status, Failure], Awaitable[None]]
    """Opens and closes a turn in which nothing was asked, for the record of why."""
    is_readable: Callable[[Question, TurnRecord], Awaitable[bool]]
    """Whether all that an answer was made from may still be read where it is to be shown."""
    may_govern: Callable[[Question, Asker], Awaitable[bool]]
    """Whether this person rules the channel of a question, and may stop and take back what others asked."""


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What every job works with."""

    queue: Queue
    ports: DeskPorts
    clock: Clock
    owner: str  # of all that this process claims; no other process has it, nor had
    sole: bool  # whether there is no other process on this database
    lease_seconds: float


class Job:
    """A question on its way. Its methods are called on the event loop, and none of them blocks."""

    def __init__(self, row: QueuedQuestion, platform: Platform, context: WorkerContext) -> None:
        """Take up a question as the queue has it. Raises `ValueError` where it cannot be read."""
        self.row, self.ticket, self.turn_id, self.context = row, row.ticket, row.turn_id, context
        self.question = decode_question(row)
        self.unplaced = False
        """Whether it could not be told, when it was last asked, where the asker stands."""
        self.delivering = self.started = self.claimed = False
        self.unopened = False
        """Whether its turn was named when it was claimed, and nothing was begun of it yet."""
        self.task: asyncio.Task[None] | None = None
        """All that is done for it, once it is started."""
        self.on_answered: Callable[[], None] = lambda: None
        """Called when it needs no room among those that are being answered any more; once or more often."""
        self.interrupt: Interrupt | None = None
        self.by = self.why = ""
        """Who wants the interrupt, and why."""
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
        """Return the view before anything was done, below the question where no message shows it."""
        asked = "" if self.question.message or self.question.only_asker else self.question.text
        return start_view(self.ticket, self.language, notice=notice, asked=asked)

    def log(self, level: int, event: str, error: BaseException | None = None) -> None:
        log_event(level, event, self.question, error, turn_id=self.turn_id)

    async def locate_asker(self) -> None:
        """Look up where the asker stands by now, again for a while where the platform does not say."""
        self.unplaced, asker = True, mark_unplaced(self.question.asker)
        for attempt in range(LOCATE_TRIES):
            try:
                asker, self.unplaced = await self.writer.platform.asker(self.question), False
                break
            except PlatformUnavailable as error:
                self.log(logging.WARNING, "it cannot be told where an asker stands", error)
                pause = max(error.seconds or 0.0, compute_backoff(attempt))
                if attempt + 1 == LOCATE_TRIES or pause > LOCATE_PAUSE:
                    break
                await self.context.clock.sleep(pause)
        self.question = self.writer.question = replace(self.question, asker=asker)

    def reword(self, text: str) -> bool:
        """Ask in other words from now on; return False where it is too late: the answer is on its way."""
        if self.delivering or self.finished.is_set():
            return False
        self.question = self.writer.question = replace(self.question, text=text)
        if self.started:
            self.request(Interrupt.EDIT)
        return True

    def request(self, interrupt: Interrupt, *, by: str = "", why: str = "") -> None:
        """Interrupt the job. An answer on its way to the reader is broken off only where the server stops."""
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
