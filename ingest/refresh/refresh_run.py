"""One run of a refresh: its lease, its row in the history, and the progress of its source."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ingest.types import DocumentSource, RefreshProgress, RefreshRefused, RefreshReport
from storage.database.refresh_log import Leases, RefreshLog, make_owner_id
from storage.errors import LeaseLost, StorageError
from storage.types import Lease, RunOutcome, RunState

LEASE_SECONDS = 60.0
"""How long a lease lasts: so long after a process was killed, another may go on with its work."""

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the moment, as this machine's clock says."""
    return datetime.now(UTC)


def name_lease(corpus: str) -> str:
    """Return the name of the lease that a refresh of a corpus holds."""
    return f"refresh:{corpus}"


@asynccontextmanager
async def hold_lease(
    leases: Leases, corpus: str, *, clock: Clock, seconds: float = LEASE_SECONDS
) -> AsyncIterator[Lease]:
    """Have the lease of a corpus within the block, and renew it three times before it lapses.

    Raises:
        RefreshRefused: Another has it.
        LeaseLost: It was lost within the block, which was cancelled: this process stood still for too long.
    """
    lease = Lease(name_lease(corpus), make_owner_id())
    if not await leases.take(lease.name, lease.owner, clock(), seconds):
        by = await leases.holder(lease.name, clock())
        hint = "Wait until that is done; `footnote ingest status` shows how far it has come."
        raise RefreshRefused(f"“{corpus}” is being brought up to date already, by {by or 'another'}.", hint=hint)
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - this is a coroutine
    before, lost = task.cancelling(), asyncio.Event()
    renewing = asyncio.create_task(_renew_lease(leases, lease, clock, seconds, task, lost), name=f"lease of {corpus}")
    try:
        yield lease
    except asyncio.CancelledError:
        if lost.is_set() and task.uncancel() <= before:
            hint = "It goes on with the work; if nobody does, run the command again. What was applied stays."
            message = f"Another process has taken over the refresh of “{corpus}”: this one stood still for too long."
            raise LeaseLost(message, hint=hint) from None
        raise
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
        with suppress(StorageError):  # it lapses by itself
            await leases.release(lease.name, lease.owner)


async def _renew_lease(
    leases: Leases, lease: Lease, clock: Clock, seconds: float, task: asyncio.Task[object], lost: asyncio.Event
) -> None:
    while True:
        await asyncio.sleep(seconds / 3)
        # While the database is out of reach nobody else takes it either; each commit looks whose it is.
        with suppress(StorageError):
            if not await leases.renew(lease.name, lease.owner, clock(), seconds):
                lost.set()
                task.cancel()
                return


PROGRESS_SECONDS = 1.0
"""Seconds between two notes of how far it has come."""


@dataclass
class RunRecord:
    """One run's row. `report` is what was done so far."""

    report: RefreshReport
    _runs: RefreshLog
    _number: int
    _clock: Clock
    _told: float = field(default=0.0)

    async def progress(self, step: RefreshProgress) -> None:
        """Note how far it has come, if that was not done just now."""
        if (now := time.monotonic()) - self._told >= PROGRESS_SECONDS:
            self._told = now
            await self._runs.progress(self._number, self._clock(), step.done, step.total, step.passages, step.doing)

    async def end(self, state: RunState, fault: str = "") -> None:
        """Note what it came to."""
        await self._runs.end(self._number, self._clock(), build_outcome(self.report, state, fault))


@asynccontextmanager
async def record_run(
    runs: RefreshLog, report: RefreshReport, owner: str, night: datetime | None, clock: Clock
) -> AsyncIterator[RunRecord]:
    """Keep a row for what is done within the block; the block says by `Record.report` what that is."""
    record = RunRecord(report, runs, await runs.begin(report.corpus, clock(), owner, night), clock)
    try:
        yield record
    except asyncio.CancelledError:
        await record.end(RunState.CANCELLED, "It was stopped; what it had applied stays.")
        raise
    except Exception as error:
        await record.end(RunState.FAILED, describe_fault(error))
        raise
    await record.end(RunState.DONE, record.report.fault)


def build_outcome(report: RefreshReport, state: RunState, fault: str) -> RunOutcome:
    """Return what a run came to; pure."""
    return RunOutcome(
        state,
        added=report.added,
        changed=report.changed,
        unchanged=report.unchanged,
        removed=report.removed,
        failed=report.failed,
        held_back=report.held_back,
        passages_added=report.passages_added,
        passages_removed=report.passages_removed,
        fault=fault,
        edition=report.edition,
    )


def describe_fault(error: Exception) -> str:
    """Return an error as one line. Of one that nobody foresaw only its kind is told: its words may hold anything."""
    hint = getattr(error, "hint", None)
    if hint is None:
        return f"It ended by an unexpected {type(error).__name__}; the log says more."
    return " ".join(f"{error} {hint}".split())


POLL_SECONDS = 1.0
"""Seconds between two looks at what a source is doing."""


def describe_activity(source: DocumentSource) -> str:
    """Return what a source says that it is doing, in a few words; empty where it says nothing."""
    return str(getattr(source, "doing", ""))


@asynccontextmanager
async def poll_progress(
    source: DocumentSource, tell: Callable[[], Awaitable[None]], every: float = POLL_SECONDS
) -> AsyncIterator[None]:
    """Call `tell` time and again within the block, as long as the source says that it is doing something."""

    async def again() -> None:
        while True:
            await asyncio.sleep(every)
            if describe_activity(source):
                with suppress(StorageError):  # the refresh meets it too, and says so
                    await tell()

    task = asyncio.create_task(again(), name="telling")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
