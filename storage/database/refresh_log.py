"""Leases, and the history of refreshes of single corpora and of nightly refreshes.

A lease is valid until a moment, and must be renewed before it; a lapsed lease is free. The moments come from the
callers' clocks, so the clocks of machines that share a database must agree within a few seconds.
"""

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar
from uuid import uuid4

from sqlalchemy import Connection, RowMapping, Select, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from storage.database.engine import Database
from storage.database.schema import leases, nights, runs
from storage.errors import LeaseLost
from storage.types import Lease, NightRecord, RefreshRun, RunOutcome, RunState


def make_owner_id() -> str:
    """Make a unique owner name from machine and process."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"


@dataclass(frozen=True)
class Leases:
    """Leases by name. Every method raises `StorageError`."""

    database: Database

    async def take(self, name: str, owner: str, at: datetime, seconds: float) -> bool:
        """Take the lease for some `seconds` from `at`. Returns False while another owner has it."""
        return await self.database.write(lambda it: take_lease(it, name, owner, at, seconds))

    async def renew(self, name: str, owner: str, at: datetime, seconds: float) -> bool:
        """Renew the lease for some `seconds` from `at`. Returns False if another owner has taken it."""
        own = update(leases).where(leases.c.name == name, leases.c.owner == owner)
        prolonged = own.values(until=at + timedelta(seconds=seconds))
        return await self.database.write(lambda it: it.execute(prolonged).rowcount == 1)

    async def release(self, name: str, owner: str) -> None:
        """Release the lease, if `owner` has it."""
        await self.database.write(lambda it: release_lease(it, name, owner))

    async def holder(self, name: str, at: datetime) -> str | None:
        query = select(leases.c.owner).where(leases.c.name == name, leases.c.until > at)
        return await self.database.read(lambda it: it.execute(query).scalar())

    async def clear(self) -> None:
        """Release all leases of all owners; call only if no other process can share the database."""
        await self.database.write(lambda it: it.execute(delete(leases)))


def take_lease(connection: Connection, name: str, owner: str, at: datetime, seconds: float) -> bool:
    """Take a lease within a transaction, as `Leases.take` does."""
    until = at + timedelta(seconds=seconds)
    free = or_(leases.c.owner == owner, leases.c.until <= at)
    if connection.execute(update(leases).where(leases.c.name == name, free).values(owner=owner, until=until)).rowcount:
        return True
    try:
        with connection.begin_nested():
            connection.execute(insert(leases), {"name": name, "owner": owner, "until": until})
    except IntegrityError:  # another owner has it, or was quicker
        return False
    return True


def release_lease(connection: Connection, name: str, owner: str) -> None:
    connection.execute(delete(leases).where(leases.c.name == name, leases.c.owner == owner))


def require_lease(connection: Connection, lease: Lease | None) -> None:
    """Raise `LeaseLost` if the lease has another owner. Otherwise, block changes of it until this transaction ends."""
    if lease is None:
        return
    query = select(leases.c.owner).where(leases.c.name == lease.name).with_for_update()
    if connection.execute(query).scalar() != lease.owner:
        hint = "The other process continues; if it does not, run the command again. Applied changes stay."
        raise LeaseLost(
            "Another process has taken over this refresh, as this process was paused for too long.", hint=hint
        )


LOST_RUN_FAULT = "Its process ended before the refresh did; what was applied stays, and the next run continues there."


@dataclass(frozen=True, slots=True)
class RunTotal:
    """The sums over all runs of one corpus that ended in the same state."""

    COUNTED: ClassVar = ("added", "changed", "unchanged", "removed", "failed", "passages_added", "passages_removed")

    corpus: str
    state: RunState
    runs: int
    done: Mapping[str, int]  # documents and passages, by `COUNTED`


@dataclass(frozen=True)
class RefreshLog:
    """The history of refresh runs, one row for each run. Every method raises `StorageError`."""

    database: Database

    async def begin(self, corpus: str, at: datetime, owner: str, night: datetime | None = None) -> int:
        """Record the start of a run, and return its number.

        Earlier runs of the corpus without an end are recorded as lost. The caller must hold the corpus's lease.
        """
        row = {"corpus": corpus, "begun": at, "seen": at, "state": RunState.RUNNING, "owner": owner, "night": night}
        return await self.database.write(lambda connection: _begin_run(connection, row))

    async def progress(
        self, run: int, at: datetime, done: int, total: int | None, passages: int, doing: str = ""
    ) -> None:
        """Record a run's progress: documents done, of `total`, passages added, and what its source is `doing`."""
        values = {"seen": at, "done": done, "total": total, "passages": passages, "doing": doing}
        await self._change(run, values)

    async def end(self, run: int, at: datetime, outcome: RunOutcome) -> None:
        """Record the outcome of a run. A run that was recorded as lost stays lost."""
        await self._change(run, {"seen": at, "ended": at, "doing": "", **asdict(outcome)})

    async def recent(self, limit: int = 20, corpus: str = "") -> tuple[RefreshRun, ...]:
        """Return the newest runs of one corpus, or of all, newest first."""
        query = select(runs).order_by(runs.c.id.desc()).limit(limit)
        return await self._all(query.where(runs.c.corpus == corpus) if corpus else query)

    async def last(self) -> Mapping[str, RefreshRun]:
        return await self.database.read(fetch_last_runs)

    async def totals(self) -> tuple[RunTotal, ...]:
        """Return the sums of all ended runs, by corpus and state."""
        sums = [func.sum(runs.c[name]) for name in RunTotal.COUNTED]
        ended = select(runs.c.corpus, runs.c.state, func.count(), *sums).where(runs.c.ended.is_not(None))
        query = ended.group_by(runs.c.corpus, runs.c.state)
        rows = await self.database.read(lambda connection: connection.execute(query).all())
        counted = ((row[0], RunState(row[1]), *map(int, row[2:])) for row in rows)
        return tuple(
            RunTotal(corpus, state, count, dict(zip(RunTotal.COUNTED, done, strict=True)))
            for corpus, state, count, *done in counted
        )

    async def _change(self, run: int, values: Mapping[str, Any]) -> None:
        change = update(runs).where(runs.c.id == run, runs.c.state == RunState.RUNNING).values(values)
        await self.database.write(lambda connection: connection.execute(change))

    async def _all(self, query: Select[Any]) -> tuple[RefreshRun, ...]:
        rows = await self.database.read(lambda connection: connection.execute(query).mappings().all())
        return tuple(parse_run(row) for row in rows)


