"""The log: what was asked, found, said and delivered. Entries are only ever added; the database refuses the rest.

Its sibling `storage.manifest` holds what is indexed now; the log holds what was so then. `storage.verifying` reads it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from storage.database import Database
from storage.schema import entries
from storage.spending import note_spending
from storage.storable import decoded, encoded
from storage.types import EntryKind, LogEntry

_Row = Row[*tuple[Any, ...]]
_CHUNK = 500


class AuditLog:
    """Appends entries and reads them. Every method is one transaction, and raises `StorageError`."""

    def __init__(self, database: Database, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._clock = clock

    async def append(self, *added: LogEntry) -> tuple[int, ...]:
        """Add entries, all or none, in order, and return their numbers. They are on the disk when this returns.

        Raises:
            TypeError, ValueError: A body holds what JSON cannot, such as a number that is not finite.
        """
        rows = rows_of(added, self._clock())
        return await self._database.write(lambda connection: add_rows(connection, rows))

    async def turn(self, turn_id: str) -> tuple[LogEntry, ...]:
        """Return all that is recorded of one turn, oldest first; empty when there is none of that id."""
        query = select(entries).where(entries.c.turn_id == turn_id).order_by(entries.c.seq)
        return await self._database.read(lambda connection: tuple(map(_entry, connection.execute(query))))

    async def find(self, prefix: str, *, limit: int = 10) -> tuple[str, ...]:
        """Return the ids, at most `limit`, of turns that begin with `prefix`."""
        query = (
            select(entries.c.turn_id)
            .where(entries.c.turn_id.startswith(prefix, autoescape=True))
            .distinct()
            .order_by(entries.c.turn_id)
            .limit(limit)
        )
        return await self._database.read(lambda connection: tuple(connection.execute(query).scalars()))

    async def turns(self, limit: int, *, before: int | None = None) -> tuple[tuple[LogEntry, LogEntry | None], ...]:
        """Return the last turns, newest first: how each was opened, and how it was closed if it was.

        Args:
            limit: How many at most.
            before: The number of an opening entry; only turns opened before it. For the next page.
        """
        return await self._database.read(lambda connection: _turns(connection, limit, before))


def rows_of(added: Iterable[LogEntry], at: datetime) -> list[Mapping[str, Any]]:
    """Turn entries into rows of the table; `at` is when those happened that do not say. Raises as `append` does."""
    return [
        {"turn_id": entry.turn_id, "kind": entry.kind.value, "at": entry.at or at, "body": encoded(entry.body)}
        for entry in added
    ]


def add_rows(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Add rows within a transaction of somebody's, with what is counted from them, and return their numbers."""
    numbers = [connection.execute(insert(entries).returning(entries.c.seq), row).scalar_one() for row in rows]
    note_spending(connection, numbers)
    return tuple(numbers)


def _turns(connection: Connection, limit: int, before: int | None) -> tuple[tuple[LogEntry, LogEntry | None], ...]:
    newest = select(entries).where(entries.c.kind == EntryKind.TURN_OPENED.value).order_by(entries.c.seq.desc())
    if before is not None:
        newest = newest.where(entries.c.seq < before)
    opened = [_entry(row) for row in connection.execute(newest.limit(limit))]
    closed: dict[str, LogEntry] = {}
    for start in range(0, len(opened), _CHUNK):
        ids = [entry.turn_id for entry in opened[start : start + _CHUNK]]
        query = select(entries).where(entries.c.turn_id.in_(ids), entries.c.kind == EntryKind.TURN_CLOSED.value)
        closed |= {row.turn_id: _entry(row) for row in connection.execute(query)}
    return tuple((entry, closed.get(entry.turn_id)) for entry in opened)


def _entry(row: _Row) -> LogEntry:
    return LogEntry(row.turn_id, EntryKind(row.kind), decoded(row.body), row.seq, row.at)
