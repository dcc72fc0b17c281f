"""The database: opening it, one named writer, a few named readers, and errors in plain words.

It knows nothing of what is stored; `storage.schema` names the tables, `storage.manifest` and `storage.audit` use them.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.pool import QueuePool

from storage.errors import DatabaseUnusable, HomeUnusable
from storage.faults import sqlite_fault
from storage.lock import make_home
from storage.migrating import bring_up_to_date
from storage.urgency import Urgency, UrgencyWorker
from storage.workers import Worker

T = TypeVar("T")

_READERS = 4
_BUSY_SECONDS = 10.0


class Database:
    """An open database. Functions given to it run in its threads, each in one transaction."""

    def __init__(self, engine: Engine, *, writer: UrgencyWorker, readers: Worker, file: Path | None) -> None:
        self._engine = engine
        # SQLite takes the write lock at once, so that two writers wait in turn and neither fails half way.
        self._writing = engine.execution_options(begin="BEGIN IMMEDIATE")
        self._writer = writer
        self._readers = readers
        self._file = file

    async def write(self, function: Callable[[Connection], T], urgency: Urgency = Urgency.RECORD) -> T:
        """Run `function` alone in one transaction, committed when this returns, rolled back if it raises.

        What is urgent is done before what was asked for earlier; so no transaction may take long.

        Raises:
            StorageError: The disk is full, the file is damaged, another process keeps it locked, ...
        """
        return await self._writer.run(urgency, _transact, self._writing, self._file, function)

    async def read(self, function: Callable[[Connection], T]) -> T:
        """Run `function` in one transaction that sees one state of the database. Raises as `write` does."""
        return await self._readers.run(_transact, self._engine, self._file, function)

    async def try_writing(self) -> None:
        """Bring to the disk what changes nothing, and so find out whether anything can be. Raises as `write` does."""
        await self.write(_write_nothing)


@contextmanager
def open_database(
    url: str, *, home: Path, read_only: bool = False, busy_seconds: float = _BUSY_SECONDS
) -> Iterator[Database]:
    """Open the database, make or migrate its tables, and close it at the end. Blocks.

    Args:
        url: Empty for SQLite at `home/footnote.db`, else `postgresql://...`.
        home: The folder of Footnote; made if it is missing.
        read_only: Change nothing: for commands that only read records, while another process may own the home.
        busy_seconds: How long to wait for another process that has SQLite's file locked.

    Raises:
        HomeUnusable: The folder or the disk does not allow it, or, `read_only`, there is nothing to read.
        DatabaseUnusable: The file is damaged, newer than this code, or `url` cannot be used.
    """
    file = None if url else home / "footnote.db"
    engine = _postgresql(url) if file is None else sqlite_engine(file, read_only=read_only, busy_seconds=busy_seconds)
    try:
        with plain_words(file):
            bring_up_to_date(engine, file, read_only=read_only)
        with UrgencyWorker("database-write") as writer, Worker("database-read", threads=_READERS) as readers:
            yield Database(engine, writer=writer, readers=readers, file=file)
    finally:
        engine.dispose()


@contextmanager
def plain_words(file: Path | None) -> Iterator[None]:
    """Turn a driver's error into one that says what to do; a fault of the code passes as it is."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        if file is not None and isinstance(cause, sqlite3.Error) and (fault := sqlite_fault(cause, file)):
            raise fault from error
        if file is None and isinstance(error, OperationalError):
            hint = "Look whether it runs, and whether the database URL in the settings is right."
            reason = str(cause).strip().partition("\n")[0]
            raise DatabaseUnusable(f"The PostgreSQL server cannot be used: {reason}", hint=hint) from error
        raise


def _write_nothing(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        # A number in the file's head that nobody uses: the page that it stands on is written all the same.
        connection.exec_driver_sql("PRAGMA user_version = 0")
    else:
        connection.exec_driver_sql("SELECT txid_current()")  # refused where only reading is possible


def _transact(engine: Engine, file: Path | None, function: Callable[[Connection], T]) -> T:
    with plain_words(file), engine.begin() as connection:
        return function(connection)


def sqlite_engine(file: Path, *, read_only: bool = False, busy_seconds: float = _BUSY_SECONDS) -> Engine:
    """Make an engine that opens `file` as we want it; the execution option `begin` says how transactions begin.

    Raises:
        HomeUnusable: The folder cannot be made or, `read_only`, there is no file.
    """
    if not read_only:
        make_home(file.parent)
    elif not file.exists():
        hint = "`footnote ingest folder PATH --corpus NAME` begins one."
        raise HomeUnusable(f"There is no database in {file.parent} yet.", hint=hint)
    engine = create_engine(
        URL.create("sqlite", database=str(file)),
        creator=lambda: _connect(file, read_only=read_only, busy_seconds=busy_seconds),
        poolclass=QueuePool,
        pool_size=_READERS + 1,
        max_overflow=0,
    )
    event.listen(engine, "begin", _begin)
    return engine


def _connect(file: Path, *, read_only: bool, busy_seconds: float) -> sqlite3.Connection:
    mode = "ro" if read_only else "rwc"
    connection = sqlite3.connect(
        f"{file.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=busy_seconds,
        isolation_level=None,  # we say BEGIN ourselves
        check_same_thread=False,  # the pool lends one to one thread at a time
    )
    try:
        if not read_only:
            connection.execute("PRAGMA journal_mode = WAL")
        # NORMAL would survive a killed process but not a power cut, and what the bot said must have been recorded.
        # It costs 0.2 ms a commit instead of 0.02 on a machine with an SSD.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))


def _postgresql(url: str) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError:
        parsed = URL.create("")
    if parsed.get_backend_name() != "postgresql":
        hint = "Leave it empty for SQLite in the home folder, or give postgresql://user:password@host/name."
        raise DatabaseUnusable("The database URL in the settings names no database that Footnote knows.", hint=hint)
    try:
        return create_engine(parsed, pool_size=_READERS + 1, max_overflow=0, pool_pre_ping=True)
    except ModuleNotFoundError as error:
        hint = 'Install it beside Footnote: pip install "psycopg[binary]>=3.2,<4".'
        raise DatabaseUnusable("PostgreSQL needs the package psycopg, which is not installed.", hint=hint) from error
