"""The desk's time. Waiting is counted by a clock that nobody sets; the date is for what other machines read."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Clock:
    """What tells the time and what waits; tests bring their own."""

    now: Callable[[], datetime] = _now
    """The date, with a time zone. It may jump: only leases and records use it."""
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    """Waits so many seconds, however the date jumps meanwhile."""

    async def sleep_unless(self, event: asyncio.Event, seconds: float) -> None:
        """Wait so many seconds, or until the event is set."""
        waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(self.sleep(seconds))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
