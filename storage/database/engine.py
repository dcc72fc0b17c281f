"""Open the database, migrate it, and run transactions in its threads. Also encode values for the database as JSON.

This module does not know the tables, which `schema` defines.
"""

import json
import math
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Row,
    Select,
    Table,
    create_engine,
    event,
    func,
    inspect,
    make_url,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.pool import QueuePool

from storage.database.schema import REVISION
from storage.database.worker_threads import PriorityWorker, ThreadPool, WritePriority
from storage.errors import DatabaseUnusable, HomeUnusable, explain_folder_error, explain_sqlite_error
from storage.home.home_folder import close_to_others, make_home, make_private_file

T = TypeVar("T")

INSERTS: Mapping[str, Callable[..., Any]] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
"""By the database's dialect: an insert statement that can handle rows that already exist."""
_READERS = 4
BUSY_SECONDS = 10.0
_CHUNK = 500
_MIGRATION_LOCK = 0x6D6967  # the number of PostgreSQL's advisory lock for migrations
_MOST_KEPT = 1_000  # cached results of queries over tables that seldom change


class Database:
    """An open database. It runs functions that are passed to it in its own threads, each in one transaction."""

    def __init__(self, engine: Engine, *, writer: PriorityWorker, readers: ThreadPool, file: Path | None) -> None:
        # SQLite always reads one state; PostgreSQL needs an isolation level for it.
        one_state: dict[str, Any] = {} if file else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        self._engine = engine.execution_options(**one_state)
        # SQLite takes the write lock at once, so that a second writer waits instead of failing half way.
        # If several servers write, rows read for a change are locked: by row, by a lease, or by the record's lock.
        self._writing = engine.execution_options(begin="BEGIN IMMEDIATE")
        self._writer = writer
        self._readers = readers
        self._file = file
        self._changes = Counter[str]()
        self._kept: dict[Any, tuple[tuple[int, ...], Any]] = {}
        if file:
            event.listen(engine, "before_cursor_execute", self._note_change)
            event.listen(engine, "commit", self._note_commit)

    async def write(self, function: Callable[[Connection], T], priority: WritePriority = WritePriority.RECORD) -> T:
        """Run `function` in one transaction while no other write runs.

        It is committed on return, or rolled back on an error. Urgent calls overtake waiting ones, but wait for the
        running one, so no transaction may take long. Raises `StorageError`, for example if the disk is full, or if the
        file is damaged or locked by another process.
        """
        return await self._writer.run(priority, _run_transaction, self._writing, self._file, function)

    async def read(self, function: Callable[[Connection], T]) -> T:
        """Run `function` in one transaction that sees one state of the database. Raises as `write` does."""
        return await self._readers.run(_run_transaction, self._engine, self._file, function)

    async def read_kept(self, query: Select[Any], tables: Collection[Table], *known: Any) -> Sequence[Row[Any]]:
        """Return the result of a query over these tables. It is cached until one of the tables is written to.

        This is for tables that every question reads and only the owner of the home writes. On a database server, which
        other processes share, nothing is cached. `known` are the query's parameters, which identify it in the cache
        among the queries over these tables.
        """
        # Counted before reading, so that a concurrent commit invalidates the result.
        stamp = self.count_changes(*tables)
        if stamp is None:
            return await self.read(lambda connection: connection.execute(query).all())
        key = *(table.name for table in tables), *known
        if (kept := self._kept.get(key)) and kept[0] == stamp:
            return cast("Sequence[Row[Any]]", kept[1])
        rows = await self.read(lambda connection: connection.execute(query).all())
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[key] = stamp, rows
        return rows

    def count_changes(self, *tables: Table) -> tuple[int, ...] | None:
        """Return how often each table was written to; None on a server, where other processes write, too."""
        return tuple(self._changes[table.name] for table in tables) if self._file else None

    def _note_change(self, connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if table := _find_changed_table(statement):
            self._changes[table] += 1
            connection.info.setdefault("changed", set()).add(table)

    def _note_commit(self, connection: Connection) -> None:
        self._changes.update(connection.info.pop("changed", ()))

    async def remove_copies(self) -> tuple[str, ...]:
        """Delete the copies of the file that migrations left; return their names. Raises `StorageError`."""
        return await self._writer.run(WritePriority.BATCH, _remove_copies, self._file)

    async def compact(self, *, whole: bool) -> bool:
        """Clear removed data from SQLite's log, and with `whole` also from its file.

        Returns False if another process is reading the log, which then keeps the data.
        """
        return await self._writer.run(WritePriority.BATCH, _compact, self._engine, self._file, whole)

    async def check_writable(self) -> None:
        """Check that the database can be written, without changing anything. Raises as `write` does."""
        await self.write(_write_unused_number)


_CHANGE = re.compile(r'\s*(?:INSERT\s+(?:OR\s+\w+\s+)?INTO|UPDATE|DELETE\s+FROM)\s+"?(\w+)', re.IGNORECASE)


@lru_cache(maxsize=1_024)
def _find_changed_table(statement: str) -> str:
    match = _CHANGE.match(statement)
    return match[1] if match else ""


@contextmanager
def open_database(
    url: str, *, home: Path, read_only: bool = False, immutable: bool = False, busy_seconds: float = BUSY_SECONDS
) -> Iterator[Database]:
    """Open the database, create or migrate its tables, and close it after the block. Blocks.

    An empty `url` means SQLite at `home/footnote.db`. With `read_only`, nothing is changed: for commands that only
    read records, while another process may own the home. With `immutable` as well, nothing is locked either, so no
    process may be writing. `busy_seconds` is how long to wait for a process that locks SQLite's file.

    Raises `HomeUnusable` (also if there is nothing to read) and `DatabaseUnusable`.
    """
    file = None if url else home / "footnote.db"
    engine = (
        _postgresql_engine(url)
        if file is None
        else sqlite_engine(file, read_only=read_only, immutable=immutable, busy_seconds=busy_seconds)
    )
    try:
        with translate_driver_errors(file):
            _require_revision(engine, file, read_only=read_only)
        with PriorityWorker("database-write") as writer, ThreadPool("database-read", threads=_READERS) as readers:
            yield Database(engine, writer=writer, readers=readers, file=file)
    finally:
        engine.dispose()


def _require_revision(engine: Engine, file: Path | None, *, read_only: bool) -> None:
    with engine.begin() as connection:
        if _read_revision(connection) == REVISION:
            return
    if read_only:
        hint = "Any command that writes, such as `footnote ingest`, migrates it if it is older."
        raise DatabaseUnusable("The database was written by another version of Footnote.", hint=hint)
    from storage.database.migrations import migrate  # needed by few commands, and imports the record

    with engine.execution_options(begin="BEGIN IMMEDIATE").begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        # Another process may have migrated it while this one waited for the lock.
        if (revision := _read_revision(connection)) != REVISION:
            migrate(connection, revision, file)


def _read_revision(connection: Connection) -> str | None:
    """Return the revision of the tables; None if there are no tables.

    Raises `DatabaseUnusable` for another program's tables.
    """
    tables = inspect(connection).get_table_names()
    query = "SELECT version_num FROM alembic_version"
    if "alembic_version" in tables and (revision := connection.exec_driver_sql(query).scalar()):
        return str(revision)
    if tables:
        hint = "Choose another folder with FOOTNOTE_HOME, or another database. Nothing was changed."
        raise DatabaseUnusable("The database belongs to another program.", hint=hint)
    return None


@contextmanager
def translate_driver_errors(file: Path | None) -> Iterator[None]:
    """Convert a driver's error to one that says what to do; a programming error passes unchanged."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        if file is not None and isinstance(cause, sqlite3.Error) and (fault := explain_sqlite_error(cause, file)):
            raise fault from error
        if file is None and isinstance(error, OperationalError):
            hint = "Check that it runs, and that the database URL in the settings is right."
            reason = str(cause).strip().partition("\n")[0]
            raise DatabaseUnusable(f"The PostgreSQL server cannot be used: {reason}", hint=hint) from error
        raise


def _write_unused_number(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        # Writes the page with an unused number of the file's header.
        connection.exec_driver_sql("PRAGMA user_version = 0")
    else:
        connection.exec_driver_sql("SELECT txid_current()")  # refused if only reading is possible


def _run_transaction(engine: Engine, file: Path | None, function: Callable[[Connection], T]) -> T:
    with translate_driver_errors(file), engine.begin() as connection:
        return function(connection)


def sqlite_engine(
    file: Path, *, read_only: bool = False, immutable: bool = False, busy_seconds: float = BUSY_SECONDS
) -> Engine:
    """Create an engine for SQLite's `file`.

    Its execution option `begin` is the statement with which transactions start.
    """
    if not read_only:
        make_home(file.parent)
    elif not file.exists():
        hint = "`footnote ingest folder PATH --corpus NAME` creates one."
        raise HomeUnusable(f"There is no database in {file.parent} yet.", hint=hint)
    if not read_only:
        with suppress(OSError):  # SQLite reports it
            make_private_file(file)
            for log in (file.with_name(f"{file.name}{end}") for end in ("-wal", "-shm")):
                close_to_others(log)
    engine = create_engine(
        URL.create("sqlite", database=str(file)),
        creator=lambda: _connect_sqlite(file, read_only=read_only, immutable=immutable, busy_seconds=busy_seconds),
        poolclass=QueuePool,
        pool_size=_READERS + 1,
        max_overflow=0,
    )
    event.listen(engine, "begin", _begin_transaction)
    return engine


def _connect_sqlite(file: Path, *, read_only: bool, immutable: bool, busy_seconds: float) -> sqlite3.Connection:
    mode = "ro" if read_only else "rwc"
    connection = sqlite3.connect(
        f"{file.absolute().as_uri()}?mode={mode}{'&immutable=1' if immutable else ''}",
        uri=True,
        timeout=busy_seconds,
        isolation_level=None,  # we say BEGIN ourselves
        check_same_thread=False,  # the pool lends a connection to one thread at a time
    )
    try:
        if not read_only:
            connection.execute("PRAGMA journal_mode = WAL")
        # NORMAL would survive a killed process but not a power cut, and every answer must have been recorded.
        # It costs 0.2 ms a commit instead of 0.02 on a machine with an SSD.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        # Overwrite removed data instead of only marking it as free.
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _begin_transaction(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))


def _postgresql_engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError:
        parsed = URL.create("")
    if parsed.get_backend_name() != "postgresql":
        hint = "Leave it empty for SQLite in the home folder, or give postgresql://user:password@host/name."
        raise DatabaseUnusable(
            "The database URL in the settings is not for a database that Footnote supports.", hint=hint
        )
    try:
        return create_engine(parsed, pool_size=_READERS + 1, max_overflow=0, pool_pre_ping=True)
    except ModuleNotFoundError as error:
        hint = 'Install it next to Footnote: pip install "psycopg[binary]>=3.2,<4".'
        raise DatabaseUnusable("PostgreSQL needs the package psycopg, which is not installed.", hint=hint) from error


def _remove_copies(file: Path | None) -> tuple[str, ...]:
    copies = sorted(file.parent.glob(f"{file.name}.before-*")) if file else []
    try:
        for copy in copies:
            copy.unlink()
    except OSError as error:
        raise explain_folder_error(error, copies[0].parent) from error
    return tuple(copy.name for copy in copies)


_TRUNCATE_TRIES = 20
_TRUNCATE_PAUSE = 0.1


def _compact(engine: Engine, file: Path | None, whole: bool) -> bool:  # noqa: FBT001 - a thread's arguments have no names
    if file is None:
        return True
    with translate_driver_errors(file), closing(engine.raw_connection()) as connection:
        if whole:
            connection.execute("VACUUM")
        for _ in range(_TRUNCATE_TRIES):
            if not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                return True
            time.sleep(_TRUNCATE_PAUSE)  # our own readers end soon
    return False


def to_json_value(value: Any) -> Any:
    """Convert a value for JSON: dataclasses and mappings to objects, sequences to arrays, moments to ISO 8601.

    Raises `ValueError` for a number that is not finite or a moment without a time zone, `TypeError` for other types.
    """
    if value is None or type(value) in _PLAIN_TYPES:
        return value
    if isinstance(value, Enum):
        return to_json_value(value.value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} cannot be recorded: it is not finite")
    if isinstance(value, datetime) and value.tzinfo is None:
        raise ValueError(f"{value} cannot be recorded: it has no time zone")
    if isinstance(value, date):
        return value.isoformat()
    if value is None or isinstance(value, str | int | float):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        value = {name: getattr(value, name) for name in _list_fields(type(value))}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    raise TypeError(f"a {type(value).__name__} cannot be recorded")


_PLAIN_TYPES = frozenset({str, int, bool})


@cache
def _list_fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def encode_json(body: Any) -> str:
    """Encode a value as JSON that every database accepts. Raises as `to_json_value` does."""
    value = to_json_value(body)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        # Typed text may contain half a surrogate pair, which databases accept only as an escape.
        return json.dumps(value, separators=(",", ":"))
    return text


def decode_json(text: str) -> Any:
    return json.loads(text)


def split_chunks(values: Collection[T]) -> Iterator[tuple[T, ...]]:
    """Split values into chunks that fit into one statement: databases accept at least some thousands of values."""
    ordered = tuple(values)
    return (ordered[start : start + _CHUNK] for start in range(0, len(ordered), _CHUNK))
