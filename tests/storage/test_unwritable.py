"""Tests that writing to an unwritable database fails with one sentence of reason and hint."""

import asyncio
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, event

from storage.database.engine import Database, open_database
from storage.database.queue import Queue
from storage.errors import DatabaseUnusable, HomeUnusable, StorageError
from storage.home.record_database import open_record
from storage.record.admin_choices import ChannelOverrides
from storage.record.audit_log import AuditLog
from storage.types import EntryKind, LogEntry, NewQuestion
from tests.fakes import full_disk

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LONG = "x" * 100_000
WRITES: dict[str, Callable[[Database], Awaitable[object]]] = {
    "put": lambda database: Queue(database).put(question("new", LONG)),
    "claim": lambda database: Queue(database).claim(1, "one", NOON, now=NOON),
    "finish": lambda database: Queue(database).finish(1, "delivered"),
    "append": lambda database: AuditLog(database).append(LogEntry("t", EntryKind.TURN_CLOSED, {"text": LONG})),
    "set": lambda database: ChannelOverrides(database).set("c", "key", LONG, by="me", was=None),
}
GROWING = [name for name in WRITES if name not in {"claim", "finish"}]


def question(key: str, text: str = "Why?") -> NewQuestion:
    return NewQuestion(key, "slack:T1/C1", "slack:T1/C1/1", "slack:T1/U1", key, {"text": text}, "secret-handle")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with many questions in its queue, to copy."""

    async def ask(home: Path) -> None:
        with open_database("", home=home) as database:
            for number in range(100):
                await Queue(database).put(question(f"{number}", "x" * 2_000))

    home = tmp_path_factory.mktemp("asked")
    asyncio.run(ask(home))
    return home


@pytest.fixture
def home(asked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(asked, tmp_path / "home"))


@contextmanager
def read_only(home: Path) -> Iterator[Database]:
    with open_database("", home=home, read_only=True) as database:
        yield database


@contextmanager
def full(home: Path) -> Iterator[Database]:
    """Open a database whose file cannot grow; SQLite reports this like a full disk."""

    def forbid(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")  # this means as many as it has

    with open_database("", home=home) as database:
        event.listen(database._writing, "begin", forbid)
        yield database


@contextmanager
def locked(home: Path) -> Iterator[Database]:
    """Open a database while another connection keeps writing."""
    with ExitStack() as stack:
        database = stack.enter_context(open_database("", home=home, busy_seconds=0.01))
        other = stack.enter_context(closing(sqlite3.connect(home / "footnote.db", isolation_level=None)))
        other.execute("BEGIN IMMEDIATE")
        yield database


@contextmanager
def damaged(home: Path) -> Iterator[Database]:
    """Open a database whose second half is overwritten."""
    file = home / "footnote.db"
    content = file.read_bytes()
    half = len(content) // 2
    file.write_bytes(content[:half] + b"\xff" * (len(content) - half))
    with open_database("", home=home) as database:
        yield database


CASES = [
    *((read_only, write, HomeUnusable, "footnote.db cannot be written.") for write in WRITES),
    *((full, write, HomeUnusable, "is full.") for write in GROWING),
    *((locked, write, HomeUnusable, "Another process keeps") for write in WRITES),
    (damaged, "put", DatabaseUnusable, "is damaged."),
]


@pytest.mark.parametrize(("broken", "write", "kind", "words"), CASES)
async def test_unwritable_storage_is_one_sentence_with_a_hint(
    home: Path, broken: Callable[[Path], Iterator[Database]], write: str, kind: type[StorageError], words: str
) -> None:
    with broken(home) as database, pytest.raises(StorageError) as caught:
        await WRITES[write](database)

    message = str(caught.value)
    assert (type(caught.value), words in message, message.count("\n"), bool(caught.value.hint)) == (kind, True, 0, True)
    assert "secret-handle" not in message + caught.value.hint


@pytest.mark.parametrize("broken", [full, locked])
async def test_stored_data_survives_and_writing_resumes(
    home: Path, broken: Callable[[Path], Iterator[Database]]
) -> None:
    with broken(home) as database, pytest.raises(StorageError):
        await Queue(database).put(question("new", LONG))

    with open_database("", home=home) as database:
        _, new = await Queue(database).put(question("new", LONG))
        assert (new, len(await Queue(database).open("one", NOON))) == (True, 101)


def killed(home: Path, target: Path) -> None:
    """Leave a home as a killed process does, with its last writes only in the write-ahead log."""
    with closing(sqlite3.connect(home / "footnote.db")) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("DELETE FROM questions WHERE ticket > 1")
        connection.commit()
        shutil.copytree(home, target)


@contextmanager
def no_shared_memory(home: Path) -> Iterator[None]:
    """Prevent SQLite from creating files next to the database, as on a read-only medium."""
    shared = home / "footnote.db-shm"
    shared.unlink(missing_ok=True)
    shared.symlink_to("/nowhere/at/all")
    yield


@pytest.mark.parametrize("unwritable", [lambda _: full_disk(0), no_shared_memory])
async def test_record_is_readable_without_write_access(
    home: Path, unwritable: Callable[[Path], AbstractContextManager[None]]
) -> None:
    with unwritable(home), open_record("", home=home) as database:
        assert len(await Queue(database).open("one", NOON)) == 100


async def test_record_of_a_killed_process_is_readable_without_writing(home: Path, tmp_path: Path) -> None:
    killed(home, left := tmp_path / "left")
    with no_shared_memory(left), open_record("", home=left) as database:
        assert len(await Queue(database).open("one", NOON)) == 1
    with no_shared_memory(left), full_disk(0), pytest.raises(HomeUnusable), open_record("", home=left):
        pass


def test_locked_record_is_not_read_past_the_lock(home: Path) -> None:
    with closing(sqlite3.connect(home / "footnote.db", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(HomeUnusable, match="keeps"), open_record("", home=home, busy_seconds=0.01):
            pass
