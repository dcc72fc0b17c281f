"""Each night once, whichever of the processes that share a database works through it.

Whoever takes a night has a lease that is renewed meanwhile. The others wait for how it ends; where its process died,
or was asked to stop, the lease lapses or is given back, and one of those who wait takes the night over.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from bot.nights.night import Night
from ingest.schedule import LEAP
from storage.errors import StorageError
from storage.leases import Leases
from storage.nights import LEASE, SECONDS, Nights

log = logging.getLogger(__name__)

RECENT = 50
"""How many nights are looked through for the last one that has come."""


@dataclass(frozen=True)
class NightWatch:
    """The nights as one process keeps them."""

    nights: Nights
    leases: Leases
    owner: str
    clock: Callable[[], datetime]
    look_again: float = 15.0
    """Seconds between two looks at a night that another process is at, or that cannot be begun."""
    renewing: float = 30.0
    """Seconds between two renewals of the lease; it outlasts several."""

    async def last(self) -> datetime | None:
        """Return when the newest night was due that came to its end, by this clock; None where none has."""
        await self.put_back()
        ended = (night.due for night in await self.nights.recent(RECENT) if night.ended)
        return next(ended, None)

    async def put_back(self) -> None:
        """Take back the nights that have not come yet: they were worked while the clock was wrong."""
        if count := await self.nights.undo(self.clock() + LEAP):
            log.warning("the clock was put back: %d of the nights on record have yet to come", count)

    async def keep(self, due: datetime, work: Callable[[], Awaitable[Night]]) -> Night | None:
        """Have a night's work done, and noted; return what it came to, or None where another process did it.

        Nothing is done either where the clock is put back meanwhile, so that the night has yet to come.
        """
        while due <= self.clock() + LEAP:
            begun = await self._begun(due)
            if begun is not None:
                return await self._worked(work) if begun else None
            await asyncio.sleep(self.look_again)
        return None

    async def _begun(self, due: datetime) -> bool | None:
        """Begin a night. Returns False where it has ended, and None where another is at it, or nobody can tell."""
        try:
            if await self.nights.begin(due, self.clock(), self.owner):
                return True
            ended = any(night.due == due and night.ended for night in await self.nights.recent(RECENT))
        except StorageError as error:
            log.warning("the night cannot be begun yet", extra={"cause": f"{error} {error.hint}"})
            return None
        return False if ended else None

    async def _worked(self, work: Callable[[], Awaitable[Night]]) -> Night | None:
        try:
            if night := await self._held(work):
                await self._noted(night)
            return night
        finally:
            with suppress(StorageError):  # it lapses by itself
                await self.leases.release(LEASE, self.owner)

    async def _held(self, work: Callable[[], Awaitable[Night]]) -> Night | None:
        """Do the work while the lease is ours; where it is lost, stop: another process does it then."""
        working = asyncio.ensure_future(work())
        renewing = asyncio.create_task(self._renew(), name="night lease")
        try:
            await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            log.warning("another process took the night over: this one did not renew its lease in time")
            return None
        finally:
            for task in (working, renewing):
                task.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)

    async def _noted(self, night: Night) -> None:
        try:
            await self.nights.end(night.due, self.clock(), night.outcome, night.lines(), self.owner)
        except StorageError as error:
            log.warning("what the night came to cannot be noted", extra={"cause": f"{error} {error.hint}"})

    async def _renew(self) -> None:
        """Renew the lease until it is somebody else's. While the database is away it may lapse, and is still ours."""
        while True:
            await asyncio.sleep(self.renewing)
            with suppress(StorageError):
                if not await self.leases.renew(LEASE, self.owner, self.clock(), SECONDS):
                    return
