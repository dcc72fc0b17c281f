"""Everything that is under way: who waits, who is being answered, and for how long this process holds what it claimed.

`dispatching` decides who is next, `running` does the work of one question; this keeps the two going, and ends them.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from bot.desk.dispatching import Entry, Lanes, Room, answered, before, joined, left, started
from bot.desk.ending import REST_SECONDS
from bot.desk.flights import Flight, Means, Wish
from bot.desk.reporting import report
from bot.desk.running import run
from bot.platform import Platform
from bot.showing.folding import waiting
from storage.errors import StorageError
from storage.types import QueuedQuestion

_TOLD_AT_ONCE = 4
"""How many who wait are told so at once, on one platform: answers are what its limits are for."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How much is done at once, and how long things may wait, in seconds."""

    room: Room
    patience: float = 20.0
    """Who waits longer is told how many are before him."""
    grace: float = 20.0
    """How long answers under way may take when the desk closes."""


class Floor:
    """Questions on their way. Used on one event loop; nothing of it blocks or raises."""

    def __init__(self, platforms: Mapping[str, Platform], means: Means, pace: Pace) -> None:
        """Start with nothing, closed."""
        self._platforms, self._means, self._pace = platforms, means, pace
        self._lanes = Lanes()
        self._flights: dict[int, Flight] = {}
        self._tasks = set[asyncio.Task[Any]]()
        self._leases: asyncio.Task[None] | None = None
        self._hurried = asyncio.Event()
        self._telling: dict[str, asyncio.Semaphore] = {}
        """By platform: who is told their place just now."""

    @property
    def open(self) -> bool:
        """Whether anything is started."""
        return self._leases is not None

    def flight(self, ticket: int) -> Flight | None:
        """Return a question that is under way or waits; None where it is neither."""
        return self._flights.get(ticket)

    async def begin(self) -> None:
        """Take up what an earlier process left, and start. Raises `StorageError`."""
        rows = await self._means.queue.open(self._means.owner, self._means.clock.now(), sole=self._means.sole)
        self._leases = asyncio.create_task(self._keep_leases())
        for row in rows:
            self.queue_up(row)

    async def take_up(self) -> None:
        """Take up what was left for a platform that came after the beginning. Raises `StorageError`."""
        means = self._means
        for row in await means.queue.open(means.owner, means.clock.now(), sole=means.sole):
            self.queue_up(row)

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
        landed = asyncio.ensure_future(_all_gone(flying))
        await asyncio.wait({over, landed}, return_when=asyncio.FIRST_COMPLETED)
        for flight in self._flights.values():
            flight.want(Wish.REST)
        await asyncio.wait({landed}, timeout=2 * REST_SECONDS)
        await _cancelled({over, landed, leases, *self._tasks})

    def hurry(self) -> None:
        """Let nothing finish any more: what is under way at the end is released at once."""
        self._hurried.set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something beside, until it ends or this does."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def queue_up(self, row: QueuedQuestion) -> None:
        """Let a question wait for its turn; what is to be gone is removed at once.

        Nothing happens where it is known here already, or its platform is not there.
        """
        platform = self._platforms.get(row.channel.partition(":")[0])
        if not self.open or platform is None or row.ticket in self._flights:
            return
        try:
            flight = Flight(row, platform, self._means)
        except ValueError as error:
            report(logging.ERROR, "a question in the queue cannot be read", error=error, ticket=row.ticket)
            return
        self._flights[row.ticket] = flight
        if flight.wish is Wish.REMOVE:
            self._start(flight)
            return
        self._lanes = joined(self._lanes, Entry(row.ticket, row.channel, row.conversation))
        self._dispatch()
        if not flight.started:
            self.spawn(self._tell_place(flight))

    def want(self, flight: Flight, wish: Wish, *, by: str, why: str = "") -> None:
        """Want something of a question. One that waits need not wait for that: it takes no room."""
        flight.want(wish, by=by, why=why)
        if not flight.started:
            self._lanes = left(self._lanes, flight.ticket)
            self._start(flight)

    def _dispatch(self) -> None:
        """Start all that may start now."""
        if self.open:
            self._lanes, entries = started(self._lanes, self._pace.room)
            for entry in entries:
                self._start(self._flights[entry.ticket])

    def _start(self, flight: Flight) -> None:
        flight.started = True
        flight.task = self.spawn(self._fly(flight))

    async def _fly(self, flight: Flight) -> None:
        try:
            await run(flight, self._means, lambda: self._answered(flight))
        except Exception as error:  # noqa: BLE001 - a fault in one turn never ends the desk
            report(logging.CRITICAL, "a question was left to the next start", flight.question, error)
        finally:
            flight.post.close()
            self._lanes = left(self._lanes, flight.ticket)
            self._flights.pop(flight.ticket, None)
            flight.gone.set()
            self._dispatch()

    def _answered(self, flight: Flight) -> None:
        self._lanes = answered(self._lanes, flight.ticket)
        self._dispatch()

    async def _tell_place(self, flight: Flight) -> None:
        """Tell somebody who waits too long how many are before him."""
        await self._means.clock.sleep(self._pace.patience)
        async with self._telling.setdefault(flight.post.platform.name, asyncio.Semaphore(_TOLD_AT_ONCE)):
            if not flight.started and flight.ticket in self._flights:
                flight.view = waiting(flight.view, before(self._lanes, flight.ticket))
                flight.post.offer(flight.view)
                await flight.post.shown()

    async def _keep_leases(self) -> None:
        """Renew what this process claimed, give up what another took, and take up what another left."""
        while True:
            await self._means.clock.sleep(self._means.lease_seconds / 3)
            try:
                await self._renew()
            except StorageError as error:
                report(logging.ERROR, "leases cannot be renewed", error=error)

    async def _renew(self) -> None:
        means = self._means
        claimed = [flight for flight in self._flights.values() if flight.claimed]
        renewed = await means.queue.renew(means.owner, means.clock.now() + timedelta(seconds=means.lease_seconds))
        if means.sole:
            return
        for flight in claimed:
            if flight.ticket not in renewed and flight.task is not None and not flight.gone.is_set():
                report(logging.WARNING, "another process took a question over", flight.question)
                flight.task.cancel()
        for row in await means.queue.open(means.owner, means.clock.now()):
            self.queue_up(row)


async def _all_gone(flights: set[Flight]) -> None:
    for flight in flights:
        await flight.gone.wait()


async def _cancelled(tasks: set[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
