"""Fakes around the desk, in memory: a queue, a record, a platform, a system, and a fuse that kills the process.

They outlive a desk: a test whose fuse has ended one opens another on the same world.
"""

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any

from bot.access import Asker, Exclusion
from bot.answering import turn_record
from bot.answering.turn_record import build_closing_entries, build_interruption, build_opening
from bot.desk.desk import Desk
from bot.desk.jobs.job import DeskPorts, TurnPlan
from bot.desk.jobs.scheduler import ConcurrencyLimit, SchedulerSettings
from bot.desk.platform_port import PostGone
from bot.desk.supervisor import Clock
from bot.types import (
    DeliveryCapabilities,
    Failure,
    Place,
    PostedMessages,
    ProgressSign,
    Question,
    TurnRequest,
    TurnResult,
)
from bot.views.catalog import render_answer_text
from bot.views.turn_view import View
from bot.views.view_reducer import finish_view
from pipeline.types import Answer, AnsweredSentence, Conversation, SearchStarted, SentencePassed, Status, Turn, Usage
from storage.database.engine import to_json_value
from storage.errors import HomeUnusable
from storage.types import EntryKind, LogEntry, NewQuestion, QueuedQuestion

DAY = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PLATFORM = "slack"


def question(number: int = 1, channel: str = "C1", thread: str = "", **changes: Any) -> Question:
    """Return a question; each number has its own thread unless one is given."""
    place = Place(PLATFORM, "T1", channel, thread or f"t{number}")
    asker = Asker(PLATFORM, "channel", "T1", channel, "U1")
    facts = {"message": f"m{number}", "handle": "xoxb-secret" if number % 2 else ""}
    conversation = f"{place.channel_id}/{place.thread}"
    key = f"{place.channel_id}/{number}"
    return Question(key, "ask", f"Question {number}?", asker, place, conversation, DAY, **facts | changes)


class ProcessDied(asyncio.CancelledError):
    """The process was killed."""


@dataclass
class Fuse:
    """Count the calls that reach outside the process, before and after each; at `most` the process dies."""

    most: int = 1_000_000
    burnt: int = 0
    dead: asyncio.Event = field(default_factory=asyncio.Event)
    buried: bool = False

    async def step(self) -> None:
        await asyncio.sleep(0)
        self.burnt += 1
        if self.burnt >= self.most:
            self.dead.set()
        if self.dead.is_set():
            if not self.buried:
                await asyncio.Event().wait()
            raise ProcessDied


@dataclass
class World:
    """The state on disk and on the platform."""

    rows: dict[int, QueuedQuestion] = field(default_factory=dict)
    log: list[LogEntry] = field(default_factory=list)
    posts: dict[str, tuple[str, View]] = field(default_factory=dict)
    """By message: the question's key and the view."""
    notices: list[str] = field(default_factory=list)
    fuse: Fuse = field(default_factory=Fuse)
    broken: set[str] = field(default_factory=set)
    """The methods of queue and record that fail."""
    faults: dict[str, list[Exception]] = field(default_factory=dict)
    """What the next calls of the platform raise, by method; `after_show` is raised after it posted."""
    calls: list[str] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    """All that was ever shown."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever a row changes."""
    readable: list[bool] = field(default_factory=list)
    """Whether what the next answers were made from may be read when they are to be shown; later ones' may."""
    refused: Failure | None = None
    """Why nothing is answered."""

    async def reach(self, name: str) -> None:
        await self.fuse.step()
        if name in self.broken:
            raise HomeUnusable("The disk is full.", hint="Make room.")

    def read(self, number: int = 1, channel: str = "C1") -> list[View]:
        return [view for key, view in self.posts.values() if key == f"{PLATFORM}:T1/{channel}/{number}"]

    def entries(self, kind: EntryKind) -> list[LogEntry]:
        return [entry for entry in self.log if entry.kind is kind]


