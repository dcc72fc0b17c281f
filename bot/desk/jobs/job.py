"""A question between intake and completion: how the queue stores it, its state, and how it is interrupted."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

from bot.access import mark_unplaced
from bot.desk.jobs.message_writer import MessageWriter
from bot.desk.jobs.ports import Clock, DeskPorts, log_event
from bot.desk.types import PostedMessages, Question
from bot.platform import Platform, PlatformUnavailable
from bot.views.turn_view import View
from bot.views.view_reducer import start_view
from storage.language.detection import detect_language
from storage.queue import RETRACTION_KEY, Queue
from storage.types import NewQuestion, QueuedQuestion


def encode_question(question: Question) -> NewQuestion:
    """Return what is put into the queue."""
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
        ValueError: The row was not written by `kept`.
    """
    return replace(_adapter().validate_python(row.body), handle=row.handle)


def read_retraction(row: QueuedQuestion) -> tuple[str, str] | None:
    """Return who wants a question's answer gone, and why; None where nobody does."""
    wish = row.body.get(RETRACTION_KEY)
    return (str(wish.get("by", "")), str(wish.get("why", ""))) if wish else None


@cache
def _adapter() -> TypeAdapter[Question]:
    return TypeAdapter(Question)


T = TypeVar("T")

_LANGUAGE_SAMPLE = 2_000
"""Characters that a language is told by."""


class Interrupt(IntEnum):
    """What is wanted of a question under way; the higher one counts."""

    REST = 1
    """The server stops: the next start goes on."""
    STOP = 2
    """Somebody wants no answer any more."""
    EDIT = 3
    """It is asked in other words."""
    GIVE_UP = 4
    """Nothing more can be shown of it."""
    REMOVE = 5
    """What stands there is to go."""


class JobInterrupted(Exception):
    """Something else is wanted than what was being done."""


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What every flight works with."""

    queue: Queue
    knowing: DeskPorts
    clock: Clock
    owner: str
    """Of all that this process claims; no other process has it, nor had."""
    sole: bool
    """Whether there is no other process on this database."""
    lease_seconds: float


class Job:
    """A question on its way. Its methods are called on the event loop, and none of them blocks."""

    def __init__(self, row: QueuedQuestion, platform: Platform, means: WorkerContext) -> None:
        """Take up a question as the queue has it. Raises `ValueError` where it cannot be read."""
        self.row = row
        self.ticket = row.ticket
        self.question = decode_question(row)
        self.turn_id = row.turn_id
        self.unplaced = False
        """Whether it could not be told, when it was last asked, where the asker stands."""
        self.delivering = False
        self.started = self.claimed = False
        self.task: asyncio.Task[None] | None = None
        """All that is done for it, once it is started."""
        self.wish: Interrupt | None = None
        self.by = self.why = ""
        self.resting = asyncio.Event()
        """Set when the server stops."""
        self.gone = asyncio.Event()
        """Set when the desk is done with it."""
        self.post = MessageWriter(
            platform,
            self.question,
            PostedMessages(row.posted),
            lambda **notes: means.queue.note(row.ticket, **notes),
            means.clock,
            sending=row.sending,
            failed=lambda: self.want(Interrupt.GIVE_UP),
        )
        self.view = self.fresh()
        self._work: asyncio.Task[Any] | None = None
        if wish := read_retraction(row):
            self.want(Interrupt.REMOVE, by=wish[0], why=wish[1])

    @property
    def language(self) -> str:
        """The asker's, as far as it can be told."""
        return detect_language(self.question.text[:_LANGUAGE_SAMPLE])

    def fresh(self, notice: str = "") -> View:
        """Return what is shown before anything is known."""
        return start_view(self.ticket, self.language, notice=notice)

    async def look(self) -> None:
        """Find out where the asker stands by now."""
        try:
            asker, self.unplaced = await self.post.platform.asker(self.question), False
        except PlatformUnavailable as error:
            log_event(logging.WARNING, "it cannot be told where an asker stands", self.question, error)
            asker, self.unplaced = mark_unplaced(self.question.asker), True
        self.question = self.post.question = replace(self.question, asker=asker)

    def reword(self, text: str) -> bool:
        """Ask in other words from now on. Returns False where it is too late: the answer is on its way."""
        if self.delivering or self.gone.is_set():
            return False
        self.question = self.post.question = self.question.rewritten(text)
        if self.started:
            self.want(Interrupt.EDIT)
        return True

    def want(self, wish: Interrupt, *, by: str = "", why: str = "") -> None:
        """Want something of it. An answer on its way to the reader is broken off only where the server stops."""
        if wish is Interrupt.REST:
            self.resting.set()
        if self.wish is not None and self.wish >= wish:
            return
        self.wish, self.by, self.why = wish, by, why
        if self._work is not None and (wish is Interrupt.REST or not self.delivering):
            self._work.cancel()

    async def run_unless_interrupted(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something unless something else is wanted. Raises `Interrupted`."""
        if self.wish is not None:
            work.close()
            raise JobInterrupted
        self._work = asyncio.ensure_future(work)
        try:
            done: T = await self._work
        except asyncio.CancelledError:
            if self.wish is None or not self._work.done():
                raise
            raise JobInterrupted from None
        finally:
            self._work = None
        return done


OnAnswered = Callable[[], None]
"""Called when a question needs no room among those that are being answered any more."""