def fetch_last_runs(connection: Connection) -> dict[str, RefreshRun]:
    """Return the newest run of each corpus, by its name."""
    newest = select(func.max(runs.c.id)).group_by(runs.c.corpus)
    rows = connection.execute(select(runs).where(runs.c.id.in_(newest))).mappings()
    return {row["corpus"]: parse_run(row) for row in rows}


def parse_run(row: RowMapping) -> RefreshRun:
    values: dict[str, Any] = {column.name: row[column] for column in runs.c}
    return RefreshRun(**(values | {"state": RunState(values["state"])}))


def _begin_run(connection: Connection, row: Mapping[str, Any]) -> int:
    left = update(runs).where(runs.c.corpus == row["corpus"], runs.c.state == RunState.RUNNING)
    connection.execute(left.values(state=RunState.LOST, ended=runs.c.seen, fault=LOST_RUN_FAULT))
    number = connection.execute(insert(runs).values(row).returning(runs.c.id)).scalar_one()
    return int(number)


NIGHT_LEASE = "night"  # the name of the lease for running a nightly refresh, renewed by `Leases.renew`
NIGHT_LEASE_SECONDS = 120.0


@dataclass(frozen=True)
class NightLog:
    """The history of nightly refreshes, one row each. Every method raises `StorageError`."""

    database: Database

    async def begin(self, due: datetime, at: datetime, owner: str, seconds: float = NIGHT_LEASE_SECONDS) -> bool:
        """Begin a nightly refresh and take `NIGHT_LEASE`. Returns False if it has ended, or the lease is taken."""
        return await self.database.write(lambda it: _begin_night(it, due, at, owner, seconds))

    async def end(self, due: datetime, at: datetime, outcome: str, lines: Iterable[str], owner: str = "") -> None:
        """Record the outcome of a nightly refresh, and release its lease.

        If it has already ended, or `owner` has lost its lease, its outcome stays unchanged.
        """
        text = "\n".join(" ".join(line.split()) for line in lines)
        await self.database.write(lambda it: _end_night(it, due, at, outcome, text, owner))

    async def undo(self, after: datetime) -> int:
        """Delete ended nightly refreshes that were due after a moment, if the clock was wrong; return their number."""
        early = delete(nights).where(nights.c.due > after, nights.c.ended.is_not(None))
        return await self.database.write(lambda it: it.execute(early).rowcount)

    async def last(self) -> datetime | None:
        """Return when the newest ended nightly refresh was due; None if there is none."""
        query = select(func.max(nights.c.due)).where(nights.c.ended.is_not(None))
        return await self.database.read(lambda it: it.execute(query).scalar())

    async def recent(self, limit: int = 20) -> tuple[NightRecord, ...]:
        query = select(nights).order_by(nights.c.due.desc()).limit(limit)
        rows = await self.database.read(lambda it: it.execute(query).all())
        return tuple(
            NightRecord(row.due, row.begun, row.ended, row.owner, row.outcome, tuple(row.lines.splitlines()))
            for row in rows
        )


def _begin_night(connection: Connection, due: datetime, at: datetime, owner: str, seconds: float) -> bool:
    if not take_lease(connection, NIGHT_LEASE, owner, at, seconds):
        return False
    # Read under the lease, as its previous owner may just have ended the refresh.
    if connection.execute(select(nights.c.due).where(nights.c.due == due, nights.c.ended.is_not(None))).first():
        release_lease(connection, NIGHT_LEASE, owner)
        return False
    connection.execute(delete(nights).where(nights.c.due == due))
    connection.execute(insert(nights), {"due": due, "begun": at, "owner": owner, "outcome": "", "lines": ""})
    return True


def _end_night(connection: Connection, due: datetime, at: datetime, outcome: str, lines: str, mine: str) -> None:
    unfinished = nights.c.due == due, nights.c.ended.is_(None)
    owner = connection.execute(select(nights.c.owner).where(*unfinished)).scalar()
    if owner is None or (mine and mine != owner):
        return
    connection.execute(update(nights).where(*unfinished).values(ended=at, outcome=outcome, lines=lines))
    release_lease(connection, NIGHT_LEASE, owner)
