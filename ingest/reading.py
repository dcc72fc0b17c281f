"""Reads a source in a thread of its own, a batch ahead of what is done with it, and lets go of it whatever happens."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ingest.looking import Batch, Looking
from ingest.types import Listing, Source
from storage.workers import Worker


@dataclass
class Reading:
    """A source that is being read."""

    source: Source
    thread: Worker
    looking: Looking | None = None
    _ahead: asyncio.Task[Batch | None] | None = None

    async def listing(self, known: Mapping[str, str], since: str) -> Listing:
        """Ask for its documents; raises what the source raises."""
        return await self.thread.run(self.source.documents, known, since)

    def begin(self, looking: Looking) -> None:
        """Look at these documents next, and begin with it."""
        self.looking = looking
        self.go_on()

    def go_on(self) -> None:
        """Read the next batch beside what the caller does."""
        assert self.looking is not None  # noqa: S101 - `begin` set it
        self._ahead = asyncio.create_task(self.thread.run(self.looking.batch), name="reading ahead")

    async def batch(self) -> Batch | None:
        """Wait for the batch that is being read; None at the end. Raises what the source raises."""
        assert self._ahead is not None  # noqa: S101 - `go_on` set it
        # What runs in a thread cannot be abandoned: whoever is cancelled here still waits for it in `end`.
        return await asyncio.shield(self._ahead)

    async def end(self) -> None:
        """Stop reading, wait until the thread has, and close what the listing has open."""
        if self.looking is None or self._ahead is None:
            _stop(self.source)  # it may be downloading what is to be listed
            return
        self.looking.stop()
        if not self._ahead.done():
            _stop(self.source)
        await asyncio.wait([self._ahead])
        if not self._ahead.cancelled():
            self._ahead.exception()  # it was raised by `batch`, or nobody asks any more
        await self.thread.run(self.looking.close)


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
