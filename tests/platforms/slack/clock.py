"""The fake Slack's time, in seconds since 1970: one that stands still until it is told, and one that runs faster.

The bot under test may be given the same clock: `sleep` waits by it.
"""

import asyncio
import heapq
import itertools
import time
from typing import Protocol


class Clock(Protocol):
    """What the server asks for the time, and waits by."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class ManualClock:
    """Time passes only in `advance`."""

    def __init__(self, start: float | None = None) -> None:
        self._now = time.time() if start is None else start
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self._now + seconds, next(self._order), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Let so much time pass; whoever waits is woken at their time, and may wait again."""
        until = self._now + seconds
        while self._waiting and self._waiting[0][0] <= until:
            due, _, future = heapq.heappop(self._waiting)
            if not future.done():
                self._now = max(self._now, due)
                future.set_result(None)
                for _ in range(10):  # what is woken may have to be woken again within the same time
                    await asyncio.sleep(0)
        self._now = until


class FastClock:
    """Time passes so many times as fast as on the wall."""

    def __init__(self, times: float = 1, start: float | None = None) -> None:
        self.times = times
        self._start = time.time() if start is None else start
        self._began = time.monotonic()

    def now(self) -> float:
        return self._start + (time.monotonic() - self._began) * self.times

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self.times)
