"""Run pure functions in other processes; results come in order, slightly ahead of the consumer."""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import Self, TypeVar

from ingest.sources.dumps.dump_file import DumpError

S = TypeVar("S")
R = TypeVar("R")


def count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerPool:
    """A pool of `processes`, which start with the first work. If there is only one, work runs in this process."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._executor: ProcessPoolExecutor | None = None

    def map(self, work: Callable[[S], R], items: Iterable[S | list[R]]) -> Iterator[R]:
        """Yield the results of `work` in the order of the items. An item that is a list contains finished results.

        `work` must be picklable. At most about twice as many items as processes are in progress.
        """
        if self.processes <= 1:
            for item in items:
                yield from item if isinstance(item, list) else [work(item)]
            return
        in_progress: deque[Future[R] | list[R]] = deque()
        waiting = 0
        try:
            for item in items:
                in_progress.append(item if isinstance(item, list) else self._submit(work, item))
                waiting += not isinstance(item, list)
                while waiting > 2 * self.processes or (in_progress and isinstance(in_progress[0], list)):
                    waiting -= not isinstance(in_progress[0], list)
                    yield from _results(in_progress.popleft())
            while in_progress:
                yield from _results(in_progress.popleft())
        except BrokenProcessPool as error:
            hint = "The system may have run out of memory: run it again with fewer processes."
            raise DumpError("A process that read the dump was killed from outside.", hint=hint) from error
        finally:
            for future in in_progress:
                if isinstance(future, Future):
                    future.cancel()

    def _submit(self, work: Callable[[S], R], item: S) -> Future[R]:
        if self._executor is None:
            # Spawned, since the caller's threads could hold locks at a fork.
            spawn = get_context("spawn")
            self._executor = ProcessPoolExecutor(self.processes, mp_context=spawn, initializer=_follow_parent)
        return self._executor.submit(work, item)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)


def _follow_parent() -> None:
    """Ignore Ctrl-C, which the parent process handles, and exit when the parent does, even if it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, name="parent", daemon=True).start()


def _exit_with_parent() -> None:
    if parent := parent_process():
        wait([parent.sentinel])
        os._exit(1)


def _results(item: Future[R] | list[R]) -> Iterable[R]:
    return item if isinstance(item, list) else [item.result()]
