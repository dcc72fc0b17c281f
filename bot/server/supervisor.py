"""Supervise background tasks: keep them until they end, log what they raise, cancel them at shutdown."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 3.0
"""How long what is under way may take when all ends."""

SOON_SECONDS = 0.25
"""How long a platform waits for work before it is told that what asks for it has arrived."""


class TaskSupervisor:
    """Tasks under way. What one raises is logged, for nobody may be waiting for it."""

    def __init__(self) -> None:
        """Start with none."""
        self._tasks = set[asyncio.Task[object]]()

    def spawn(self, work: Awaitable[T]) -> asyncio.Task[T]:
        """Begin some work; whoever likes may wait for it."""
        task = asyncio.ensure_future(_await_work(work))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def soon(self, work: Awaitable[None]) -> None:
        """Wait for some work, but not for long; it goes on then. Raises what it raises until then."""
        task = self.spawn(work)
        done, _ = await asyncio.wait({task}, timeout=SOON_SECONDS)
        if done:
            task.result()

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Break off, after a while, what is still under way at the end of the block."""
        try:
            yield
        finally:
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=SHUTDOWN_SECONDS)
            left = list(self._tasks)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[object]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("work on a platform's side failed", extra={"cause": f"{type(error).__name__}: {error}"})


async def _await_work(work: Awaitable[T]) -> T:
    return await work
