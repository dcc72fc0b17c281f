"""Leases, and the history of refreshes and nights.

A lease is held until a moment and renewed meanwhile; one that has lapsed is free. Moments are the callers' own clocks',
so clocks of machines that share a database must agree to a few seconds.
"""

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, RowMapping, Select, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from storage.database.engine import Database
from storage.database.schema import leases, nights, runs
from storage.database.worker_threads import WritePriority
from storage.errors import LeaseLost
from storage.types import Lease, NightRecord, RefreshRun, RunOutcome, RunState


def make_owner_id() -> str:
    """Return a name that nobody else has or had, which tells a person the machine and the process."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"


class Leases:
    """Takes, renews and gives back leases by name. Every method raises `StorageError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, name: str, owner: str, at: datetime, seconds: float) -> bool:
        """Have the lease from `at` for so many seconds. Returns False while another has it."""
        return await self._database.write(lambda it: take_lease(it, name, owner, at, seconds), WritePriority.RECORD)

    async def renew(self, name: str, owner: str, at: datetime, seconds: float) -> bool:
        """Have it for so many seconds from `at`. Returns False if it is no longer this owner's.

        One that has lapsed and that nobody took is still its owner's.
        """
        own = update(leases).where(leases.c.name == name, leases.c.owner == owner)
        prolonged = own.values(until=at + timedelta(seconds=seconds))
        return await self._database.write(lambda it: it.execute(prolonged).rowcount == 1, WritePriority.RECORD)

    async def release(self, name: str, owner: str) -> None:
        """Give it back; another's stays as it is."""
        await self._database.write(lambda it: release_lease(it, name, owner), WritePriority.RECORD)

    async def holder(self, name: str, at: datetime) -> str | None:
        """Return who has it; None where nobody does."""
        query = select(leases.c.owner).where(leases.c.name == name, leases.c.until > at)
        return await self._database.read(lambda it: it.execute(query).scalar())

    async def clear(self) -> None:
        """Take all leases from whoever has them: only for whom nobody can share the database with."""
        await self._database.write(lambda it: it.execute(delete(leases)), WritePriority.RECORD)


def take_lease(connection: Connection, name: str, owner: str, at: datetime, seconds: float) -> bool:
    """Take a lease within a transaction, as `Leases.take` does."""
    until = at + timedelta(seconds=seconds)
    free = or_(leases.c.owner == owner, leases.c.until <= at)
    if connection.execute(update(leases).where(leases.c.name == name, free).values(owner=owner, until=until)).rowcount:
        return True
    try:
        with connection.begin_nested():
            connection.execute(insert(leases), {"name": name, "owner": owner, "until": until})
    except IntegrityError:  # another has it, or was quicker
        return False
    return True


def release_lease(connection: Connection, name: str, owner: str) -> None:
    """Give a lease back within a transaction, as `Leases.release` does."""
    connection.execute(delete(leases).where(leases.c.name == name, leases.c.owner == owner))


def require_lease(connection: Connection, lease: Lease | None) -> None:
    """Make sure, to the end of a transaction, that a lease is its owner's; None demands nothing.

    Raises:
        LeaseLost: It is another's.
    """
    if lease is None:
        return
    query = select(leases.c.owner).where(leases.c.name == lease.name).with_for_update()
    if connection.execute(query).scalar() != lease.owner:
        hint = "It goes on with the work; if nobody does, run the command again. What was applied stays."
        raise LeaseLost("Another process has taken over this refresh: this one stood still for too long.", hint=hint)


LOST_RUN_FAULT = "Its process ended before it had; what it had applied stays, and the next run goes on from there."
"""The fault of a run that was lost."""


class RefreshLog:
    """Keeps the rows. Every method raises `StorageError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, corpus: str, at: datetime, owner: str, night: datetime | None = None) -> int:
        """Note that a run begins, and return its number. Only whoever holds the corpus's lease may.

        A run of the same corpus that has not ended is one whose process is gone: it is noted as lost.
        """
        row = {"corpus": corpus, "begun": at, "seen": at, "state": RunState.RUNNING, "owner": owner, "night": night}
        return await self._database.write(lambda connection: _begin_run(connection, row), WritePriority.RECORD)

    async def progress(
        self, run: int, at: datetime, done: int, total: int | None, passages: int, doing: str = ""
    ) -> None:
        """Note how far a run has come: documents looked at, of how many, passages added, what its source is doing."""
        values = {"seen": at, "done": done, "total": total, "passages": passages, "doing": doing}
        await self._change(run, values)

    async def end(self, run: int, at: datetime, outcome: RunOutcome) -> None:
        """Note what a run came to. One that was noted as lost meanwhile stays lost."""
        await self._change(run, {"seen": at, "ended": at, "doing": "", **asdict(outcome)})

    async def recent(self, limit: int = 20, corpus: str = "") -> tuple[RefreshRun, ...]:
        """Return the newest runs, newest first: of one corpus, or of all."""
        query = select(runs).order_by(runs.c.id.desc()).limit(limit)
        return await self._all(query.where(runs.c.corpus == corpus) if corpus else query)

    async def last(self) -> Mapping[str, RefreshRun]:
        """Return the newest run of each corpus, by its name."""
        return await self._database.read(fetch_last_runs)

    async def _change(self, run: int, values: Mapping[str, Any]) -> None:
        change = update(runs).where(runs.c.id == run, runs.c.state == RunState.RUNNING).values(values)
        await self._database.write(lambda connection: connection.execute(change), WritePriority.RECORD)

    async def _all(self, query: Select[Any]) -> tuple[RefreshRun, ...]:
        rows = await self._database.read(lambda connection: connection.execute(query).mappings().all())
        return tuple(parse_run(row) for row in rows)


