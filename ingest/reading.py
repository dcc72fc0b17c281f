"""Reads a source in a thread of its own, a batch ahead of what is done with it, and lets go of it whatever happens."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from ingest.looking import Batch, Looking
from ingest.types import Source
from storage.workers import Worker

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Reading:
    """A source that is being read."""

    source: Source
    _thread: Worker
    _looking: Looking | None = None
    _ahead: asyncio.Task[Batch | None] | None = None
    _calls: tuple[asyncio.Task[object], ...] = ()
    """What runs in the thread, or is about to: it cannot be abandoned, so whoever is cancelled waits in `end`."""

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in the source's thread; raises what it raises."""
        return await asyncio.shield(self._begun(function, *args, **kwargs))

    def begin(self, looking: Looking) -> None:
        """Look at these documents next, and begin with it."""
        self._looking = looking
        self.go_on()

    def go_on(self) -> None:
        """Read the next batch beside what the caller does."""
        assert self._looking is not None  # noqa: S101 - `begin` set it
        self._ahead = self._begun(self._looking.batch)

    async def batch(self) -> Batch | None:
        """Wait for the batch that is being read; None at the end. Raises what the source raises."""
        assert self._ahead is not None  # noqa: S101 - `go_on` set it
        return await asyncio.shield(self._ahead)

    async def end(self) -> None:
        """Stop reading, wait until the thread has, and close what the listing has open."""
        if self._looking is not None:
            self._looking.stop()
        running = [call for call in self._calls if not call.done()]
        if running:
            _stop(self.source)
            await asyncio.wait(running)
        for call in self._calls:
            if not call.cancelled():
                call.exception()  # who waited for it has heard it, or nobody asks any more
        if self._looking is not None:
            await self._thread.run(self._looking.close)

    def _begun(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Task[T]:
        task = asyncio.create_task(self._thread.run(function, *args, **kwargs), name="reading")
        self._calls = (*(call for call in self._calls if not call.done()), task)
        return task


@asynccontextmanager
async def reading(source: Source) -> AsyncIterator[Reading]:
    """Read a source within the block. At its end nothing of it runs any more."""
    with Worker("ingest-read") as thread:
        it = Reading(source, thread)
        try:
            yield it
        finally:
            await _to_the_end(it)


async def _to_the_end(it: Reading) -> None:
    """Let the thread end without blocking the event loop, also if the waiting is cancelled once more."""
    ending = asyncio.create_task(it.end(), name="reading ends")
    cancelled = False
    while not ending.done():
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    ending.result()


def _stop(source: Source) -> None:
    stop = getattr(source, "stop", None)
    if stop is not None:
        stop()
