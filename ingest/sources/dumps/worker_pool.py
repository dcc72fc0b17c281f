"""Do pure work in other processes, in order, a little ahead of whoever takes the results."""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from types import TracebackType
from typing import Self, TypeVar

from ingest.sources.dumps.dump_file import DumpError

S = TypeVar("S")
R = TypeVar("R")


def count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerPool:
    """So many processes; none but this one if it is to be the only one. They start with the first work."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._executor: ProcessPoolExecutor | None = None

    def map(self, work: Callable[[S], R], items: Iterable[S | list[R]]) -> Iterator[R]:
        """Yield the results of `work` in the items' order; what stands in a list among the items is a result already.

        `work` is a function of a module; no more than about twice as many items as processes are under way.
        """
        if self.processes <= 1:
            for item in items:
                yield from item if isinstance(item, list) else [work(item)]
            return
        under_way: deque[Future[R] | list[R]] = deque()
        waiting = 0
        try:
            for item in items:
                under_way.append(item if isinstance(item, list) else self._submit(work, item))
                waiting += not isinstance(item, list)
                while waiting > 2 * self.processes or (under_way and isinstance(under_way[0], list)):
                    waiting -= not isinstance(under_way[0], list)
                    yield from _results(under_way.popleft())
            while under_way:
                yield from _results(under_way.popleft())
        except BrokenProcessPool as error:
            hint = "The system may have run out of memory: run it again with fewer processes."
            raise DumpError("A process that read the dump was ended from outside.", hint=hint) from error
        finally:
            for future in under_way:
                if isinstance(future, Future):
                    future.cancel()

    def _submit(self, work: Callable[[S], R], item: S) -> Future[R]:
        if self._executor is None:
            # Threads of the caller could hold locks at a fork: processes are spawned.
            spawn = get_context("spawn")
            self._executor = ProcessPoolExecutor(self.processes, mp_context=spawn, initializer=_follow_parent)
        return self._executor.submit(work, item)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)


def _follow_parent() -> None:
    """Leave Ctrl-C to the process that began this one, and end with it, also where that was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_after_parent, name="parent", daemon=True).start()


def _end_after_parent() -> None:
    if parent := parent_process():
        wait([parent.sentinel])
        os._exit(1)


def _results(item: Future[R] | list[R]) -> Iterable[R]:
    return item if isinstance(item, list) else [item.result()]
