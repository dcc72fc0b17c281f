"""Tests of opening a database, its writing and reading threads, and its reported errors."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, event, insert, select

from storage.database.engine import Database, open_database
from storage.database.queue import Queue
from storage.database.schema import corpora
from storage.database.worker_threads import WritePriority
from storage.errors import DatabaseUnusable, HomeUnusable
from storage.manifest import Manifest
from storage.record.audit_log import AuditLog
from storage.types import EntryKind, LogEntry, NewQuestion


def add(name: str) -> Callable[[Connection], None]:
    def write(connection: Connection) -> None:
        connection.execute(insert(corpora), {"name": name})

    return write


def names(connection: Connection) -> set[str]:
    return set(connection.execute(select(corpora.c.name)).scalars())


async def test_cached_query_is_repeated_after_a_write(database: Database) -> None:
    query, read = select(corpora.c.name), list[str]()
    event.listen(Engine, "before_cursor_execute", note := lambda *given: read.append(given[2]))

    async def names_kept() -> list[str]:
        return [row.name for row in await database.read_kept(query, [corpora])]

    first = [await names_kept(), await names_kept()]
    await AuditLog(database).append(LogEntry("t", EntryKind.TURN_OPENED, {}))
    second = await names_kept()
    count_before = sum("FROM corpora" in statement for statement in read)
    await database.write(add("a"))
    third = await names_kept()
    event.remove(Engine, "before_cursor_execute", note)

    assert (first, second, third) == ([[], []], [], ["a"])
    assert (count_before, sum("FROM corpora" in statement for statement in read)) == (1, 2)


async def test_query_during_a_write_is_repeated_after_it(database: Database) -> None:
    written, read = threading.Event(), threading.Event()

    def add_slowly(connection: Connection) -> None:
        add("a")(connection)
        written.set()
        assert read.wait(60)

    async def names_kept() -> list[str]:
        return [row.name for row in await database.read_kept(select(corpora.c.name), [corpora])]

    writing = asyncio.create_task(database.write(add_slowly))
    assert await asyncio.to_thread(written.wait, 10)
    before = await names_kept()
    read.set()
    await writing

    assert (before, await names_kept()) == ([], ["a"])


async def test_written_rows_survive_reopening(tmp_path: Path) -> None:
    with open_database("", home=tmp_path) as database:
        await database.write(add("a"))

    with open_database("", home=tmp_path) as database:
        assert {"a"} == await database.read(names)


async def test_failed_write_is_rolled_back(database: Database) -> None:
    def half(connection: Connection) -> None:
        add("a")(connection)
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        await database.write(half)

    assert set() == await database.read(names)


async def test_writes_run_in_one_named_thread_and_reads_in_others(database: Database) -> None:
    def here(_connection: Connection) -> str:
        return threading.current_thread().name

    writers = {await database.write(here) for _ in range(3)}
    reader = await database.read(here)

    assert ({"database-write_0"}, True) == (writers, reader.startswith("database-read"))


async def test_read_during_a_write_sees_the_state_before_it(database: Database) -> None:
    written, go_on = threading.Event(), threading.Event()

    def slowly(connection: Connection) -> None:
        add("a")(connection)
        written.set()
        go_on.wait(60)

    writing = asyncio.create_task(database.write(slowly))
    await asyncio.to_thread(written.wait, 10)
    before = await database.read(names)
    go_on.set()
    await writing

    assert (set(), {"a"}) == (before, await database.read(names))


async def test_questions_are_written_before_records_and_records_before_ingests(database: Database) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hold(_connection: Connection) -> None:
        begun.set()
        go_on.wait(60)

    log, queue, manifest = AuditLog(database), Queue(database), Manifest(database)
    holding = asyncio.create_task(database.write(hold, WritePriority.BATCH))
    await asyncio.to_thread(begun.wait, 10)
    waiting = {
        "ingest": asyncio.create_task(manifest.finish("a", datetime.now(UTC))),
        "record": asyncio.create_task(log.append(LogEntry("t", EntryKind.STEP, {}))),
        "question": asyncio.create_task(queue.put(NewQuestion("k", "c", "v", "u", "m", {}))),
    }
    done: list[str] = []
    for name, task in waiting.items():
        task.add_done_callback(lambda _, name=name: done.append(name))
    await asyncio.sleep(0)  # all have called
    go_on.set()
    await asyncio.gather(holding, *waiting.values())

    assert done == ["question", "record", "ingest"]


async def test_two_writers_of_one_file_wait_for_each_other(tmp_path: Path) -> None:
    def count_up(connection: Connection) -> None:
        add(f"c{len(names(connection))}")(connection)

    with open_database("", home=tmp_path) as one, open_database("", home=tmp_path) as other:
        await asyncio.gather(*(database.write(count_up) for database in (one, other) for _ in range(10)))

        assert {f"c{number}" for number in range(20)} == await one.read(names)


async def test_full_disk_is_reported_and_loses_nothing(database: Database) -> None:
    def fill(connection: Connection) -> None:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        for number in range(1000):
            add(f"{number}{'x' * 1000}")(connection)

    await database.write(add("a"))
    with pytest.raises(HomeUnusable, match="is full") as caught:
        await database.write(fill)

    assert ({"a"}, True) == (await database.read(names), "space" in caught.value.hint)


async def test_database_survives_its_closing_by_another_process(database: Database, tmp_path: Path) -> None:
    script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); print(*c.execute('SELECT count(*) FROM corpora'))"
    file = tmp_path / "footnote.db"

    def count_elsewhere() -> str:
        done = subprocess.run([sys.executable, "-c", f"{script}; c.close()", file], capture_output=True, check=True)
        return done.stdout.decode().strip()

    await asyncio.gather(database.write(add("a")), *(database.read(names) for _ in range(4)))
    before = count_elsewhere()
    await database.write(add("b"))
    assert (before, count_elsewhere()) == ("(1,)", "(2,)")


async def test_read_only_database_reads_beside_a_writer_and_refuses_writes(tmp_path: Path) -> None:
    with open_database("", home=tmp_path) as writer, open_database("", home=tmp_path, read_only=True) as reader:
        await writer.write(add("a"))

        assert {"a"} == await reader.read(names)
        with pytest.raises(HomeUnusable, match="cannot be written"):
            await reader.write(add("b"))


def test_read_only_opening_creates_no_database(tmp_path: Path) -> None:
    home = tmp_path / "none"

    with pytest.raises(HomeUnusable, match="no database") as caught, open_database("", home=home, read_only=True):
        pass

    assert ("ingest" in caught.value.hint, False) == (True, home.exists())


@pytest.mark.parametrize("content", [b"not a database at all" * 500, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_damaged_file_is_refused_and_unchanged(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "footnote.db"
    file.write_bytes(content)

    with pytest.raises(DatabaseUnusable, match="damaged") as caught, open_database("", home=tmp_path):
        pass

    assert (content, True) == (file.read_bytes(), "backup" in caught.value.hint)


async def test_truncated_file_is_reported_as_damaged(tmp_path: Path) -> None:
    with open_database("", home=tmp_path) as database:
        await database.write(lambda it: [add(f"{number}{'x' * 2000}")(it) for number in range(500)])
    file = tmp_path / "footnote.db"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])

    with pytest.raises(DatabaseUnusable, match="damaged"), open_database("", home=tmp_path) as database:
        await database.read(names)


@pytest.mark.skipif(find_spec("psycopg") is not None, reason="psycopg is installed")
def test_missing_postgresql_driver_is_reported_with_a_hint(tmp_path: Path) -> None:
    url = "postgresql://me:secret@host/name"

    with pytest.raises(DatabaseUnusable, match="psycopg") as caught, open_database(url, home=tmp_path):
        pass

    assert ("pip install" in caught.value.hint, False) == (True, "secret" in str(caught.value) + caught.value.hint)


@pytest.mark.parametrize("url", ["mysql://me:secret@host/name", "nonsense secret", "sqlite:///secret.db"])
def test_url_of_another_database_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(DatabaseUnusable, match="Footnote supports") as caught, open_database(url, home=tmp_path):
        pass

    assert "secret" not in str(caught.value) + caught.value.hint
