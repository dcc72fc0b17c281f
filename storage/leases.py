"""Leases: what only one process may do at a time, over all processes that share a database.

Whoever takes one has it until a moment, and renews it meanwhile; one that has lapsed is anybody's. Moments are the
callers' own clocks', so clocks of machines that share a database must agree to a few seconds.
"""

import os
import socket
from datetime import datetime, timedelta
from uuid import uuid4

from sqlalchemy import Connection, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from storage.database import Database
from storage.errors import LeaseLost
from storage.refresh_types import Lease
from storage.schema import leases
from storage.urgency import Urgency


def new_owner() -> str:
    """Return a name that nobody else has or had, which tells a person the machine and the process."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"


class Leases:
    """Takes, renews and gives back leases by name. Every method raises `StorageError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, name: str, owner: str, at: datetime, seconds: float) -> bool:
        """Have the lease from `at` for so many seconds. Returns False while another has it."""
        return await self._database.write(lambda it: taken(it, name, owner, at, seconds), Urgency.RECORD)

    async def renew(self, name: str, owner: str, at: datetime, seconds: float) -> bool:
        """Have it for so many seconds from `at`. Returns False if it is no longer this owner's.

        One that has lapsed and that nobody took is still its owner's.
        """
        own = update(leases).where(leases.c.name == name, leases.c.owner == owner)
        prolonged = own.values(until=at + timedelta(seconds=seconds))
        return await self._database.write(lambda it: it.execute(prolonged).rowcount == 1, Urgency.RECORD)

    async def release(self, name: str, owner: str) -> None:
        """Give it back; another's stays as it is."""
        await self._database.write(lambda it: released(it, name, owner), Urgency.RECORD)

    async def holder(self, name: str, at: datetime) -> str | None:
        """Return who has it; None where nobody does."""
        query = select(leases.c.owner).where(leases.c.name == name, leases.c.until > at)
        return await self._database.read(lambda it: it.execute(query).scalar())

    async def clear(self) -> None:
        """Take all leases from whoever has them: only for whom nobody can share the database with."""
        await self._database.write(lambda it: it.execute(delete(leases)), Urgency.RECORD)


def taken(connection: Connection, name: str, owner: str, at: datetime, seconds: float) -> bool:
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


def released(connection: Connection, name: str, owner: str) -> None:
    """Give a lease back within a transaction, as `Leases.release` does."""
    connection.execute(delete(leases).where(leases.c.name == name, leases.c.owner == owner))


def demand(connection: Connection, lease: Lease | None) -> None:
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
