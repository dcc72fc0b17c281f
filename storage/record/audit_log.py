"""The audit log: append entries and read them.

Entries are only ever added. Each gets a leaf in the record's tree. The database refuses any other change. The manifest
has the current documents; the log has those at the time of each turn.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select, text

from storage.clock import Clock, utc_now
from storage.database.engine import Database, encode_json, split_chunks
from storage.database.schema import entries
from storage.record.entry_rows import ENTRY_COLUMNS, parse_entry
from storage.record.proof.merkle_tree import SALT_BYTES, commit_body, format_moment, hash_entry
from storage.record.turn_index import index_entries
from storage.types import EntryKind, LogEntry


@dataclass(slots=True)
class PreparedEntries:
    """Entries to be inserted in a transaction, and reported after it is committed."""

    added: Sequence[LogEntry]
    rows: Sequence[Mapping[str, Any]]
    observe: Callable[[Sequence[LogEntry]], None]
    numbers: tuple[int, ...] = ()

    def insert(self, connection: Connection) -> None:
        self.numbers = insert_entries(connection, self.rows)

    def report(self) -> None:
        numbered = zip(self.numbers, self.added, self.rows, strict=True)
        self.observe([replace(entry, seq=seq, at=row["at"]) for seq, entry, row in numbered])


@dataclass(frozen=True)
class AuditLog:
    """The entries of the record. Every method is one transaction, and raises `StorageError`."""

    database: Database
    clock: Clock = utc_now
    observe: Callable[[Sequence[LogEntry]], None] = lambda _: None
    """Receives entries once they are committed; never blocks or raises."""

    async def append(self, *added: LogEntry) -> tuple[int, ...]:
        """Append entries, all or none, and return their numbers. They are committed when this returns.

        Raises `TypeError` or `ValueError` for a body that is not strict JSON.
        """
        prepared = self.prepare(*added)
        await self.database.write(prepared.insert)
        prepared.report()
        return prepared.numbers

    def prepare(self, *added: LogEntry) -> PreparedEntries:
        """Return entries to be inserted in the caller's transaction. Raises as `append` does."""
        return PreparedEntries(added, encode_entries(added, self.clock()), self.observe)

    async def turn(self, turn_id: str) -> tuple[LogEntry, ...]:
        """Return the entries of one turn, oldest first."""
        query = select(*ENTRY_COLUMNS).where(entries.c.turn_id == turn_id).order_by(entries.c.seq)
        return await self.database.read(lambda connection: tuple(map(parse_entry, connection.execute(query))))

    async def of_kind(self, kind: EntryKind, since: datetime) -> tuple[LogEntry, ...]:
        """Return the entries of a kind since a moment, oldest first."""
        chosen = entries.c.kind == kind.value, entries.c.at >= since
        query = select(*ENTRY_COLUMNS).where(*chosen).order_by(entries.c.seq)
        return await self.database.read(lambda connection: tuple(map(parse_entry, connection.execute(query))))

    async def unfinished(self, before: datetime | None = None) -> tuple[LogEntry, ...]:
        """Return the opening entries of turns that were never closed, oldest first; with `before`, only older ones."""
        closings = func.count().filter(entries.c.kind == EntryKind.TURN_CLOSED.value)
        # A turn's first entry opens it, so the index suffices: this query runs at every start, over long records.
        left = select(func.min(entries.c.seq)).group_by(entries.c.turn_id).having(closings == 0)
        query = select(*ENTRY_COLUMNS).where(entries.c.kind == EntryKind.TURN_OPENED.value, entries.c.seq.in_(left))
        query = query if before is None else query.where(entries.c.at < before)
        ordered = query.order_by(entries.c.seq)
        return await self.database.read(lambda connection: tuple(map(parse_entry, connection.execute(ordered))))

    async def find(self, prefix: str, *, limit: int = 10) -> tuple[str, ...]:
        """Return the ids of turns that begin with `prefix`, at most `limit` of them."""
        matching = select(entries.c.turn_id).where(entries.c.turn_id.startswith(prefix, autoescape=True))
        query = matching.distinct().order_by(entries.c.turn_id).limit(limit)
        return await self.database.read(lambda connection: tuple(connection.execute(query).scalars()))

    async def turns(self, limit: int, *, before: int | None = None) -> tuple[tuple[LogEntry, LogEntry | None], ...]:
        """Return the last turns, newest first: the opening entry of each, and its closing entry, if any.

        `before` is the number of an opening entry, for the next page: only turns opened before it.
        """
        return await self.database.read(lambda connection: _fetch_turns(connection, limit, before))


