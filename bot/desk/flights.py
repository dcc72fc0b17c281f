"""A question between its being taken and its being done with, and what somebody wants of it meanwhile."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, TypeVar

from bot.access import unplaced
from bot.desk.clock import Clock
from bot.desk.delivering import Post
from bot.desk.keeping import question_of, wish_of
from bot.desk.knowing import Knowing
from bot.desk.reporting import report
from bot.desk.types import Posted
from bot.platform import Platform, PlatformUnavailable
from bot.showing.folding import begun
from bot.showing.view import View
from storage.language.detect import detect
from storage.queue import Queue
from storage.types import QueuedQuestion

T = TypeVar("T")

_READ = 2_000
"""Characters that a language is told by."""


class Wish(IntEnum):
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


class Interrupted(Exception):
    """Something else is wanted than what was being done."""


@dataclass(frozen=True, slots=True)
class Means:
    """What every flight works with."""

    queue: Queue
    knowing: Knowing
    clock: Clock
    owner: str
    """Of all that this process claims; no other process has it, nor had."""
    sole: bool
    """Whether there is no other process on this database."""
    lease_seconds: float


class Flight:
    """A question on its way. Its methods are called on the event loop, and none of them blocks."""

    def __init__(self, row: QueuedQuestion, platform: Platform, means: Means) -> None:
        """Take up a question as the queue has it. Raises `ValueError` where it cannot be read."""
        self.row = row
        self.ticket = row.ticket
        self.question = question_of(row)
        self.turn_id = row.turn_id
        self.unplaced = False
        """Whether it could not be told, when it was last asked, where the asker stands."""
        self.delivering = False
        self.started = self.claimed = False
        self.task: asyncio.Task[None] | None = None
        """All that is done for it, once it is started."""
        self.wish: Wish | None = None
        self.by = self.why = ""
        self.resting = asyncio.Event()
        """Set when the server stops."""
        self.gone = asyncio.Event()
        """Set when the desk is done with it."""
        self.post = Post(
            platform,
            self.question,
            Posted(row.posted),
            lambda **notes: means.queue.note(row.ticket, **notes),
            means.clock,
            sending=row.sending,
            failed=lambda: self.want(Wish.GIVE_UP),
        )
        self.view = self.fresh()
        self._work: asyncio.Task[Any] | None = None
        if wish := wish_of(row):
            self.want(Wish.REMOVE, by=wish[0], why=wish[1])

    @property
    def language(self) -> str:
        """The asker's, as far as it can be told."""
        return detect(self.question.text[:_READ])

    def fresh(self, notice: str = "") -> View:
        """Return what is shown before anything is known."""
        return begun(self.ticket, self.language, notice=notice)

    async def look(self) -> None:
        """Find out where the asker stands by now."""
        try:
            asker, self.unplaced = await self.post.platform.asker(self.question), False
        except PlatformUnavailable as error:
            report(logging.WARNING, "it cannot be told where an asker stands", self.question, error)
            asker, self.unplaced = unplaced(self.question.asker), True
        self.question = self.post.question = replace(self.question, asker=asker)

    def reword(self, text: str) -> bool:
        """Ask in other words from now on. Returns False where it is too late: the answer is on its way."""
        if self.delivering or self.gone.is_set():
            return False
        self.question = self.post.question = self.question.rewritten(text)
        if self.started:
            self.want(Wish.EDIT)
        return True

    def want(self, wish: Wish, *, by: str = "", why: str = "") -> None:
        """Want something of it. An answer on its way to the reader is broken off only where the server stops."""
        if wish is Wish.REST:
            self.resting.set()
        if self.wish is not None and self.wish >= wish:
            return
        self.wish, self.by, self.why = wish, by, why
        if self._work is not None and (wish is Wish.REST or not self.delivering):
            self._work.cancel()

    async def unless_wanted(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something unless something else is wanted. Raises `Interrupted`."""
        if self.wish is not None:
            work.close()
            raise Interrupted
        self._work = asyncio.ensure_future(work)
        try:
            done: T = await self._work
        except asyncio.CancelledError:
            if self.wish is None or not self._work.done():
                raise
            raise Interrupted from None
        finally:
            self._work = None
        return done


Answered = Callable[[], None]
"""Called when a question needs no room among those that are being answered any more."""
