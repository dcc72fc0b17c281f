"""Schedule jobs fairly: channels take turns; within one, and within a conversation, questions start in order.

A question waits in its channel's line, is answered, is delivered, and leaves. Only being answered takes up room,
since a platform that is away for an hour must not keep others from their answers; but the next question of a
conversation starts when the one before has left. While it waits for that, those behind it pass, unless a channel has
room for one question only: then it wants them in their order.

`SchedulerState` and its functions decide, purely, who is next; `Scheduler` keeps the jobs going, and ends them.
"""

import asyncio
import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from bot.desk.jobs.completion import RELEASE_SECONDS
from bot.desk.jobs.job import Interrupt, Job, WorkerContext
from bot.desk.jobs.ports import log_event
from bot.desk.jobs.turn_runner import run_job
from bot.platform import Platform
from bot.views.view_reducer import show_queue_position
from storage.errors import StorageError
from storage.types import QueuedQuestion

_NONE: Mapping[int, "QueuedJob"] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A question as far as its turn to be answered goes. A higher ticket was taken later."""

    ticket: int
    channel: str
    conversation: str


@dataclass(frozen=True, slots=True)
class ConcurrencyLimit:
    """How many may be answered at once."""

    at_once: int
    per_channel: int


@dataclass(frozen=True, slots=True)
class SchedulerState:
    """Every question at the desk, and where it stands."""

    waiting: Mapping[str, tuple[QueuedJob, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """The line of each channel that has one. The channel that comes first is served first, and goes to the end."""
    answering: Mapping[int, QueuedJob] = field(default_factory=lambda: _NONE)
    delivering: Mapping[int, QueuedJob] = field(default_factory=lambda: _NONE)


def enqueue_job(lanes: SchedulerState, entry: QueuedJob) -> SchedulerState:
    """Return the lanes with one more who waits."""
    line = sorted((*lanes.waiting.get(entry.channel, ()), entry), key=lambda one: one.ticket)
    return replace(lanes, waiting={**lanes.waiting, entry.channel: tuple(line)})


def start_jobs(lanes: SchedulerState, room: ConcurrencyLimit) -> tuple[SchedulerState, tuple[QueuedJob, ...]]:
    """Return the lanes with all started that may start now, and which those are, in their order."""
    chosen: list[QueuedJob] = []
    while (entry := _find_next_job(lanes, room)) is not None:
        lanes = _start_job(lanes, entry)
        chosen.append(entry)
    return lanes, tuple(chosen)


def mark_answered(lanes: SchedulerState, ticket: int) -> SchedulerState:
    """Return the lanes with a question that is being delivered from now on."""
    entry = lanes.answering.get(ticket)
    if entry is None:
        return lanes
    return replace(
        lanes, answering=_drop_job(lanes.answering, ticket), delivering={**lanes.delivering, ticket: entry}
    )  # fmt: skip


def remove_job(lanes: SchedulerState, ticket: int) -> SchedulerState:
    """Return the lanes without a question, wherever it stood."""
    lines = {
        channel: tuple(entry for entry in line if entry.ticket != ticket) for channel, line in lanes.waiting.items()
    }
    return SchedulerState(
        {channel: line for channel, line in lines.items() if line},
        _drop_job(lanes.answering, ticket),
        _drop_job(lanes.delivering, ticket),
    )


def count_ahead(lanes: SchedulerState, ticket: int) -> int:
    """Return how many questions that were taken earlier are not answered yet."""
    waiting = sum(bisect_left(line, ticket, key=lambda one: one.ticket) for line in lanes.waiting.values())
    return waiting + sum(other < ticket for other in lanes.answering)


def _find_next_job(lanes: SchedulerState, room: ConcurrencyLimit) -> QueuedJob | None:
    if len(lanes.answering) >= room.at_once:
        return None
    busy = Counter(entry.channel for entry in lanes.answering.values())
    talking = {entry.conversation for entry in (*lanes.answering.values(), *lanes.delivering.values())}
    lines = (line for channel, line in lanes.waiting.items() if busy[channel] < room.per_channel)
    able = (entry for line in lines for entry in (line if room.per_channel > 1 else line[:1]))
    return next((entry for entry in able if entry.conversation not in talking), None)


def _start_job(lanes: SchedulerState, entry: QueuedJob) -> SchedulerState:
    """Return the lanes with one of a line started, and the rest of that line behind the other channels."""
    others = {channel: line for channel, line in lanes.waiting.items() if channel != entry.channel}
    rest = tuple(other for other in lanes.waiting[entry.channel] if other != entry)
    waiting = {**others, entry.channel: rest} if rest else others
    return replace(lanes, waiting=waiting, answering={**lanes.answering, entry.ticket: entry})


def _drop_job(entries: Mapping[int, QueuedJob], ticket: int) -> Mapping[int, QueuedJob]:
    return {number: entry for number, entry in entries.items() if number != ticket}


_NOTICES_AT_ONCE = 4
"""How many who wait are told so at once, on one platform: answers are what its limits are for."""


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """How much is done at once, and how long things may wait, in seconds."""

    room: ConcurrencyLimit
    patience: float = 20.0
    """Who waits longer is told how many are before him."""
    grace: float = 20.0
    """How long answers under way may take when the desk closes."""


class Scheduler:
    """Questions on their way. Used on one event loop; nothing of it blocks or raises."""

    def __init__(self, platforms: Mapping[str, Platform], means: WorkerContext, pace: SchedulerSettings) -> None:
        """Start with nothing, closed."""
        self._platforms, self._means, self._pace = platforms, means, pace
        self._lanes = SchedulerState()
        self._flights: dict[int, Job] = {}
        self._tasks = set[asyncio.Task[Any]]()
        self._leases: asyncio.Task[None] | None = None
        self._hurried = asyncio.Event()
        self._telling: dict[str, asyncio.Semaphore] = {}
        """By platform: who is told their place just now."""

    @property
    def open(self) -> bool:
        """Whether anything is started."""
        return self._leases is not None

    def flight(self, ticket: int) -> Job | None:
        """Return a question that is under way or waits; None where it is neither."""
        return self._flights.get(ticket)

    async def begin(self) -> None:
        """Take up what an earlier process left, and start. Raises `StorageError`."""
        rows = await self._means.queue.open(self._means.owner, self._means.clock.now(), sole=self._means.sole)
        self._leases = asyncio.create_task(self._keep_leases())
        for row in rows:
            self.enqueue(row)

    async def resume_questions(self) -> None:
        """Take up what was left for a platform that came after the beginning. Raises `StorageError`."""
        means = self._means
        for row in await means.queue.open(means.owner, means.clock.now(), sole=means.sole):
            self.enqueue(row)

    async def end(self) -> None:
        """Start nothing more, let what is under way finish for a while, and have the rest released."""
        if self._leases is None:
            return
        leases, self._leases = self._leases, None
        flying = {flight for flight in self._flights.values() if flight.started}
        for flight in self._flights.values():
            if not flight.started:
                flight.gone.set()
        self._flights = {flight.ticket: flight for flight in flying}
        over = asyncio.ensure_future(self._means.clock.sleep_unless(self._hurried, self._pace.grace))
        landed = asyncio.ensure_future(_wait_until_gone(flying))
        await asyncio.wait({over, landed}, return_when=asyncio.FIRST_COMPLETED)
        for flight in self._flights.values():
            flight.want(Interrupt.REST)
        await asyncio.wait({landed}, timeout=2 * RELEASE_SECONDS)
        await _cancel_all({over, landed, leases, *self._tasks})

    def stop_now(self) -> None:
        """Let nothing finish any more: what is under way at the end is released at once."""
        self._hurried.set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something beside, until it ends or this does."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def enqueue(self, row: QueuedQuestion) -> None:
        """Let a question wait for its turn; what is to be gone is removed at once.

        Nothing happens where it is known here already, or its platform is not there.
        """
        platform = self._platforms.get(row.channel.partition(":")[0])
        if not self.open or platform is None or row.ticket in self._flights:
            return
        try:
            flight = Job(row, platform, self._means)
        except ValueError as error:
            log_event(logging.ERROR, "a question in the queue cannot be read", error=error, ticket=row.ticket)
            return
        self._flights[row.ticket] = flight
        if flight.wish is Interrupt.REMOVE:
            self._start(flight)
            return
        self._lanes = enqueue_job(self._lanes, QueuedJob(row.ticket, row.channel, row.conversation))
        self._dispatch()
        if not flight.started:
            self.spawn(self._tell_place(flight))

    def want(self, flight: Job, wish: Interrupt, *, by: str, why: str = "") -> None:
        """Want something of a question. One that waits need not wait for that: it takes no room."""
        flight.want(wish, by=by, why=why)
        if not flight.started:
            self._lanes = remove_job(self._lanes, flight.ticket)
            self._start(flight)

    def _dispatch(self) -> None:
        """Start all that may start now."""
        if self.open:
            self._lanes, entries = start_jobs(self._lanes, self._pace.room)
            for entry in entries:
                self._start(self._flights[entry.ticket])

    def _start(self, flight: Job) -> None:
        flight.started = True
        flight.task = self.spawn(self._fly(flight))

    async def _fly(self, flight: Job) -> None:
        try:
            await run_job(flight, self._means, lambda: self._answered(flight))
        except Exception as error:  # noqa: BLE001 - a fault in one turn never ends the desk
            log_event(logging.CRITICAL, "a question was left to the next start", flight.question, error)
        finally:
            flight.post.close()
            self._lanes = remove_job(self._lanes, flight.ticket)
            self._flights.pop(flight.ticket, None)
            flight.gone.set()
            self._dispatch()

    def _answered(self, flight: Job) -> None:
        self._lanes = mark_answered(self._lanes, flight.ticket)
        self._dispatch()

    async def _tell_place(self, flight: Job) -> None:
        """Tell somebody who waits too long how many are before him."""
        await self._means.clock.sleep(self._pace.patience)
        async with self._telling.setdefault(flight.post.platform.name, asyncio.Semaphore(_NOTICES_AT_ONCE)):
            if not flight.started and flight.ticket in self._flights:
                flight.view = show_queue_position(flight.view, count_ahead(self._lanes, flight.ticket))
                flight.post.offer(flight.view)
                await flight.post.shown()

    async def _keep_leases(self) -> None:
        """Renew what this process claimed, give up what another took, and take up what another left."""
        while True:
            await self._means.clock.sleep(self._means.lease_seconds / 3)
            try:
                await self._renew()
            except StorageError as error:
                log_event(logging.ERROR, "leases cannot be renewed", error=error)

    async def _renew(self) -> None:
        means = self._means
        claimed = [flight for flight in self._flights.values() if flight.claimed]
        renewed = await means.queue.renew(means.owner, means.clock.now() + timedelta(seconds=means.lease_seconds))
        if means.sole:
            return
        for flight in claimed:
            if flight.ticket not in renewed and flight.task is not None and not flight.gone.is_set():
                log_event(logging.WARNING, "another process took a question over", flight.question)
                flight.task.cancel()
        for row in await means.queue.open(means.owner, means.clock.now()):
            self.enqueue(row)


async def _wait_until_gone(flights: set[Job]) -> None:
    for flight in flights:
        await flight.gone.wait()


async def _cancel_all(tasks: set[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
