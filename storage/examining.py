"""Looks at a home and its database without changing either, for the doctor: it also works where nothing else does."""

import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, func, select

from storage.chroma import ChromaServer
from storage.database import Database
from storage.dense import DenseIndex
from storage.errors import DatabaseUnusable, StorageError
from storage.faults import folder_fault, sqlite_fault
from storage.lexical import LexicalIndex
from storage.schema import REVISION, entries
from storage.types import CorpusInfo

_PROBE_BYTES = 65_536
_LOCK_SECONDS = 2.0
_STEPS = 100_000
"""After so many steps of its machine SQLite looks at the clock."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What a database file is like."""

    bytes: int
    revision: Literal["fits", "older", "newer", "empty"]
    faults: tuple[str, ...]
    """What SQLite's check found, the first few."""
    whole: bool
    """Whether the check came to its end."""
    unwritable: StorageError | None
    """Why nothing can be written to it; None where it can."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """Other clocks than this process's own, as far as there are any."""

    server: datetime | None
    """The database server's, now; None for SQLite, which has none."""
    newest: datetime | None
    """When the last entry of the log was written; None where there is none."""


def look_at(file: Path, *, seconds: float, patience: float = _LOCK_SECONDS) -> FileState:
    """Look at SQLite's file; the check of what it holds ends after so many seconds. Blocks.

    Whoever keeps it locked is waited for with so much `patience`, in seconds.

    Raises:
        StorageError: It cannot be read at all, or is no database of ours.
    """
    try:
        with closing(_connected(file, "ro", patience)) as connection:
            revision = _revision(connection)
            faults, whole = _checked(connection, seconds)
    except sqlite3.Error as error:
        raise sqlite_fault(error, file) or DatabaseUnusable(f"{file} cannot be read: {error}.") from error
    return FileState(file.stat().st_size, revision, faults, whole, _unwritable(file, patience))


async def clocks(database: Database) -> Clocks:
    """Read the clocks that a database knows of. Raises `StorageError`."""
    return await database.read(_clocks)


def try_folder(folder: Path) -> float:
    """Write a little into a folder, and return how many seconds its file system's clock is ahead of ours. Blocks.

    Raises:
        HomeUnusable: It cannot be written, or its disk is full.
    """
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as probe:
            before = time.time()
            probe.write(b"\0" * _PROBE_BYTES)
            probe.flush()
            written = Path(probe.name).stat().st_mtime
            # A file system's clock ticks in steps of some milliseconds.
            return min((written - before, written - time.time()), key=abs)
    except OSError as error:
        raise folder_fault(error, folder) from error


def free_bytes(folder: Path) -> int:
    """Return how much is free on the disk that a folder is, or would be, on."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(there).free


def held_bytes(folder: Path) -> int:
    """Return how much lies in a folder. Blocks."""
    return sum(_bytes(path) for path in folder.rglob("*"))


def stale(home: Path, chroma_url: str, embedder: str, corpora: tuple[CorpusInfo, ...]) -> tuple[str, ...]:
    """Return why the indexes do not fit what is listed; nothing where they do. Only a home's owner may ask. Blocks.

    Args:
        home: The home.
        chroma_url: The address of Chroma's server; empty: it is embedded in the home.
        embedder: Who made the vectors.
        corpora: What is listed.

    Raises:
        StorageError: An index cannot be read.
    """
    expected = sum(corpus.passages for corpus in corpora)
    chroma, lexical = home / "chroma", home / "lexical"
    missing = [folder for folder in (lexical, *([] if chroma_url else [chroma])) if not folder.exists()]
    if missing:
        return tuple(f"{folder} is missing." for folder in missing) if expected else ()
    with closing(DenseIndex(ChromaServer(chroma_url) if chroma_url else chroma, embedder=embedder)) as dense:
        reasons = [dense.stale(corpus.name, corpus.passages) for corpus in corpora]
    with closing(LexicalIndex(lexical)) as index:
        count = index.count()
    short = f"The lexical index holds {count:,} of {expected:,} passages." if count < expected else ""
    return tuple(filter(None, (*reasons, short)))


def _bytes(path: Path) -> int:
    try:
        found = path.lstat()
    except OSError:  # it was only passing
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _connected(file: Path, mode: str, patience: float) -> sqlite3.Connection:
    address = f"{file.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, timeout=patience, isolation_level=None)


def _revision(connection: sqlite3.Connection) -> Literal["fits", "older", "newer", "empty"]:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    row = None
    if "alembic_version" in tables:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    if row:
        return "fits" if row[0] == REVISION else "older" if row[0] < REVISION else "newer"
    if tables:
        hint = "Choose another folder with FOOTNOTE_HOME. Nothing was changed."
        raise DatabaseUnusable("The database belongs to another program.", hint=hint)
    return "empty"


def _checked(connection: sqlite3.Connection, seconds: float) -> tuple[tuple[str, ...], bool]:
    with _limited(connection, seconds):
        try:
            rows = connection.execute("PRAGMA quick_check(3)").fetchall()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                return (), False
            raise
    # SQLite puts a heading of its own on lines before what it found.
    said = [" ".join(str(row[0]).split()) for row in rows]
    return tuple(line for line in said if line != "ok"), True


@contextmanager
def _limited(connection: sqlite3.Connection, seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def _unwritable(file: Path, patience: float) -> StorageError | None:
    try:
        with closing(_connected(file, "rw", patience)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        return sqlite_fault(error, file) or DatabaseUnusable(f"{file} cannot be written: {error}.")
    return None


def _clocks(connection: Connection) -> Clocks:
    newest = connection.execute(select(entries.c.at).order_by(entries.c.seq.desc()).limit(1)).scalar()
    if connection.dialect.name == "sqlite":
        return Clocks(None, newest)
    server: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return Clocks(server.astimezone(UTC), newest)
