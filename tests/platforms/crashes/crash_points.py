"""Wrappers that end their process at a named point by SIGKILL, so that nothing is finished, flushed or closed.

They are passed instead of the real things, and do nothing else.
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from bot.app import App
from bot.types import PostedMessages, ProgressSign, Question
from bot.views.turn_view import View
from pipeline.kit import Kit, System
from pipeline.types import CitedSentence, Conversation, Status
from storage.types import LogEntry

Moment = Literal["before", "after"]
_NOTED = {"turn_id", "sending"}  # facts that may be noted when a question is claimed
Report = Callable[[str, str], None]
"""Reports a word and a value to the test's process."""


@dataclass(frozen=True)
class Point:
    """Where to crash: before or after the n-th time that something is done. An empty name: nowhere."""

    name: str = ""
    moment: Moment = "before"
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.moment} {self.name}" + (f" {self.nth}" if self.nth > 1 else "")


NOWHERE = Point()


@dataclass
class Crash:
    """Counts the steps, and ends the process at its point."""

    point: Point
    counts: Counter[tuple[str, Moment]] = field(default_factory=Counter)
    is_final: bool = False
    """Whether the view that is being shown is the last of its question."""
    sentence_shown: asyncio.Event = field(default_factory=asyncio.Event)

    def reach(self, name: str, moment: Moment) -> None:
        """Count a point, and crash if it is the one."""
        self.counts[name, moment] += 1
        if name and Point(name, moment, self.counts[name, moment]) == self.point:
            os.kill(os.getpid(), signal.SIGKILL)

    async def around(self, names: Collection[str], work: Callable[[], Awaitable[Any]]) -> Any:
        """Do some work between the two points of each name."""
        for name in names:
            self.reach(name, "before")
        done = await work()
        for name in names:
            self.reach(name, "after")
        return done


@dataclass(frozen=True)
class CrashingQueue:
    """The queue. Reports every question that is done, and at the start all that are not."""

    inner: Any
    crash: Crash
    report: Report

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def put(self, question: Any) -> Any:
        return await self.crash.around(["put"], lambda: self.inner.put(question))

    async def claim(self, ticket: int, *given: Any, **facts: Any) -> Any:
        names = [f"note {fact}" for fact in facts.keys() & _NOTED]
        return await self.crash.around(names, lambda: self.inner.claim(ticket, *given, **facts))

    async def note(self, ticket: int, **facts: Any) -> None:
        await self.crash.around([f"note {fact}" for fact in facts], lambda: self.inner.note(ticket, **facts))

    async def finish(self, ticket: int, outcome: str, **facts: Any) -> Any:
        done = await self.crash.around(["finish"], lambda: self.inner.finish(ticket, outcome, **facts))
        self.report("finished", (await self.inner.get(ticket)).key)
        return done

    async def open(self, *given: Any, **facts: Any) -> Any:
        rows = await self.inner.open(*given, **facts)
        self.report("open", " ".join(row.key for row in rows))
        return rows


@dataclass(frozen=True)
class CrashingRecord:
    inner: Any
    crash: Crash

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def append(self, *entries: LogEntry) -> Any:
        return await self.crash.around([entry.kind.value for entry in entries], lambda: self.inner.append(*entries))


@dataclass(frozen=True)
class CrashingClient:
    """A platform's client. `actions`: by route or method whether it posts, edits or defers."""

    inner: Any
    crash: Crash
    actions: Mapping[Any, str]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def __call__(self, target: Any, *given: Any, **facts: Any) -> Any:
        return await self._around(target, partial(self.inner, target, *given, **facts))

    async def respond(self, url: str, body: Mapping[str, Any]) -> None:
        await self._around("respond", lambda: self.inner.respond(url, body))

    async def _around(self, target: Any, work: Callable[[], Awaitable[Any]]) -> Any:
        method = str(target)
        names = [self.actions[name] for name in (target, method) if name in self.actions]
        names += [] if " " in method else [method]
        final = [f"final {name}" for name in names] if self.crash.is_final else []
        return await self.crash.around([*final, *names], work)


@dataclass(frozen=True)
class CrashingPlatform:
    inner: Any
    crash: Crash

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def show_sign(self, question: Question, view: View) -> ProgressSign:
        """Show none, so that every answer has messages in progress."""
        del question, view
        return ProgressSign.NONE

    async def show(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        self.crash.is_final = view.done
        shown: PostedMessages = await self.crash.around(["show"], lambda: self.inner.show(question, view, posted))
        if view.sentences:
            self.crash.sentence_shown.set()
        return shown


def crashing_system(system: System, crash: Crash, *, lingers: bool) -> System:
    """Return a system with points around itself and each sentence. `lingers`: it waits until a sentence is shown."""

    async def answer(talk: Conversation, kit: Kit) -> Status:
        async def say(sentence: CitedSentence) -> bool:
            is_said: bool = await crash.around(["say"], lambda: kit.say(sentence))
            if lingers and is_said:
                await crash.sentence_shown.wait()
            return is_said

        return await crash.around(["system"], lambda: system(talk, replace(kit, say=say)))

    return answer


def crashing_app(app: App, crash: Crash, report: Report, *, lingers: bool) -> App:
    """Return the app with a point at everything that is done in order."""
    systems = {
        name: replace(one, answer=crashing_system(one.answer, crash, lingers=lingers))
        for name, one in app.systems.items()
    }
    queue: Any = CrashingQueue(app.queue, crash, report)
    audit: Any = CrashingRecord(app.audit, crash)
    return replace(app, systems=systems, queue=queue, audit=audit)
