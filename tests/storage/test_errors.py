"""Tests of how errors of the disk are reported."""

import asyncio
import errno
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from storage.errors import (
    HomeUnusable,
    IndexStale,
    Panic,
    StorageError,
    contain_panics,
    explain_folder_error,
    explain_index_error,
    explain_sqlite_error,
)

HOME = Path("/nowhere/footnote")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "The disk that holds /nowhere/footnote is full."),
        (errno.EDQUOT, "The disk that holds /nowhere/footnote is full."),
        (errno.EROFS, "/nowhere/footnote cannot be written."),
        (errno.EACCES, "/nowhere/footnote cannot be written."),
        (errno.ENOTDIR, "/nowhere is a file, not a folder."),
        (errno.ENOENT, "There is no folder /nowhere/footnote."),
        (errno.EIO, "/nowhere/footnote cannot be used: Input/output error."),
    ],
)
def test_system_error_has_a_reason_and_a_hint(number: int, words: str) -> None:
    fault = explain_folder_error(OSError(number, "Input/output error", "/nowhere"), HOME)

    assert str(fault) == words
    assert fault.hint


def test_locked_database_is_reported_as_locked(tmp_path: Path) -> None:
    file = tmp_path / "it.db"
    with closing(sqlite3.connect(file, timeout=0)) as one, closing(sqlite3.connect(file, timeout=0)) as other:
        one.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError) as caught:
            other.execute("BEGIN IMMEDIATE")

    fault = explain_sqlite_error(caught.value, file)
    assert isinstance(fault, HomeUnusable)
    assert str(fault) == f"Another process keeps {file} locked."


def test_folder_in_place_of_the_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError) as caught:
        sqlite3.connect(tmp_path)

    fault = explain_sqlite_error(caught.value, tmp_path)
    assert isinstance(fault, HomeUnusable)
    assert "cannot be opened" in str(fault)


@pytest.mark.parametrize("statement", ["NONSENSE", "SELECT * FROM nowhere"])
def test_bug_is_not_reported_as_a_known_error(statement: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(sqlite3.Error) as caught:
        connection.execute(statement)

    assert explain_sqlite_error(caught.value, HOME) is None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (sqlite3.SQLITE_FULL, "is full"),
        (sqlite3.SQLITE_IOERR_SHMSIZE, "is full"),
        (sqlite3.SQLITE_IOERR_WRITE, "The disk failed"),
        (sqlite3.SQLITE_READONLY_DBMOVED, "cannot be written"),
        (sqlite3.SQLITE_CORRUPT_INDEX, "is damaged"),
    ],
)
def test_sqlite_error_is_explained_by_its_kind(code: int, words: str) -> None:
    error = sqlite3.OperationalError("said by SQLite")
    error.sqlite_errorcode = code

    assert words in str(explain_sqlite_error(error, HOME))


@pytest.mark.parametrize(
    ("cause", "free", "writable", "kind", "words"),
    [
        ("Error in compaction", 4_096, True, HomeUnusable, "is full"),
        ("No space left on device (os error 28)", 10**9, True, HomeUnusable, "is full"),
        ("attempt to write a readonly database", 10**9, True, HomeUnusable, "cannot be written"),
        ("Io error", 10**9, False, HomeUnusable, "cannot be written"),
        ("file is not a database", 10**9, True, IndexStale, "The dense index"),
    ],
)
def test_failing_index_is_explained_by_the_disk(
    cause: str, free: int, *, writable: bool, kind: type[StorageError], words: str
) -> None:
    fault = explain_index_error(cause, "the dense index", Path("/home/chroma"), free=free, writable=writable)

    assert type(fault) is kind
    assert words in str(fault)
    assert fault.hint


class PanicException(BaseException):
    """The exception that libraries written in Rust raise on a panic."""


@pytest.mark.parametrize(
    ("raised", "caught"),
    [
        *((error, error) for error in (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)),
        *((error, error) for error in (ValueError, MemoryError, RecursionError)),
        *((error, Panic) for error in (PanicException, BaseException)),
    ],
)
def test_only_non_exceptions_become_panics(raised: type[BaseException], caught: type[BaseException]) -> None:
    with pytest.raises(caught) as found, contain_panics():
        raise raised

    assert type(found.value) is caught
