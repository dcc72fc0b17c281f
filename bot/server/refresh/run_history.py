"""Read the recorded refreshes: runs of single corpora, nightly refreshes, and when the next one is due."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.settings.tables.settings_tables import Settings
from bot.wiring import open_record_database
from ingest.refresh.night_schedule import night_after
from ingest.refresh.refresh_run import name_lease
from storage.database.engine import Database
from storage.database.refresh_log import LOST_RUN_FAULT, NIGHT_LEASE, Leases, NightLog, RefreshLog
from storage.types import NightRecord, RefreshRun, RunState

MISSED = "missed"
RUNNING = "running"
ABORTED = "broken off"
_NOBODY_WORKED = "No server was running; the next nightly refresh made up for it."

_SILENT_AFTER = timedelta(minutes=5)  # a run without a sign of life for so long is shown as possibly lost


@dataclass(frozen=True, slots=True)
class RefreshSummary:
    """The recorded refreshes, newest first."""

    now: datetime
    running: tuple[RefreshRun, ...]
    ended: tuple[RefreshRun, ...]
    nights: tuple[NightRecord, ...]
    next_night: datetime | None  # None if no nightly refresh is set


def summarize_refreshes(
    settings: Settings, runs: Sequence[RefreshRun], nights: Sequence[NightRecord], now: datetime, *, watching: bool
) -> RefreshSummary:
    """Combine runs and nightly refreshes, newest first.

    Unless `watching`, no server is running: an unfinished nightly refresh then counts as broken off.
    """
    at = settings.schedule.at
    return RefreshSummary(
        now,
        tuple(run for run in runs if run.state is RunState.RUNNING),
        tuple(run for run in runs if run.state is not RunState.RUNNING),
        tuple(_insert_missed([_resolve_outcome(night, watching=watching) for night in nights], settings)),
        night_after(now, at, settings.zone) if at else None,
    )


def measure_seconds(run: RefreshRun, now: datetime) -> float:
    """Return how many seconds a run took, or has taken so far."""
    return max(((run.ended or now) - run.begun).total_seconds(), 0.0)


def measure_rate(run: RefreshRun, now: datetime) -> float:
    """Return the documents that a run has handled per second."""
    seconds = measure_seconds(run, now)
    return run.done / seconds if seconds else 0.0


def is_silent(run: RefreshRun, now: datetime) -> bool:
    return now - run.seen > _SILENT_AFTER


def _resolve_outcome(night: NightRecord, *, watching: bool) -> NightRecord:
    return replace(night, outcome=night.outcome or (RUNNING if watching else ABORTED))


def _insert_missed(nights: Sequence[NightRecord], settings: Settings) -> Iterator[NightRecord]:
    """Yield nightly refreshes, newest first, and in between an entry for each day that missed its refresh."""
    at, zone = settings.schedule.at, settings.zone
    for place, night in enumerate(nights):
        yield night
        if at is None or place + 1 == len(nights):
            continue
        day, missed = night.due.astimezone(zone).date(), list[datetime]()
        due = night_after(nights[place + 1].due, at, zone)
        while due < night.due and due.astimezone(zone).date() < day:
            missed.append(due)
            due = night_after(due, at, zone)
        # The time of day may have been changed: a day with any refresh did not miss one.
        had = nights[place + 1].due.astimezone(zone).date()
        yield from (
            NightRecord(due, due, None, "", MISSED, (_NOBODY_WORKED,))
            for due in reversed(missed)
            if due.astimezone(zone).date() != had
        )


@dataclass(frozen=True)
class RefreshHistory:
    """Reads the log of refreshes, also while another process has the home open."""

    runs: RefreshLog
    nights: NightLog
    leases: Leases

    async def summarize(self, settings: Settings, now: datetime, *, count: int) -> RefreshSummary:
        """Return the newest runs and nightly refreshes, at most `count` of each. Raises `StorageError`."""
        runs = [await resolve_run(run, self.leases, now) for run in await self.runs.recent(count)]
        nights = await self.nights.recent(count)
        holder = await self.leases.holder(NIGHT_LEASE, now)
        return summarize_refreshes(settings, runs, nights, now, watching=holder is not None)


async def resolve_run(run: RefreshRun, leases: Leases, now: datetime) -> RefreshRun:
    """Return a run; an unfinished one counts as lost if its process lost the lease. Raises `StorageError`."""
    if run.state is not RunState.RUNNING or await leases.holder(name_lease(run.corpus), now) == run.owner:
        return run
    return replace(run, state=RunState.LOST, ended=run.seen, fault=LOST_RUN_FAULT, doing="")


def build_history(database: Database) -> RefreshHistory:
    return RefreshHistory(RefreshLog(database), NightLog(database), Leases(database))


@asynccontextmanager
async def open_history(settings: Settings) -> AsyncIterator[RefreshHistory]:
    """Open only the database. Raises `StorageError`; its message says what to do."""
    with open_record_database(settings) as database:
        yield build_history(database)
