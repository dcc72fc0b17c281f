"""How fast Slack may be called: its limits as data, pure decisions on when the next call may be made, and who waits.

Slack counts the calls of each method by the minute for the whole workspace, and posts by the second for each channel.
Whoever calls takes the next free moment, so that calls are made in the order in which they are wanted; a 429 closes
its method for as long as Slack says. What only shows the way to an answer asks first whether there is room to spare.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from bot.pacing import Busy, Lane, Rate

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
