"""The log: what was asked, found, said and delivered. Entries are only ever added; the database refuses the rest.

Its sibling `storage.manifest` holds what is indexed now; the log holds what was so then. `storage.verifying` reads it.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from storage.database import Database
from storage.schema import entries
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
        at = self._clock()
        rows = [
            {"turn_id": entry.turn_id, "kind": entry.kind.value, "at": entry.at or at, "body": _encoded(entry.body)}
            for entry in added
        ]
        return await self._database.write(lambda connection: _insert(connection, rows))

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


def storable(value: Any) -> Any:
    """Turn a value into what JSON has: dataclasses and mappings to objects, sequences to arrays, moments to ISO 8601.

    Raises:
        ValueError: A number is not finite, or a moment has no time zone.
        TypeError: JSON has no place for it.
    """
    match value:
        case Enum():
            return storable(value.value)
        case None | str() | int() | float():
            return _finite(value)
        case date():
            return _zoned(value).isoformat()
        case Mapping():
            return {_key(key): storable(item) for key, item in value.items()}
        case list() | tuple():
            return [storable(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {field.name: storable(getattr(value, field.name)) for field in fields(value)}
        case _:
            raise TypeError(f"a {type(value).__name__} cannot be recorded")


def _encoded(body: Mapping[str, Any]) -> str:
    value = storable(body)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # What was typed may hold half a surrogate pair, which no database takes but as an escape.
    return text if text.isascii() or _is_utf8(text) else json.dumps(value, separators=(",", ":"))


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _finite(value: str | float | None) -> str | float | None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} cannot be recorded: it is not finite")
    return value


def _zoned(value: date) -> date:
    if isinstance(value, datetime) and value.tzinfo is None:
        raise ValueError(f"{value} cannot be recorded: it has no time zone")
    return value


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a {type(key).__name__} cannot name what is recorded")
    return str(key)


def _insert(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    numbers = [connection.execute(insert(entries).returning(entries.c.seq), row).scalar_one() for row in rows]
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
    return LogEntry(row.turn_id, EntryKind(row.kind), json.loads(row.body), row.seq, row.at)