@dataclass
class MemoryQueue:
    """`storage.database.queue.Queue` without a database."""

    world: World

    async def put(self, new: NewQuestion) -> tuple[QueuedQuestion, bool]:
        await self.world.reach("put")
        known = next((row for row in self.world.rows.values() if row.key == new.key), None)
        if known:
            return known, False
        ticket = len(self.world.rows) + 1
        asked = {name: getattr(new, name) for name in NewQuestion.__slots__}
        fresh = {"state": "waiting", "outcome": "", "taken_at": DAY, "turn_id": ""}
        row = QueuedQuestion(ticket, **asked, **fresh, posted=(), owner="", lease_until=None)
        self.world.rows[ticket] = row
        await self.world.fuse.step()
        return row, True

    async def open(self, owner: str, now: datetime, *, sole: bool = False) -> tuple[QueuedQuestion, ...]:
        await self.world.reach("open")
        return tuple(row for row in self.world.rows.values() if _free(row, owner, now, sole=sole))

    async def claim(
        self, ticket: int, owner: str, until: datetime, *, now: datetime, sole: bool = False, **notes: Any
    ) -> bool:
        await self.world.reach("claim")
        if not _free(self.world.rows[ticket], owner, now, sole=sole):
            return False
        await self._set(ticket, state="running", owner=owner, lease_until=until, **notes)
        return True

    async def renew(self, owner: str, until: datetime) -> frozenset[int]:
        if "renew" in self.world.broken:
            raise HomeUnusable("The disk is full.")
        mine = [row for row in self.world.rows.values() if row.state == "running" and row.owner == owner]
        for row in mine:
            self.world.rows[row.ticket] = replace(row, lease_until=until)
        return frozenset(row.ticket for row in mine)

    async def release(self, ticket: int) -> None:
        await self.world.reach("release")
        await self._set(ticket, state="waiting", owner="")

    async def note(self, ticket: int, **notes: Any) -> None:
        await self.world.reach("note")
        known = {name: value for name, value in notes.items() if value is not None and name != "text"}
        if notes.get("text") is not None:
            known["body"] = {**self.world.rows[ticket].body, "text": notes["text"]}
        await self._set(ticket, **known)

    async def finish(
        self,
        ticket: int,
        outcome: str,
        *,
        text: str | None = None,
        gone: bool = False,
        posted: tuple[str, ...] | None = None,
        record: Callable[[Any], Any] | None = None,
    ) -> bool:
        await self.world.reach("finish")
        if record:
            if "append" in self.world.broken:
                raise HomeUnusable("The disk is full.", hint="Make room.")
            record(None)
        if posted is not None:
            self.world.rows[ticket] = replace(self.world.rows[ticket], posted=posted)
        body = self.world.rows[ticket].body
        done = gone or ("taken_back" not in body and text in {None, body["text"]})
        over = {"state": "done", "outcome": str(outcome), "handle": ""} if done else {"state": "waiting"}
        await self._set(ticket, owner="", **over)
        return done

    async def retract(self, ticket: int, *, by: str, why: str) -> QueuedQuestion | None:
        await self.world.reach("take_back")
        row = self.world.rows[ticket]
        if "taken_back" not in row.body:
            again = {"state": "waiting", "outcome": ""} if row.state == "done" else {}
            await self._set(ticket, body={**row.body, "taken_back": {"by": by, "why": why}}, **again)
        row = self.world.rows[ticket]
        return row if row.state != "done" else None

    async def reopen(self, ticket: int, text: str) -> bool:
        await self.world.reach("reopen")
        row = self.world.rows[ticket]
        if row.state != "done":
            return False
        body = {**row.body, "text": text}
        await self._set(ticket, state="waiting", outcome="", turn_id="", sending=False, body=body)
        return True

    async def get(self, ticket: int) -> QueuedQuestion | None:
        return self.world.rows.get(ticket)

    async def by_key(self, key: str) -> QueuedQuestion | None:
        return next((row for row in self.world.rows.values() if row.key == key), None)

    async def conversation(self, conversation: str, *, limit: int) -> tuple[QueuedQuestion, ...]:
        found = [row for row in self.world.rows.values() if row.conversation == conversation]
        return tuple(found[-limit:])

    async def _set(self, ticket: int, **values: Any) -> None:
        self.world.rows[ticket] = replace(self.world.rows[ticket], **values)
        self.world.changed.set()
        await self.world.fuse.step()


def _free(row: QueuedQuestion, owner: str, now: datetime, *, sole: bool) -> bool:
    left = row.state == "running" and row.owner != owner
    return row.state == "waiting" or (left and (sole or (row.lease_until is not None and row.lease_until < now)))


