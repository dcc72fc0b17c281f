"""Watches the event loop of a server: whoever blocks it makes everybody wait, and the log says for how long."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

log = logging.getLogger(__name__)

TOLERATED_SECONDS = 1.0
EVERY_SECONDS = 0.25


@asynccontextmanager
async def watched(
    *,
    tolerated: float = TOLERATED_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> AsyncIterator[None]:
    """Log each time within the block when the loop stands still for longer than is tolerated."""
    task = asyncio.create_task(_watch(tolerated, clock, sleep), name="lag watch")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _watch(tolerated: float, clock: Callable[[], float], sleep: Callable[[float], Awaitable[object]]) -> None:
    while True:
        before = clock()
        await sleep(EVERY_SECONDS)
        lag = clock() - before - EVERY_SECONDS
        if lag > tolerated:
            log.warning("the event loop stood still", extra={"seconds": round(lag, 3)})
