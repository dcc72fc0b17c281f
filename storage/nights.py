"""Which nights were worked through: each once, whichever of the processes that share a database does it."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, delete, func, insert, select, update

from storage.database import Database
from storage.leases import released, taken
from storage.refresh_types import NightRecord
from storage.schema import nights
from storage.urgency import Urgency

LEASE = "night"
"""The lease of whoever works through a night; renewed with `Leases.renew` meanwhile."""
SECONDS = 120.0
"""How long it lasts."""


class Nights:
    """Keeps a row for each night. Every method raises `StorageError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, due: datetime, at: datetime, owner: str, seconds: float = SECONDS) -> bool:
        """Take a night, and with it the lease `LEASE` for so many seconds.

        Returns False if that night is done, or if another process holds the lease: it is at work on some night. A
        night whose process is gone, so that its lease has lapsed, is begun anew.
        """
        return await self._database.write(lambda it: _begin(it, due, at, owner, seconds), Urgency.RECORD)

    async def end(self, due: datetime, at: datetime, outcome: str, lines: Iterable[str], owner: str = "") -> None:
        """Note what a night came to, and give its lease back.

        A night that has ended stays as it was told; with `owner`, so does one that is another's by now.
        """
        told = "\n".join(" ".join(line.split()) for line in lines)
        await self._database.write(lambda it: _end(it, due, at, outcome, told, owner), Urgency.RECORD)

    async def undo(self, after: datetime) -> int:
        """Forget the nights that were due after a moment and ended, and return how many they were.

        Only a clock that was wrong can have brought them; when they come, they are to be worked through.
        """
        early = delete(nights).where(nights.c.due > after, nights.c.ended.is_not(None))
        return await self._database.write(lambda it: it.execute(early).rowcount, Urgency.RECORD)

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


def _begin(connection: Connection, due: datetime, at: datetime, owner: str, seconds: float) -> bool:
    if connection.execute(select(nights.c.due).where(nights.c.due == due, nights.c.ended.is_not(None))).first():
        return False
    if not taken(connection, LEASE, owner, at, seconds):
        return False
    connection.execute(delete(nights).where(nights.c.due == due))
    connection.execute(insert(nights), {"due": due, "begun": at, "owner": owner, "outcome": "", "lines": ""})
    return True


def _end(connection: Connection, due: datetime, at: datetime, outcome: str, lines: str, mine: str) -> None:
    under_way = nights.c.due == due, nights.c.ended.is_(None)
    owner = connection.execute(select(nights.c.owner).where(*under_way)).scalar()
    if owner is None or (mine and mine != owner):
        return
    connection.execute(update(nights).where(*under_way).values(ended=at, outcome=outcome, lines=lines))
    released(connection, LEASE, owner)
