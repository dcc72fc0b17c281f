"""Threads for blocking calls: named pools, and a single worker that runs the most urgent call first."""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import count
from queue import PriorityQueue
from typing import Any, ParamSpec, Self, TypeVar

from storage.errors import contain_panics

P = ParamSpec("P")
T = TypeVar("T")


class _Closing:
    """Closes the pool at the end of a `with` block."""

    _pool: ThreadPoolExecutor

    def close(self) -> None:
        """Drop the waiting calls, wait for the running ones, and end the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class ThreadPool(_Closing):
    """A named pool of threads; `await pool.run(function, ...)` runs a blocking call in it."""

    def __init__(self, name: str, *, threads: int = 1) -> None:
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=name)

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `function` in the pool. A panic in it is raised as `Panic`.

        Cancelling ends only the wait, not the function.
        """
        call = functools.partial(contain_panics()(function), *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)


@dataclass(frozen=True)
class IndexThreads:
    """The threads for the store's blocking calls. The exit stack that started them also ends them."""

    read: ThreadPool
    write: ThreadPool
    embed: ThreadPool
    ingest: ThreadPool
    states: ThreadPool
    rerank: ThreadPool
    think: ThreadPool
    """One thread for computing in Python: more would only compete for the interpreter."""

    @staticmethod
    def start(stack: ExitStack) -> "IndexThreads":
        sizes = {"read": 4, "write": 1, "embed": 2, "ingest": 1, "states": 2, "rerank": 1, "think": 1}
        pools = {name: ThreadPool(f"index-{name}", threads=size) for name, size in sizes.items()}
        return IndexThreads(**{name: stack.enter_context(pool) for name, pool in pools.items()})


class WritePriority(IntEnum):
    """Priorities of writes; calls of equal priority run in the order of arrival."""

    QUESTION = 0  # a platform waits a second or two for its question to be stored, then sends it again
    RECORD = 1  # an answer waits for its record
    BATCH = 2  # an ingest waits, not a person


@dataclass(frozen=True, slots=True, order=True)
class _PendingCall:
    priority: WritePriority
    number: int
    function: Callable[[], Any] = field(compare=False)
    result: Future[Any] = field(compare=False)


class PriorityWorker(_Closing):
    """A thread that runs the most urgent waiting call next: `await worker.run(priority, function, ...)`."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._calls: PriorityQueue[_PendingCall] = PriorityQueue()
        self._numbers = count()

    async def run(self, priority: WritePriority, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `function`. Cancelling removes a call that waits; if the call is running, only the wait for it ends."""
        result: Future[T] = Future()
        call = functools.partial(function, *args, **kwargs)
        self._calls.put(_PendingCall(priority, next(self._numbers), call, result))
        # One submission per call; each runs the call that is the most urgent at that moment.
        self._pool.submit(self._run_next)
        return await asyncio.wrap_future(result)

    def close(self) -> None:
        """Drop the waiting calls, wait for the running one, and end the thread."""
        super().close()
        while not self._calls.empty():
            self._calls.get_nowait().result.cancel()

    def _run_next(self) -> None:
        call = self._calls.get_nowait()
        if not call.result.set_running_or_notify_cancel():
            return
        try:
            call.result.set_result(call.function())
        except BaseException as error:  # noqa: BLE001 - it is raised to the caller
            call.result.set_exception(error)
