"""How fast Slack may be called: its limits as data, pure decisions on when the next call may be made, and who waits.

Slack counts the calls of each method by the minute for the whole workspace, and posts by the second for each channel.
Whoever calls takes the next free moment, so that calls are made in the order in which they are wanted; a 429 closes
its method for as long as Slack says. What only shows the way to an answer asks first whether there is room to spare.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

_MARGIN = 1.02
"""Calls arrive a little closer together than they were sent."""


@dataclass(frozen=True, slots=True)
class Rate:
    """So many calls in so many seconds, whichever seconds one looks at."""

    calls: int
    seconds: float = 60.0


RATES: Mapping[str, Rate] = MappingProxyType(
    {
        "chat.startStream": Rate(20),
        "chat.appendStream": Rate(100),
        "chat.stopStream": Rate(20),
        "chat.update": Rate(50),
        "chat.delete": Rate(50),
        "chat.postEphemeral": Rate(100),
        "conversations.replies": Rate(50),
        "conversations.history": Rate(50),
        "conversations.info": Rate(50),
        "users.info": Rate(100),
        "views.open": Rate(100),
        "views.update": Rate(100),
        "views.push": Rate(100),
        "auth.test": Rate(100),
        "assistant.threads.setStatus": Rate(100),
    }
)
"""From Slack's documents; those of a method that is not here are taken to be `OTHERS`."""
OTHERS = Rate(20)
POSTS = Rate(1, 1.0)
"""`chat.postMessage`, in one channel."""


class Busy(Exception):
    """No call may be made soon. `seconds` says when."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no call for {seconds:.0f} s")
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Lane:
    """The calls that share a limit: when the newest of them were, or will be, made. All times are a clock's seconds."""

    rate: Rate
    taken: tuple[float, ...] = ()
    """In order, at most as many as the rate counts."""
    closed: float = 0.0
    """Until when Slack wants none."""

    def soonest(self, now: float) -> float:
        """Return when the next call may be made."""
        full = len(self.taken) >= self.rate.calls
        free = self.taken[-self.rate.calls] + self.rate.seconds * _MARGIN if full else now
        return max(now, self.closed, free)

    def after(self, at: float) -> "Lane":
        """Return the lane with one more call."""
        return replace(self, taken=(*self.taken, at)[-self.rate.calls :])

    def room(self, now: float) -> int:
        """Return how many calls could be made at once now."""
        if now < self.closed:
            return 0
        return self.rate.calls - sum(at + self.rate.seconds * _MARGIN > now for at in self.taken)


def lane_of(method: str, channel: str) -> tuple[str, Rate]:
    """Return what a call is counted by."""
    if method == "chat.postMessage":
        return f"{method} {channel}", POSTS
    return method, RATES.get(method, OTHERS)


class Pacing:
    """The limits of one workspace, and who waits for them."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        """Take a clock that nobody sets, in seconds, and what waits by it."""
        self._now, self.sleep = now, sleep
        self._lanes: dict[str, Lane] = {}

    async def turn(self, method: str, channel: str = "", *, patience: float) -> None:
        """Wait until a call may be made, which is counted.

        Raises:
            Busy: That would take longer than `patience` seconds. Nothing was counted.
        """
        key, rate = lane_of(method, channel)
        until = self._now() + patience
        while True:
            now = self._now()
            at = self._lane(key, rate).soonest(now)
            if at > max(until, now):
                raise Busy(at - now)
            self._lanes[key] = self._lane(key, rate).after(at)
            if at > now:
                await self.sleep(at - now)
            if self._now() >= self._lanes[key].closed:
                return

    def spare(self, method: str, channel: str = "") -> bool:
        """Return whether a call may be made that can be left out: half of what is allowed stays for what cannot."""
        key, rate = lane_of(method, channel)
        return self._lane(key, rate).room(self._now()) > rate.calls // 2

    def hold(self, method: str, channel: str, seconds: float) -> None:
        """Let no call be made for so long, because Slack says so."""
        key, rate = lane_of(method, channel)
        lane = self._lane(key, rate)
        self._lanes[key] = replace(lane, closed=max(lane.closed, self._now() + seconds))

    def now(self) -> float:
        """Return the clock's seconds."""
        return self._now()

    def _lane(self, key: str, rate: Rate) -> Lane:
        return self._lanes.get(key) or Lane(rate)
