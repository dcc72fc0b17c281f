"""Waits until something holds of a fake server, looked at again after everything that happens there."""

import asyncio
from collections.abc import Callable


async def until(
    holds: Callable[[], object], changed: asyncio.Event, seconds: float, happened: Callable[[], str]
) -> None:
    """Wait; after so many seconds say what happened instead."""
    try:
        async with asyncio.timeout(seconds):
            while not holds():
                changed.clear()
                await changed.wait()
    except TimeoutError:
        raise AssertionError(f"it did not come to that; {happened()}") from None
