"""Wrappers that kill their process at a named point: SIGKILL, so that nothing is finished, flushed or closed.

They are passed where the real things are passed, and do nothing else.
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bot.app import App
from bot.types import PostedMessages, ProgressSign, Question
from bot.views.turn_view import View
from pipeline.kit import Kit, System
from pipeline.types import CitedSentence, Conversation, Status
from storage.types import LogEntry

Moment = Literal["before", "after"]
_NOTED = {"turn_id", "sending"}  # facts that may be noted when a question is claimed
Tell = Callable[[str, str], None]
"""Tells whoever let the process live a word and what there is to say."""


@dataclass(frozen=True)
class Point:
    """Where to die: before or after the n-th time that something is done. An empty name: nowhere."""

    name: str = ""
    moment: Moment = "before"
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.moment} {self.name}" + (f" {self.nth}" if self.nth > 1 else "")


NOWHERE = Point()


@dataclass
class Fuse:
    """Counts what is done, and ends the process at its point."""

    point: Point
    seen: Counter[tuple[str, Moment]] = field(default_factory=Counter)
    final: bool = False
    """Whether the view that is being shown is the last of its question."""
    said: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a sentence has been shown."""

    async def until_said(self) -> None:
        """Wait until a sentence has been shown."""
        await self.said.wait()

    def at(self, name: str, moment: Moment) -> None:
        """Be somewhere, and perhaps die there."""
        self.seen[name, moment] += 1
        if (
            name
            and (name, moment) == (self.point.name, self.point.moment)
            and self.seen[name, moment] == self.point.nth
        ):
            os.kill(os.getpid(), signal.SIGKILL)

    async def around(self, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        """Do some work between its two points."""
        self.at(name, "before")
        done = await work()
        self.at(name, "after")
        return done


@dataclass(frozen=True)
class FusedQueue:
    """The queue; `tell` hears of every question that is done, and at the start of all that are not."""

    inner: Any
    fuse: Fuse
    tell: Tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def put(self, question: Any) -> Any:
        return await self.fuse.around("put", lambda: self.inner.put(question))

    async def claim(self, ticket: int, *given: Any, **facts: Any) -> Any:
        noted = facts.keys() & _NOTED
        return await self._noting(noted, lambda: self.inner.claim(ticket, *given, **facts))

    async def note(self, ticket: int, **facts: Any) -> None:
        await self._noting(facts, lambda: self.inner.note(ticket, **facts))

    async def finish(self, ticket: int, outcome: str, **facts: Any) -> Any:
        done = await self.fuse.around("finish", lambda: self.inner.finish(ticket, outcome, **facts))
        row = await self.inner.get(ticket)
        self.tell("finished", row.key)
        return done

    async def _noting(self, facts: Collection[str], work: Callable[[], Awaitable[Any]]) -> Any:
        for fact in facts:
            self.fuse.at(f"note {fact}", "before")
        done = await work()
        for fact in facts:
            self.fuse.at(f"note {fact}", "after")
        return done

    async def open(self, *asked: Any, **facts: Any) -> Any:
        rows = await self.inner.open(*asked, **facts)
        self.tell("left", " ".join(row.key for row in rows))
        return rows


@dataclass(frozen=True)
class FusedAudit:
    """The log."""

    inner: Any
    fuse: Fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def append(self, *added: LogEntry) -> Any:
        kinds = [entry.kind.value for entry in added]
        for kind in kinds:
            self.fuse.at(kind, "before")
        numbers = await self.inner.append(*added)
        for kind in kinds:
            self.fuse.at(kind, "after")
        return numbers


@dataclass(frozen=True)
class FusedWire:
    """The network between the platform's client and its server."""

    inner: Any
    fuse: Fuse

    async def call(self, name: str, **facts: Any) -> Any:
        final = f"final {name}" if self.fuse.final else ""
        return await self.fuse.around(name, lambda: self.fuse.around(final, lambda: self.inner.call(name, **facts)))

    async def ack(self, socket: Any, event: int) -> None:
        await self.fuse.around("ack", lambda: self.inner.ack(socket, event))


@dataclass(frozen=True)
class FusedPlatform:
    """The platform."""

    inner: Any
    fuse: Fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def show_sign(self, question: Question, view: View) -> ProgressSign:
        """Show none, so that every answer has messages on its way."""
        del question, view
        return ProgressSign.NONE

    async def show(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        self.fuse.final = view.done
        shown = await self.fuse.around("show", lambda: self.inner.show(question, view, posted))
        if view.sentences:
            self.fuse.said.set()
        return shown


def fused(system: System, fuse: Fuse, linger: Callable[[], Awaitable[None]] | None = None) -> System:
    """Return a system that may die before it begins, and after each sentence, where it may linger."""

    async def answer(talk: Conversation, kit: Kit) -> Status:
        async def say(sentence: CitedSentence) -> bool:
            said = await fuse.around("say", lambda: kit.say(sentence))
            if linger and said:
                await linger()
            return said

        return await fuse.around("system", lambda: system(talk, replace(kit, say=say)))

    return answer


def rigged(app: App, fuse: Fuse, tell: Tell, linger: Callable[[], Awaitable[None]] | None = None) -> App:
    """Return the app with a fuse in everything that is done in order."""
    systems = {name: replace(one, answer=fused(one.answer, fuse, linger)) for name, one in app.systems.items()}
    queue: Any = FusedQueue(app.queue, fuse, tell)
    audit: Any = FusedAudit(app.audit, fuse)
    return replace(app, systems=systems, queue=queue, audit=audit)
