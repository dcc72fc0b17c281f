"""The fake servers' time, in seconds since 1970: one that a test advances, and one that runs faster.

The bot under test may be given the same clock: `sleep` waits by it.
"""

import asyncio
import heapq
import itertools
import time
from typing import Protocol

from bot.desk.supervisor import Clock as DeskClock


class Clock(Protocol):
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
        """Let time pass. Waiting tasks are woken at their time, and may wait again."""
        until = self._now + seconds
        while self._waiting and self._waiting[0][0] <= until:
            due, _, future = heapq.heappop(self._waiting)
            if not future.done():
                self._now = max(self._now, due)
                future.set_result(None)
                for _ in range(10):  # woken tasks may wait again within the same time
                    await asyncio.sleep(0)
        self._now = until


class FastClock:
    """Time passes `times` as fast as real time."""

    def __init__(self, times: float = 1, start: float | None = None) -> None:
        self.times = times
        self._start = time.time() if start is None else start
        self._began = time.monotonic()

    def now(self) -> float:
        return self._start + (time.monotonic() - self._began) * self.times

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self.times)


SPEED = 20
"""How much faster than in a server everything happens here: retries, patience, grace."""
HASTY = DeskClock(sleep=lambda seconds: asyncio.sleep(seconds / SPEED))