def encode_entries(added: Iterable[LogEntry], at: datetime) -> list[Mapping[str, Any]]:
    """Convert entries to rows. Entries without a time get the time `at`. Raises as `append` does."""
    return [
        {"turn_id": entry.turn_id, "kind": entry.kind.value, "at": entry.at or at, "body": encode_json(entry.body)}
        for entry in added
    ]


def insert_entries(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Insert rows, and the rows derived from them, within a transaction; return the entries' numbers."""
    first = lock_record(connection) + 1
    sealed = [seal_row(number, row) for number, row in enumerate(rows, first)]
    if sealed:
        connection.execute(_INSERT, sealed)
    index_entries(connection, sealed)
    return tuple(row["seq"] for row in sealed)


def lock_record(connection: Connection) -> int:
    """Return the highest number ever used, and block other inserts until this transaction ends.

    So numbers have no gaps, and their order is the order of commits. Code that reads the record to decide which entries
    to add must take this lock first.
    """
    if connection.dialect.name == "sqlite":  # one writer at a time
        return int(connection.execute(_LAST_NUMBER).scalar_one())
    connection.execute(select(func.pg_advisory_xact_lock(_NUMBERS_LOCK)))
    return int(connection.execute(select(func.coalesce(func.max(entries.c.seq), 0))).scalar_one())


_INSERT = insert(entries)
_NUMBERS_LOCK = 0x666F6F74  # the number of PostgreSQL's advisory lock for the numbers of entries
# SQLite stores the highest number separately, so that numbers of removed entries are not reused.
_LAST_NUMBER = text(
    """SELECT max(coalesce((SELECT max(seq) FROM entries), 0),
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'entries'), 0))"""
)


def seal_row(seq: int, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row with its number and its leaf."""
    salt = secrets.token_bytes(SALT_BYTES)
    commitment = commit_body(salt, row["body"].encode())
    leaf = hash_entry(seq, row["turn_id"], row["kind"], format_moment(row["at"]), commitment)
    return {**row, "seq": seq, "salt": salt, "commitment": commitment, "leaf": leaf}


def _fetch_turns(
    connection: Connection, limit: int, before: int | None
) -> tuple[tuple[LogEntry, LogEntry | None], ...]:
    newest = select(*ENTRY_COLUMNS).where(entries.c.kind == EntryKind.TURN_OPENED.value).order_by(entries.c.seq.desc())
    if before is not None:
        newest = newest.where(entries.c.seq < before)
    opened = [parse_entry(row) for row in connection.execute(newest.limit(limit))]
    closed: dict[str, LogEntry] = {}
    for ids in split_chunks([entry.turn_id for entry in opened]):
        query = select(*ENTRY_COLUMNS).where(entries.c.turn_id.in_(ids), entries.c.kind == EntryKind.TURN_CLOSED.value)
        closed |= {row.turn_id: parse_entry(row) for row in connection.execute(query)}
    return tuple((entry, closed.get(entry.turn_id)) for entry in opened)


@dataclass(frozen=True, slots=True)
class Clocks:
    """Other clocks, to be compared with this process's own: the server's, and that of the last entry."""

    server: datetime | None  # the database server's time; None for SQLite
    newest: datetime | None  # when the last entry was written; None for an empty log


async def read_clocks(database: Database) -> Clocks:
    return await database.read(_fetch_clocks)


def _fetch_clocks(connection: Connection) -> Clocks:
    newest = connection.execute(select(entries.c.at).order_by(entries.c.seq.desc()).limit(1)).scalar()
    if connection.dialect.name == "sqlite":
        return Clocks(None, newest)
    server: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return Clocks(server.astimezone(UTC), newest)