def fetch_last_runs(connection: Connection) -> dict[str, RefreshRun]:
    """Return the newest run of each corpus, by its name."""
    newest = select(func.max(runs.c.id)).group_by(runs.c.corpus)
    rows = connection.execute(select(runs).where(runs.c.id.in_(newest))).mappings()
    return {row["corpus"]: parse_run(row) for row in rows}


def parse_run(row: RowMapping) -> RefreshRun:
    """Make a run of its row."""
    values: dict[str, Any] = {column.name: row[column] for column in runs.c}
    return RefreshRun(**(values | {"state": RunState(values["state"])}))


def _begin_run(connection: Connection, row: Mapping[str, Any]) -> int:
    left = update(runs).where(runs.c.corpus == row["corpus"], runs.c.state == RunState.RUNNING)
    connection.execute(left.values(state=RunState.LOST, ended=runs.c.seen, fault=LOST_RUN_FAULT))
    number = connection.execute(insert(runs).values(row).returning(runs.c.id)).scalar_one()
    return int(number)


NIGHT_LEASE = "night"
"""The lease of whoever works through a night; renewed with `Leases.renew` meanwhile."""
NIGHT_LEASE_SECONDS = 120.0
"""How long it lasts."""


class NightLog:
    """Keeps a row for each night. Every method raises `StorageError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, due: datetime, at: datetime, owner: str, seconds: float = NIGHT_LEASE_SECONDS) -> bool:
        """Take a night, and with it the lease `LEASE` for so many seconds.

        Returns False if that night is done, or if another process holds the lease: it is at work on some night. A
        night whose process is gone, so that its lease has lapsed, is begun anew.
        """
        return await self._database.write(lambda it: _begin_night(it, due, at, owner, seconds), WritePriority.RECORD)

    async def end(self, due: datetime, at: datetime, outcome: str, lines: Iterable[str], owner: str = "") -> None:
        """Note what a night came to, and give its lease back.

        A night that has ended stays as it was told; with `owner`, so does one that is another's by now.
        """
        told = "\n".join(" ".join(line.split()) for line in lines)
        await self._database.write(lambda it: _end_night(it, due, at, outcome, told, owner), WritePriority.RECORD)

    async def undo(self, after: datetime) -> int:
        """Forget the nights that were due after a moment and ended, and return how many they were.

        Only a clock that was wrong can have brought them; when they come, they are to be worked through.
        """
        early = delete(nights).where(nights.c.due > after, nights.c.ended.is_not(None))
        return await self._database.write(lambda it: it.execute(early).rowcount, WritePriority.RECORD)

    async def last(self) -> datetime | None:
        """Return when the newest night was due that came to its end; None where none has."""
        query = select(func.max(nights.c.due)).where(nights.c.ended.is_not(None))
        return await self._database.read(lambda it: it.execute(query).scalar())

    async def recent(self, limit: int = 20) -> tuple[NightRecord, ...]:
        """Return the newest nights, newest first."""
        query = select(nights).order_by(nights.c.due.desc()).limit(limit)
        rows = await self._database.read(lambda it: it.execute(query).all())
        return tuple(
            NightRecord(row.due, row.begun, row.ended, row.owner, row.outcome, tuple(row.lines.splitlines()))
            for row in rows
        )


def _begin_night(connection: Connection, due: datetime, at: datetime, owner: str, seconds: float) -> bool:
    if connection.execute(select(nights.c.due).where(nights.c.due == due, nights.c.ended.is_not(None))).first():
        return False
    if not take_lease(connection, NIGHT_LEASE, owner, at, seconds):
        return False
    connection.execute(delete(nights).where(nights.c.due == due))
    connection.execute(insert(nights), {"due": due, "begun": at, "owner": owner, "outcome": "", "lines": ""})
    return True


def _end_night(connection: Connection, due: datetime, at: datetime, outcome: str, lines: str, mine: str) -> None:
    under_way = nights.c.due == due, nights.c.ended.is_(None)
    owner = connection.execute(select(nights.c.owner).where(*under_way)).scalar()
    if owner is None or (mine and mine != owner):
        return
    connection.execute(update(nights).where(*under_way).values(ended=at, outcome=outcome, lines=lines))
    release_lease(connection, NIGHT_LEASE, owner)
