"""Delivers events, interactions and commands until they are acknowledged or given up, as Slack does.

An event that is not acknowledged within 3 s is delivered again immediately, after 1 minute and after 5 minutes.
Interactions and commands are not: their users are shown that they failed.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tests.platforms.clock import Clock
from tests.platforms.slack import limits

Kind = Literal["events_api", "interactive", "slash_commands"]


@dataclass(eq=False)
class Delivery:
    """An event, interaction or command that has to be acknowledged."""

    kind: Kind
    payload: dict[str, Any]
    answer: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """The body of the acknowledgement."""
    attempt: int = 0
    reason: str = ""
    """Why the attempt before failed."""
    sent: list[float] = field(default_factory=list)
    """When it was sent, by the wall's monotonic clock, each time."""
    took: float | None = None
    """How many seconds of the wall's passed until it was acknowledged, since it was sent last."""

    def acknowledge(self, body: Any) -> None:
        if not self.answer.done():
            self.took = time.monotonic() - self.sent[-1] if self.sent else 0.0
            self.answer.set_result(body)


class Transport(Protocol):
    """How deliveries reach the app."""

    async def send(self, delivery: Delivery) -> str:
        """Make one attempt, and return why it failed; empty once it is acknowledged."""
        ...


async def first(*waits: Any) -> None:
    """Wait for the first of several; futures that were passed in are not cancelled."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task, wait in zip(tasks, waits, strict=True):
            if task is not wait:
                task.cancel()


@dataclass
class Courier:
    """Sends deliveries, and repeats them."""

    clock: Clock
    notify: Callable[[], None]
    transport: Transport | None = None
    unacked: list[Delivery] = field(default_factory=list)
    done: list[Delivery] = field(default_factory=list)
    """Acknowledged ones, in order."""
    lost: list[Delivery] = field(default_factory=list)
    """Deliveries that Slack gave up."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def hand_out(self, kind: Kind, payload: dict[str, Any]) -> Delivery:
        delivery = Delivery(kind, payload)
        self.unacked.append(delivery)
        self._spawn(self._deliver(delivery))
        self.notify()
        return delivery

    def redeliver(self) -> None:
        """Deliver all that is not acknowledged once more, now."""
        for delivery in self.unacked:
            delivery.attempt, delivery.reason = delivery.attempt + 1, delivery.reason or "timeout"
            self._spawn(self._attempt(delivery))

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _attempt(self, delivery: Delivery) -> None:
        assert self.transport
        delivery.reason = await self.transport.send(delivery)

    async def _deliver(self, delivery: Delivery) -> None:
        waits = (0, *limits.RETRY_AFTER) if delivery.kind == "events_api" else (0,)
        for attempt, wait in enumerate(waits):
            if wait:
                await first(delivery.answer, self.clock.sleep(wait))
            if not delivery.answer.done():
                delivery.attempt = max(attempt, delivery.attempt)
                await self._attempt(delivery)
            if delivery.answer.done():
                break
        self.unacked.remove(delivery)
        (self.done if delivery.answer.done() else self.lost).append(delivery)
        if not delivery.answer.done():
            delivery.answer.cancel()
        self.notify()