@dataclass
class MemoryPlatform:
    """A platform in memory with the limits of a real one."""

    world: World
    edits: bool = True
    reads_back: bool = True
    pace: float = 0.0
    gate: asyncio.Event | None = None
    """While it is not set, nothing can be shown."""
    sign: ProgressSign = ProgressSign.NONE
    name: str = PLATFORM
    exclusion: Exclusion = Exclusion.NONE  # why the asker is excluded
    signs: list[View] = field(default_factory=list)
    """The views shown by signs."""

    async def asker(self, asked: Question) -> Asker:
        self._fail("asker")
        return replace(asked.asker, exclusion=self.exclusion)

    def ways(self, asked: Question) -> DeliveryCapabilities:
        del asked
        return DeliveryCapabilities(self.edits, self.reads_back, self.pace)

    async def show(self, asked: Question, view: View, posted: PostedMessages) -> PostedMessages:
        await self._reach("show")
        if self.gate:
            await self.gate.wait()
        assert view.ticket
        assert self.edits or (view.done and not posted)
        if gone := [message for message in posted.messages if message not in self.world.posts]:
            raise PostGone(f"{gone} is not there")
        message = posted.messages[0] if posted else f"p{len(self.world.calls)}"
        self.world.posts[message] = (asked.key, view)
        self.world.views.append(view)
        self._fail("after_show")
        await self.world.fuse.step()
        return PostedMessages((message,))

    async def show_sign(self, asked: Question, view: View) -> ProgressSign:
        del asked
        self.signs.append(view)
        self._fail("show_sign")
        return self.sign

    async def find(self, asked: Question) -> PostedMessages:
        assert self.reads_back
        await self._reach("find")
        return PostedMessages(tuple(message for message, (key, _) in self.world.posts.items() if key == asked.key))

    async def remove(self, asked: Question, posted: PostedMessages) -> None:
        del asked
        await self._reach("remove")
        for message in posted.messages:
            self.world.posts.pop(message, None)
        await self.world.fuse.step()

    async def tell(self, asked: Question, text: str) -> None:
        del asked
        await self._reach("tell")
        self.world.notices.append(text)
        await self.world.fuse.step()

    async def _reach(self, name: str) -> None:
        await self.world.fuse.step()
        self.world.calls.append(name)
        self._fail(name)

    def _fail(self, name: str) -> None:
        if self.world.faults.get(name):
            raise self.world.faults[name].pop(0)


@dataclass
class EchoSystem:
    """A system that repeats the question. `gates` block it at the question's text; `errors` end it there."""

    world: World
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    errors: dict[str, Exception] = field(default_factory=dict)
    statuses: dict[str, Status] = field(default_factory=dict)
    asked: list[TurnRequest] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, asked: TurnRequest, tell: Callable[[Any], None]) -> TurnResult:
        """Answer like `bot.answering.question_answering`, and record it."""
        self.asked.append(asked)
        asking = Turn("user", asked.text, at=DAY, language="en")
        opened = build_opening(asked, Conversation((asking,)), {}, {"task": "ask"})
        await self._append(asked.id, EntryKind.TURN_OPENED, opened)
        tell(SearchStarted(asked.text))
        status, sentence = Status.CANCELLED, AnsweredSentence(f"About: {asked.text}", (1,))
        try:
            self.begun.set()
            if gate := self.gates.get(asked.text):
                await gate.wait()
            await self.world.fuse.step()
            tell(SentencePassed(sentence))
            if error := self.errors.get(asked.text):
                raise error
            status = self.statuses.get(asked.text, Status.ANSWERED)
        finally:
            sentences = (sentence,) if status is Status.ANSWERED else ()
            answer = Answer(status, sentences)
            done = TurnResult(asked.id, answer, render_answer_text(answer, asking), "fake", None, Usage(), 0.1)
            (closed,) = build_closing_entries(done, (), (), ())
            await self._append(asked.id, closed.kind, closed.body)
        return done

    async def _append(self, turn_id: str, kind: EntryKind, body: Any) -> None:
        await append(self.world, LogEntry(turn_id, kind, body))


async def append(world: World, entry: LogEntry) -> None:
    await world.reach("append")
    insert(world, entry)
    await world.fuse.step()


def insert(world: World, entry: LogEntry) -> None:
    world.log.append(replace(entry, body=to_json_value(entry.body), seq=len(world.log) + 1, at=DAY))


def prepare(world: World, entry: LogEntry) -> Any:
    return SimpleNamespace(insert=lambda _: insert(world, entry), report=lambda: None)


