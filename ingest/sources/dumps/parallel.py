"""Work handed to other processes, its results in order, little of it under way at a time."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

from ingest.sources.dumps.file import DumpError

S = TypeVar("S")
R = TypeVar("R")


def in_order(work: Callable[[S], R], items: Iterable[S], processes: int) -> Iterator[R]:
    """`work` done on all items, the results in the items' order; by this process if it is to be the only one.

    `work` is a function of a module, and its items and results can be pickled. No more than about twice as many items
    as processes are under way. Raises what `work` raises, and `DumpError` if a process died.
    """
    if processes <= 1:
        yield from map(work, items)
        return
    # Threads of the caller could hold locks at a fork: processes are spawned.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        under_way: deque[Future[R]] = deque()
        try:
            for item in items:
                under_way.append(pool.submit(work, item))
                if len(under_way) > 2 * processes:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        except BrokenProcessPool as error:
            hint = "The system may have run out of memory: run it again with fewer processes."
            raise DumpError("A process that read the dump was ended from outside.", hint=hint) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
