"""How long the event loop keeps others waiting, and what of many figures is told."""

import asyncio
import math
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

EVERY = 0.005
"""Seconds that the watch sleeps each time."""


@asynccontextmanager
async def watched_loop() -> AsyncIterator[list[float]]:
    """Give a list that fills with the event loop's lags, in milliseconds, until the context is left."""
    lags: list[float] = []
    watch = asyncio.create_task(_watch(lags))
    try:
        yield lags
    finally:
        watch.cancel()


def share(values: Sequence[float], of: float) -> float:
    """Return the value below which this share of all values lies; not a number where there are none."""
    return sorted(values)[min(len(values) - 1, int(of * len(values)))] if values else math.nan


def middle(values: Sequence[float]) -> float:
    """Return the median; not a number where there are no values."""
    return statistics.median(values) if values else math.nan


async def _watch(lags: list[float]) -> None:
    while True:
        started = time.perf_counter()
        await asyncio.sleep(EVERY)
        lags.append((time.perf_counter() - started - EVERY) * 1000)
