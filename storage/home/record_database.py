"""Open a home's database to read its record, also on a read-only medium or a full disk."""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from storage.database.engine import BUSY_SECONDS, Database, open_database
from storage.errors import HomeUnusable


@contextmanager
def open_record(url: str, *, home: Path, busy_seconds: float = BUSY_SECONDS) -> Iterator[Database]:
    """Open the database to read its record. Raises as `open_database` does. Blocks.

    Even for reading, SQLite writes files next to its own. If it cannot, the database is opened as immutable, provided
    that its write-ahead log is empty. Otherwise both files are copied to the folder for temporary files.
    """
    file = home / "footnote.db"
    log = file.with_name(f"{file.name}-wal")
    with ExitStack() as stack:
        try:
            database = stack.enter_context(open_database(url, home=home, busy_seconds=busy_seconds))
        except HomeUnusable as error:
            if url or not file.exists() or _is_locked(error):
                raise
            try:
                database = stack.enter_context(open_database("", home=home, read_only=True))
            except HomeUnusable:
                if not (log.is_file() and log.stat().st_size):
                    database = stack.enter_context(open_database("", home=home, read_only=True, immutable=True))
                else:
                    database = stack.enter_context(_open_copy(file, log, error))
        yield database


def _is_locked(fault: HomeUnusable) -> bool:
    """Return whether an error says that another process locks the file, and so may be changing it."""
    cause = fault.__cause__.orig if isinstance(fault.__cause__, DBAPIError) else fault.__cause__
    return getattr(cause, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


@contextmanager
def _open_copy(file: Path, log: Path, fault: HomeUnusable) -> Iterator[Database]:
    """Open a copy of SQLite's file. Raises `fault` if there is no room for the copy."""
    with tempfile.TemporaryDirectory(prefix="footnote-") as folder:
        try:
            for path in (file, log):
                shutil.copyfile(path, Path(folder, path.name))
        except OSError:
            raise fault from None
        with open_database("", home=Path(folder)) as database:
            yield database
