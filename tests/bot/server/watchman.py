"""Helpers for tests of nightly refreshes: a settable clock, and waiting for effects."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime


@dataclass
class Clock:
    now: datetime

    def __call__(self) -> datetime:
        return self.now


async def until(true: Callable[[], bool]) -> None:
    """Poll for an effect that has no notification."""
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - what happens elsewhere sets no event of ours
            await asyncio.sleep(0.001)
