"""Threads for blocking calls: named pools, and one worker that runs the most urgent call first."""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import count
from queue import PriorityQueue
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class ThreadPool:
    """A pool of threads with a name of its own; `await worker.run(function, ...)` runs a blocking call in it."""

    def __init__(self, name: str, *, threads: int = 1) -> None:
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=name)

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `function` in the pool. Cancelling stops the waiting, not the call, which no thread can abandon."""
        call = functools.partial(function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def close(self) -> None:
        """Wait for what runs, drop what has not begun, and end the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class WritePriority(IntEnum):
    """What is done first. Calls of one urgency are done in the order in which they came."""

    QUESTION = 0
    """A platform waits for its question to be taken: a second or two, and it sends it again."""
    RECORD = 1
    """An answer waits for its record."""
    BATCH = 2
    """An ingest waits, and nobody for it."""


@dataclass(frozen=True, slots=True, order=True)
class _PendingCall:
    urgency: WritePriority
    number: int
    function: Callable[[], Any] = field(compare=False)
    result: Future[Any] = field(compare=False)


class PriorityWorker:
    """A thread with a name of its own; `await worker.run(urgency, function, ...)` runs a blocking call in it.

    A call that has begun is never interrupted, so the most urgent one waits for the longest single call at most.
    """

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._calls: PriorityQueue[_PendingCall] = PriorityQueue()
        self._numbers = count()

    async def run(self, urgency: WritePriority, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `function`. Cancelling drops a call that has not begun; of one that has, it stops the waiting alone."""
        result: Future[T] = Future()
        self._calls.put(
            _PendingCall(urgency, next(self._numbers), functools.partial(function, *args, **kwargs), result)
        )
        # As many turns as calls: each takes whatever is the most urgent call by then.
        self._pool.submit(self._turn)
        return await asyncio.wrap_future(result)

    def close(self) -> None:
        """Wait for what runs, drop what has not begun, and end the thread."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        while not self._calls.empty():
            self._calls.get_nowait().result.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _turn(self) -> None:
        call = self._calls.get_nowait()
        if not call.result.set_running_or_notify_cancel():
            return
        try:
            done = call.function()
        except BaseException as error:  # noqa: BLE001 - it is raised where the call was asked for
            call.result.set_exception(error)
        else:
            call.result.set_result(done)
