"""Tells, while a source is busy and lists nothing yet, what it is doing: a download may take hours."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from ingest.types import Source
from storage.errors import StorageError

EVERY = 1.0
"""Seconds between two looks at what a source is doing."""


def doing(source: Source) -> str:
    """Return what a source says that it is doing, in a few words; empty where it says nothing."""
    return str(getattr(source, "doing", ""))


@asynccontextmanager
async def telling(source: Source, tell: Callable[[], Awaitable[None]], every: float = EVERY) -> AsyncIterator[None]:
    """Call `tell` time and again within the block, as long as the source says that it is doing something."""

    async def again() -> None:
        while True:
            await asyncio.sleep(every)
            if doing(source):
                with suppress(StorageError):  # the refresh meets it too, and says so
                    await tell()

    task = asyncio.create_task(again(), name="telling")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
