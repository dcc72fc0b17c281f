"""One run of a refresh: its lease, its row in the history, and the progress that its source reports."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime

from ingest.types import DocumentSource, RefreshProgress, RefreshRefused, RefreshReport
from storage.clock import Clock
from storage.database.refresh_log import Leases, RefreshLog, make_owner_id
from storage.errors import LeaseLost, StorageError
from storage.types import Lease, RunOutcome, RunState

LEASE_SECONDS = 60.0  # seconds after which another process may continue the work of a killed one


def name_lease(corpus: str) -> str:
    return f"refresh:{corpus}"


@asynccontextmanager
async def hold_lease(
    leases: Leases, corpus: str, *, clock: Clock, seconds: float = LEASE_SECONDS
) -> AsyncIterator[Lease]:
    """Hold the lease of a corpus while the block runs, and renew it every third of `seconds`.

    Raises:
        RefreshRefused: Another process holds the lease.
        LeaseLost: The lease expired while this process was suspended, and another took over. The block was cancelled.
    """
    lease = Lease(name_lease(corpus), make_owner_id())
    if not await leases.take(lease.name, lease.owner, clock(), seconds):
        by = await leases.holder(lease.name, clock())
        hint = "Wait until it is done; `footnote ingest status` shows its progress."
        raise RefreshRefused(f"“{corpus}” is already being refreshed by {by or 'another process'}.", hint=hint)
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - this is a coroutine
    before, lost = task.cancelling(), asyncio.Event()
    renewing = asyncio.create_task(_renew_lease(leases, lease, clock, seconds, task, lost), name=f"lease of {corpus}")
    try:
        yield lease
    except asyncio.CancelledError:
        if lost.is_set() and task.uncancel() <= before:
            hint = "The other process continues; if it does not, run the command again. Applied changes stay."
            message = f"Another process has taken over the refresh of “{corpus}”: this one was suspended for too long."
            raise LeaseLost(message, hint=hint) from None
        raise
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
        with suppress(StorageError):  # it expires by itself
            await leases.release(lease.name, lease.owner)


async def _renew_lease(
    leases: Leases, lease: Lease, clock: Clock, seconds: float, task: asyncio.Task[object], lost: asyncio.Event
) -> None:
    while True:
        await asyncio.sleep(seconds / 3)
        # While the database is unreachable, no other process can take the lease either; each commit checks its owner.
        with suppress(StorageError):
            if not await leases.renew(lease.name, lease.owner, clock(), seconds):
                lost.set()
                task.cancel()
                return


_COUNTS = ("added", "changed", "unchanged", "removed", "failed", "held_back", "passages_added", "passages_removed")
PROGRESS_SECONDS = 1.0  # seconds between two records of progress


@dataclass
class RunRecord:
    """The row of one run in the history. `report` counts the work done so far."""

    report: RefreshReport
    _runs: RefreshLog
    _number: int
    _clock: Clock
    _recorded: float = field(default=0.0)

    async def progress(self, step: RefreshProgress) -> None:
        """Record the progress, at most once every `PROGRESS_SECONDS`."""
        if (now := time.monotonic()) - self._recorded >= PROGRESS_SECONDS:
            self._recorded = now
            await self._runs.progress(self._number, self._clock(), step.done, step.total, step.passages, step.doing)

    async def end(self, state: RunState, fault: str = "") -> None:
        counts = {name: getattr(self.report, name) for name in _COUNTS}
        outcome = RunOutcome(state, fault=fault, edition=self.report.edition, **counts)
        await self._runs.end(self._number, self._clock(), outcome)


@asynccontextmanager
async def record_run(
    runs: RefreshLog, report: RefreshReport, owner: str, night: datetime | None, clock: Clock
) -> AsyncIterator[RunRecord]:
    """Record a run in the history, and at the end of the block its outcome. The block updates `RunRecord.report`."""
    record = RunRecord(report, runs, await runs.begin(report.corpus, clock(), owner, night), clock)
    try:
        yield record
    except asyncio.CancelledError:
        await record.end(RunState.CANCELLED, "It was stopped; applied changes stay.")
        raise
    except Exception as error:
        await record.end(RunState.FAILED, describe_fault(error))
        raise
    await record.end(RunState.DONE, record.report.fault)


def describe_fault(error: Exception) -> str:
    """Describe an error in one line.

    An unexpected error is described only by its type: its message may contain secrets.
    """
    hint = getattr(error, "hint", None)
    if hint is None:
        return f"It failed with an unexpected {type(error).__name__}; see the log."
    return " ".join(f"{error} {hint}".split())


POLL_SECONDS = 1.0  # seconds between two checks of a source's activity


def describe_activity(source: DocumentSource) -> str:
    """Return in a few words what a source is doing; empty if it does not say."""
    return str(getattr(source, "doing", ""))


@asynccontextmanager
async def poll_progress(
    source: DocumentSource, notify: Callable[[], Awaitable[None]], every: float = POLL_SECONDS
) -> AsyncIterator[None]:
    """While the block runs and the source says that it is doing something, call `notify` every `every` seconds."""

    async def poll() -> None:
        while True:
            await asyncio.sleep(every)
            if describe_activity(source):
                with suppress(StorageError):  # the refresh gets the same error, and reports it
                    await notify()

    task = asyncio.create_task(poll(), name="progress")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
