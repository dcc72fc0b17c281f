"""The errors of storage, and functions that convert errors of the system, SQLite and the indexes to them.

StorageError                 reported in one line, with what to do
├── HomeLocked               another process owns the home: use it, or stop it
├── HomeUnusable             the home cannot be written: fix the folder or the disk
├── DatabaseUnusable         the database is corrupt, or newer than this code
├── IndexStale               the indexes do not fit the database: reindex
├── EmbeddingUnavailable     the embedder's weights or service cannot be used
├── LeaseLost                another process has taken over the work of this one: stop
└── UnknownCorpus            there is no corpus of this name

`Panic` is separate: a fault that `except Exception` would not have caught.
"""

import asyncio
import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class StorageError(Exception):
    """A failure that a user can fix. `str()` is one plain line; `hint` says what to do."""

    kind = "storage"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class HomeLocked(StorageError):
    kind = "home_locked"


class HomeUnusable(StorageError):
    kind = "home_unusable"


class DatabaseUnusable(StorageError):
    kind = "database_unusable"


class IndexStale(StorageError):
    kind = "index_stale"


class EmbeddingUnavailable(StorageError):
    kind = "embedding_unavailable"


class LeaseLost(StorageError):
    kind = "lease_lost"


class UnknownCorpus(StorageError):
    kind = "unknown_corpus"


class Panic(Exception):
    """A failure that `except Exception` would not catch, such as a panic of a library written in Rust."""


_ENDINGS = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)
"""Not faults: they end a task, a generator or the process."""


@contextmanager
def contain_panics() -> Iterator[None]:
    """Convert failures that are not `Exception`s to `Panic`."""
    try:
        yield
    except (Exception, *_ENDINGS):
        raise
    except BaseException as error:
        raise Panic(f"{type(error).__name__}: {error}") from error


_FREE_SPACE = "Free some space on it and run the command again; stored data is unharmed."
OTHER_HOME = "choose another folder with FOOTNOTE_HOME"
_PERMIT = "Make it writable for the user who runs Footnote"
_MAKE_WRITABLE = f"{_PERMIT}, or {OTHER_HOME}."
_LOOK_AT_DISK = "Check whether the disk is full or failing, then run the command again."
_WAIT = "Try again in a moment; if this lasts, find the program that has it open, such as a backup, and wait for it."
_RESTORE = "Nothing was changed. Restore it from a backup, or move the whole folder away and ingest again."

REINDEX_HINT = "Run `footnote reindex`: it rebuilds the indexes from the database."

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_SCARCE_BYTES = 100_000  # bytes: with less free space, a failed write of an index is blamed on the full disk
_FORBIDDEN = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_NO_FOLDER = frozenset({errno.ENOTDIR, errno.EEXIST})

# The low byte of SQLite's codes is the kind of error, the bytes above it are its origin. Only the origin "shared memory
# cannot be enlarged" distinguishes a full disk from a failing one.
_SQLITE: dict[int, tuple[type[StorageError], str, str]] = {
    sqlite3.SQLITE_FULL: (HomeUnusable, "The disk that holds {file} is full.", _FREE_SPACE),
    sqlite3.SQLITE_IOERR_SHMSIZE: (HomeUnusable, "The disk that holds {file} is full.", _FREE_SPACE),
    sqlite3.SQLITE_READONLY: (HomeUnusable, "{file} cannot be written.", _MAKE_WRITABLE),
    sqlite3.SQLITE_PERM: (HomeUnusable, "{file} cannot be written.", _MAKE_WRITABLE),
    sqlite3.SQLITE_CANTOPEN: (HomeUnusable, "{file} cannot be opened.", _MAKE_WRITABLE),
    sqlite3.SQLITE_IOERR: (HomeUnusable, "The disk failed while {file} was read or written.", _LOOK_AT_DISK),
    sqlite3.SQLITE_BUSY: (HomeUnusable, "Another process keeps {file} locked.", _WAIT),
    sqlite3.SQLITE_LOCKED: (HomeUnusable, "Another process keeps {file} locked.", _WAIT),
    sqlite3.SQLITE_NOTADB: (DatabaseUnusable, "{file} is damaged, or is not a database.", _RESTORE),
    sqlite3.SQLITE_CORRUPT: (DatabaseUnusable, "{file} is damaged.", _RESTORE),
}


def explain_folder_error(error: OSError, folder: Path, *, instead: str = OTHER_HOME) -> HomeUnusable:
    """Explain an error of the operating system about `folder`. `instead` tells the user how to name another folder."""
    if error.errno in _DISK_FULL:
        return HomeUnusable(f"The disk that holds {folder} is full.", hint=_FREE_SPACE)
    if error.errno in _FORBIDDEN:
        return HomeUnusable(f"{folder} cannot be written.", hint=f"{_PERMIT}, or {instead}.")
    if error.errno in _NO_FOLDER:
        hint = f"Move that file away, or {instead}."
        return HomeUnusable(f"{error.filename or folder} is a file, not a folder.", hint=hint)
    if error.errno == errno.ENOENT and not folder.exists():
        return HomeUnusable(f"There is no folder {folder}.", hint=f"Make that folder, or {instead}.")
    return HomeUnusable(f"{folder} cannot be used: {error.strerror or error}.", hint=f"{_PERMIT}, or {instead}.")


def explain_sqlite_error(error: sqlite3.Error, file: Path) -> StorageError | None:
    """Explain SQLite's error about the database `file`; None for a programming error."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    known = _SQLITE.get(code) or _SQLITE.get(code & 0xFF)
    if known is None:
        return None
    kind, sentence, hint = known
    return kind(sentence.format(file=file), hint=hint)


def explain_index_error(cause: str, index: str, folder: Path, *, free: int, writable: bool) -> StorageError:
    """Explain an index's failure, by its message `cause` and the disk: libraries do not report a full disk."""
    if free < _SCARCE_BYTES or "is full" in cause or "No space left" in cause:
        return HomeUnusable(f"The disk that holds {folder} is full.", hint=_FREE_SPACE)
    if not writable or "readonly" in cause or "Read-only" in cause:
        return HomeUnusable(f"{folder} cannot be written.", hint=_MAKE_WRITABLE)
    short = " ".join(cause.split())[:200]
    return IndexStale(f"{index.capitalize()} in {folder} cannot be used ({short}).", hint=REINDEX_HINT)


@contextmanager
def translate_index_errors(index: str, folder: Path, *kinds: type[Exception]) -> Iterator[None]:
    """Convert errors and panics of an index's library to a `StorageError` that says what to do."""
    faults: tuple[type[Exception], ...] = (Panic, *kinds)
    try:
        with contain_panics():
            yield
    except faults as error:
        home = folder if folder.exists() else folder.parent
        free, writable = shutil.disk_usage(home).free, os.access(home, os.W_OK)
        raise explain_index_error(str(error), index, folder, free=free, writable=writable) from error
