"""Run background tasks and blocks: keep references until they end, log their errors, cancel them at shutdown."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from storage.clock import utc_now

T = TypeVar("T")

log = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 3.0  # how long running tasks may take at shutdown
SOON_SECONDS = 0.25  # how long an event's work may take before the event is acknowledged


class TaskSupervisor:
    """Keeps running tasks, and logs their errors, because no caller may be awaiting them."""

    def __init__(self) -> None:
        self._tasks = set[asyncio.Task[Any]]()

    def spawn(self, work: Awaitable[T]) -> asyncio.Task[T]:
        """Start a task; the caller may await it."""
        # A coroutine needs no wrapper: if the wrapper were cancelled before it began, it would never be awaited.
        task = asyncio.create_task(work if asyncio.iscoroutine(work) else _await_work(work))
        self._tasks.add(task)
        task.add_done_callback(self._discard)
        return task

    async def wait_briefly(self, work: Awaitable[None]) -> None:
        """Wait up to `SOON_SECONDS` for some work and raise its errors; after that, it continues in the background."""
        task = self.spawn(work)
        done, _ = await asyncio.wait({task}, timeout=SOON_SECONDS)
        if done:
            task.result()

    async def cancel(self) -> None:
        await cancel_tasks(self._tasks)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """At the end of the block, wait for running tasks for `SHUTDOWN_SECONDS`, then cancel them."""
        try:
            yield
        finally:
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=SHUTDOWN_SECONDS)
            await self.cancel()

    def _discard(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a background task failed", extra={"cause": f"{type(error).__name__}: {error}"})


async def _await_work(work: Awaitable[T]) -> T:
    return await work


@asynccontextmanager
async def run_beside(work: Coroutine[Any, Any, T], *, name: str) -> AsyncIterator[asyncio.Task[T]]:
    """Run a task during the block, and cancel it at the block's end."""
    task = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        await cancel_tasks([task])


async def wait_for_first(*work: Awaitable[object]) -> None:
    """Wait until one of the awaitables has ended. Then unfinished coroutines are cancelled; tasks continue."""
    waiting = [asyncio.ensure_future(awaitable) for awaitable in work]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel_tasks(task for task, given in zip(waiting, work, strict=True) if task is not given)


async def cancel_tasks(tasks: Iterable[asyncio.Future[Any]]) -> None:
    left = list(tasks)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def compute_backoff(attempt: int, *, first: float = 1.0, longest: float = 60.0) -> float:
    """Return the seconds to wait after failed attempt number `attempt`, counted from 0. They double each time."""
    return min(longest, first * 2.0 ** min(attempt, 10))


@dataclass(frozen=True, slots=True)
class Clock:
    """The date, and a way to wait. Tests pass their own."""

    now: Callable[[], datetime] = utc_now
    """The date, with a time zone. It may jump, so only leases and records use it."""
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    """Waits so many seconds, also if the date jumps meanwhile."""

    async def sleep_unless(self, event: asyncio.Event, seconds: float) -> None:
        await wait_for_first(event.wait(), self.sleep(seconds))


@asynccontextmanager
async def exit_in_parallel(*blocks: AbstractAsyncContextManager[Any]) -> AsyncIterator[tuple[Any, ...]]:
    """Enter blocks in order, yield their values, and exit them concurrently.

    If entering a block fails, the blocks that were entered before are left, and the error is raised. Otherwise,
    the first error of leaving a block is raised once all blocks are left.
    """
    stacks = [AsyncExitStack() for _ in blocks]
    try:
        yield tuple([await stack.enter_async_context(block) for stack, block in zip(stacks, blocks, strict=True)])
    finally:
        results = await asyncio.gather(*(stack.aclose() for stack in stacks), return_exceptions=True)
        for error in results:
            if isinstance(error, BaseException):
                raise error
