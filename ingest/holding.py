"""Holds a lease as long as something is done, so that no two processes refresh one corpus at a time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

from ingest.reports import RefreshRefused
from storage.errors import LeaseLost, StorageError
from storage.leases import Leases, new_owner
from storage.refresh_types import Lease

SECONDS = 60.0
"""How long a lease lasts: so long after a process was killed, another may go on with its work."""

Clock = Callable[[], datetime]


def now() -> datetime:
    """Return the moment, as this machine's clock says."""
    return datetime.now(UTC)


def lease_of(corpus: str) -> str:
    """Return the name of the lease that a refresh of a corpus holds."""
    return f"refresh:{corpus}"


@asynccontextmanager
async def held(leases: Leases, corpus: str, *, clock: Clock, seconds: float = SECONDS) -> AsyncIterator[Lease]:
    """Have the lease of a corpus within the block, and renew it three times before it lapses.

    Raises:
        RefreshRefused: Another has it.
        LeaseLost: It was lost within the block, which was cancelled: this process stood still for too long.
    """
    lease = Lease(lease_of(corpus), new_owner())
    if not await leases.take(lease.name, lease.owner, clock(), seconds):
        by = await leases.holder(lease.name, clock())
        hint = "Wait until that is done; `footnote ingest status` shows how far it has come."
        raise RefreshRefused(f"“{corpus}” is being brought up to date already, by {by or 'another'}.", hint=hint)
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - this is a coroutine
    before, lost = task.cancelling(), asyncio.Event()
    renewing = asyncio.create_task(_renew(leases, lease, clock, seconds, task, lost), name=f"lease of {corpus}")
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


async def _renew(
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