@dataclass
class ManualClock:
    """A clock that only tests advance."""

    sleepers: list[tuple[float, asyncio.Event]] = field(default_factory=list)
    at: float = 0.0

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        self.sleepers.append((self.at + seconds, woken))
        await woken.wait()

    async def move(self, seconds: float) -> None:
        await settle()
        self.at += seconds
        for when, woken in self.sleepers:
            if when <= self.at:
                woken.set()
        await settle()


async def settle() -> None:
    for _ in range(200):
        await asyncio.sleep(0)


@dataclass
class DeskSetup:
    """A desk with its surroundings."""

    world: World
    platform: MemoryPlatform
    system: EchoSystem
    desk: Desk
    clock: ManualClock
    queue: Any

    async def hold(self, *questions: Question) -> asyncio.Event:
        """Submit questions, and block the system in the first until the returned event is set."""
        gate = self.system.gates[questions[0].text] = asyncio.Event()
        for asked in questions:
            await self.desk.take(asked)
        await settle()
        return gate


def make_desk(
    world: World | None = None,
    *,
    sleep: Any = None,
    room: ConcurrencyLimit | None = None,
    now: Callable[[], datetime] = lambda: DAY,
    sole: bool = True,
    **traits: Any,
) -> DeskSetup:
    world = world or World()
    platform, system, waits = MemoryPlatform(world, **traits), EchoSystem(world), ManualClock()

    async def plan(app: Any, asked: Question, row: QueuedQuestion, turn_id: str) -> TurnPlan:
        del app
        request = TurnRequest(asked.text, asked.asker, id=turn_id, ticket=row.ticket)
        return TurnPlan(request, system.answer, refused=world.refused)

    async def entries(turn_id: str) -> tuple[LogEntry, ...]:
        await world.reach("entries")
        return tuple(entry for entry in world.log if entry.turn_id == turn_id)

    async def interrupt(turn_id: str) -> bool:
        known = {entry.kind: entry for entry in await entries(turn_id)}
        if EntryKind.TURN_OPENED not in known or EntryKind.TURN_CLOSED in known:
            return False
        await append(world, build_interruption(known[EntryKind.TURN_OPENED]))
        return True

    async def final(view: View, asked: Question, answered: TurnResult) -> View:
        del asked
        return finish_view(view, answered)

    async def readable(*_: Any) -> bool:
        return world.readable.pop(0) if world.readable else True

    async def unanswered(asked: TurnRequest, task: str, status: Status, why: Failure) -> None:
        opened = build_opening(asked, Conversation((Turn("user", asked.text),)), {}, {"task": task})
        await append(world, LogEntry(asked.id, EntryKind.TURN_OPENED, opened))
        await append(world, turn_record.build_unanswered(asked.id, status, why))

    async def governs(asked: Question, by: Asker) -> bool:
        del asked
        return by.user == "UADMIN"

    async def added(entry: LogEntry) -> None:
        await append(world, entry)

    ports = DeskPorts(plan, final, entries, added, partial(prepare, world), interrupt, unanswered, readable, governs)
    clock = Clock(now, sleep or waits.sleep)
    pace = SchedulerSettings(room or ConcurrencyLimit(8, 4), grace=5.0)
    queue = MemoryQueue(world)
    desk = Desk(queue, {PLATFORM: platform}, ports, lambda: pace, sole=sole, clock=clock)
    return DeskSetup(world, platform, system, desk, waits, queue)


@asynccontextmanager
async def running_desk(world: World | None = None, **traits: Any) -> Any:
    """Run a desk, and stop it at the end without waiting for blocked jobs."""
    opened, closing_down = make_desk(world, **traits), None
    try:
        async with opened.desk.running():
            try:
                yield opened
            finally:
                closing_down = asyncio.create_task(_hurry(opened.clock))
    finally:
        if closing_down:
            closing_down.cancel()


async def _hurry(clock: ManualClock) -> None:
    while True:
        await clock.move(60.0)


async def wait_until_done(world: World, ticket: int = 1) -> QueuedQuestion:
    async with asyncio.timeout(60):
        await wait_until(world, lambda: world.rows[ticket].state == "done")
    return world.rows[ticket]


async def wait_until(world: World, holds: Callable[[], bool]) -> None:
    world.changed = asyncio.Event()
    while not holds():
        world.changed.clear()
        await world.changed.wait()
