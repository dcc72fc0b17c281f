"""What is on record of refreshes: the runs, the nights, and who is at work on them just now."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from bot.refreshing.refreshes import Refreshes, refreshes
from bot.settings import Settings
from ingest.holding import lease_of
from storage.database import Database, open_database
from storage.leases import Leases
from storage.nights import LEASE, Nights
from storage.refresh_types import Run, RunState
from storage.runs import LOST, Runs


@dataclass(frozen=True)
class History:
    """It can be read beside a process that owns the home."""

    runs: Runs
    nights: Nights
    leases: Leases

    async def told(self, settings: Settings, now: datetime, *, count: int) -> Refreshes:
        """Return the newest runs and nights, so many of each at most. Raises `StorageError`."""
        runs = [await as_it_is(run, self.leases, now) for run in await self.runs.recent(count)]
        nights = await self.nights.recent(count)
        holder = await self.leases.holder(LEASE, now)
        return refreshes(settings, runs, nights, now, watching=holder is not None)


async def as_it_is(run: Run, leases: Leases, now: datetime) -> Run:
    """Return a run as lost where it did not end, and its process has let its lease lapse. Raises `StorageError`."""
    if run.state is not RunState.RUNNING or await leases.holder(lease_of(run.corpus), now) == run.owner:
        return run
    return replace(run, state=RunState.LOST, ended=run.seen, fault=LOST, doing="")


def history_of(database: Database) -> History:
    """Return what a database has on record."""
    return History(Runs(database), Nights(database), Leases(database))


@asynccontextmanager
async def open_history(settings: Settings) -> AsyncIterator[History]:
    """Open the database alone.

    Raises:
        StorageError: the database cannot be used; the message says what to do.
    """
    with open_database(settings.database, home=settings.home) as database:
        yield history_of(database)
