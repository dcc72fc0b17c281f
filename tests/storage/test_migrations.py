"""Bringing an older database to a newer code, and refusing the reverse."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import OperationalError

from storage.database.engine import open_database, sqlite_engine
from storage.database.migrations.migration_runner import MIGRATION_SCRIPTS, migrate_database
from storage.database.schema import REVISION, metadata
from storage.errors import DatabaseUnusable
from storage.manifest import Manifest
from storage.record.audit_log import AuditLog
from storage.record.spending import Spending
from storage.types import Checkpoint, CorpusInfo, DocumentRef, EntryKind, LogEntry, SpendingTotal
from tests.storage.stores import listed_passages

LATER = """
from alembic import op
revision = "later"
down_revision = {before!r}

def upgrade():
    op.execute("CREATE TABLE later (name TEXT)")
    {then}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database of today with one row."""
    with open_database("", home=tmp_path):
        pass
    change(tmp_path / "footnote.db", "INSERT INTO corpora (name) VALUES ('a')")
    return tmp_path / "footnote.db"


@pytest.fixture
def engine(file: Path) -> Iterator[Engine]:
    """An engine on it."""
    engine = sqlite_engine(file)
    yield engine
    engine.dispose()


@pytest.fixture
def scripts_of_tomorrow(tmp_path: Path) -> Callable[[str], Path]:
    """Our migrations and one more, which ends with the given statement."""

    def make(then: str = "") -> Path:
        folder = shutil.copytree(MIGRATION_SCRIPTS, tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "versions" / "r9999_later.py").write_text(LATER.format(before=REVISION, then=then))
        return folder

    return make


def change(file: Path, statement: str) -> None:
    """Change a database behind our back."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def tables(file: Path) -> set[str]:
    """Read which tables a database has."""
    with closing(sqlite3.connect(file)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def compare_tables(connection: Connection) -> list[Any]:
    """Compare the tables with those that the code knows; those of FTS5 are its own."""
    ours = {"include_object": lambda _one, name, kind, *_: kind != "table" or not name.startswith("turn_words")}
    return compare_metadata(MigrationContext.configure(connection, opts=ours), metadata)


def test_the_revision_that_the_code_names_is_the_last_migration() -> None:
    """Opening compares with the name alone."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATION_SCRIPTS))

    assert ScriptDirectory.from_config(config).get_current_head() == REVISION


def test_an_older_database_is_copied_and_then_migrated(
    file: Path, engine: Engine, scripts_of_tomorrow: Callable[[str], Path]
) -> None:
    """The copy has what the database had."""
    migrate_database(engine, file, head="later", scripts=scripts_of_tomorrow(""))

    copy = file.with_name(f"footnote.db.before-{REVISION}")
    assert ("later" in tables(file), "later" in tables(copy)) == (True, False)
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT name FROM corpora").fetchall() == [("a",)]


def test_a_migration_that_fails_leaves_the_database_as_it_was(
    file: Path, engine: Engine, scripts_of_tomorrow: Callable[[str], Path]
) -> None:
    """It is one transaction, and the next attempt finds what this one found."""
    scripts = scripts_of_tomorrow('op.execute("NONSENSE")')
    before = tables(file)

    with pytest.raises(OperationalError):
        migrate_database(engine, file, head="later", scripts=scripts)

    assert before == tables(file)
    migrate_database(engine, file)


def test_an_older_database_is_not_migrated_for_reading(
    file: Path, engine: Engine, scripts_of_tomorrow: Callable[[str], Path]
) -> None:
    """Its owner may be running."""
    with pytest.raises(DatabaseUnusable, match="another version"):
        migrate_database(engine, file, read_only=True, head="later", scripts=scripts_of_tomorrow(""))

    assert "later" not in tables(file)


def test_a_newer_database_is_refused_and_left_as_it_is(file: Path) -> None:
    """This code cannot know what is in it."""
    change(file, "UPDATE alembic_version SET version_num = 'of tomorrow'")
    before = file.read_bytes()

    with pytest.raises(DatabaseUnusable, match="newer Footnote") as caught, open_database("", home=file.parent):
        pass

    assert (before, True) == (file.read_bytes(), "Upgrade" in caught.value.hint)
    assert [file] == list(file.parent.glob("footnote.db*"))


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    """It has tables, and none of ours."""
    change(tmp_path / "footnote.db", "CREATE TABLE theirs (name TEXT)")

    with pytest.raises(DatabaseUnusable, match="another program"), open_database("", home=tmp_path):
        pass

    assert {"theirs"} == tables(tmp_path / "footnote.db")


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def first_revision(file: Path, entries: list[tuple[str, str, str]]) -> None:
    """Make a database as the first release did, with a log of (turn, kind, body)."""
    engine = sqlite_engine(file)
    try:
        migrate_database(engine, file, head="0001")
    finally:
        engine.dispose()
    statement = "INSERT INTO entries (turn_id, kind, at, body) VALUES (?, ?, '2026-03-01 12:00:00.000000', ?)"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executemany(statement, entries)


def turn(number: int) -> Iterator[tuple[str, str, str]]:
    """Make the entries of a turn as the first release wrote them; of an odd one by a model, for money."""
    asker = {"platform": "slack", "kind": "channel", "workspace": "T1", "channel": "C1", "user": f"U{number % 3}"}
    usage: dict[str, Any] = {"llm_calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost": None}
    paid = {"llm_calls": 2, "prompt_tokens": 10, "completion_tokens": 1, "cost": 0.5}
    yield f"t{number}", "turn_opened", json.dumps({"asker": asker, "question": "Größe?"})
    yield f"t{number}", "step", json.dumps({"stage": "search"})
    yield f"t{number}", "turn_closed", json.dumps({"usage": paid if number % 2 else usage})


async def test_what_was_spent_before_there_were_sums_is_counted_from_the_log(tmp_path: Path) -> None:
    """More turns than one page, one that never ended, and one of which little is known; the log stays as it was."""
    known = [entry for number in range(1200) for entry in turn(number)]
    odd = [("open", "turn_opened", "{}"), ("bare", "turn_closed", "{}")]
    first_revision(tmp_path / "footnote.db", known + odd)

    with open_database("", home=tmp_path) as database:
        spending = Spending(database)
        assert await spending.total(since=NOON) == SpendingTotal(1201, 6600, 300.0)
        assert await spending.total(since=NOON, platform_user="slack:T1/U0") == SpendingTotal(400, 2200, 100.0)
        assert (await spending.total(since=NOON, channel="slack:T1/C1")).turns == 1200
        assert len(await AuditLog(database).turns(9999)) == 1201
        assert (await AuditLog(database).turn("t1"))[0].body["question"] == "Größe?"


async def test_a_migrated_database_counts_as_one_that_always_had_sums(tmp_path: Path) -> None:
    """The migration and the code of today agree."""
    entries = [entry for number in range(20) for entry in turn(number)]
    first_revision(tmp_path / "old.db", entries)
    (tmp_path / "old.db").rename(tmp_path / "footnote.db")

    with open_database("", home=tmp_path) as old, open_database("", home=tmp_path / "new") as new:
        await AuditLog(new).append(
            *(LogEntry(turn_id, EntryKind(kind), json.loads(body), at=NOON) for turn_id, kind, body in entries)
        )
        for table in ("spending", "turns", "turn_words"):
            every = f"SELECT * FROM {table} ORDER BY 1"
            rows = [
                await database.read(lambda it, every=every: it.exec_driver_sql(every).all()) for database in (old, new)
            ]
            assert (len(rows[0]), rows[0]) == (20, rows[1])


def third_revision(file: Path) -> None:
    """Make a database as it was before refreshes were on record, with something in it."""
    engine = sqlite_engine(file)
    try:
        migrate_database(engine, file, head="0003")
    finally:
        engine.dispose()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("INSERT INTO corpora VALUES ('c', '2026-03-01 12:00:00.000000', 1)")
        row = ("c", "k", "Title", "https://x.example/k", "7", None, "en", "print", "", 0)
        connection.execute("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        connection.execute("INSERT INTO passages VALUES ('id', 'c', 'k', '', 'A text.', 0, 'hash', 'prose', 1)")
        connection.execute("INSERT INTO failures VALUES ('c', 'bad.pdf', 'is encrypted')")


async def test_what_was_indexed_before_refreshes_were_on_record_stays(tmp_path: Path) -> None:
    """No mark is known of it, so that its source is listed whole once more; nothing is read again."""
    third_revision(tmp_path / "footnote.db")

    with open_database("", home=tmp_path) as database:
        manifest = Manifest(database)
        assert await manifest.fingerprints("c") == {"k": "print"}
        assert [one.text for one in await listed_passages(manifest, "c", "k")] == ["A text."]
        assert await manifest.checkpoint("c") == Checkpoint()
        assert await manifest.corpora() == (CorpusInfo("c", 1, 1, NOON, 1, "", None, 0),)
        assert [one.key for one in await manifest.find("https://x.example/k/")] == ["k"]
        assert await database.read(compare_tables) == []
    assert (tmp_path / "footnote.db.before-0003").exists()


async def test_what_was_forgotten_before_names_were_kept_is_known_by_its_key(tmp_path: Path) -> None:
    """Nothing is made up of what it was called."""
    file = tmp_path / "footnote.db"
    engine = sqlite_engine(file)
    try:
        migrate_database(engine, file, head="0004")
    finally:
        engine.dispose()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("INSERT INTO corpora (name) VALUES ('c')")
        connection.execute("INSERT INTO forgotten VALUES ('c', 'k')")

    with open_database("", home=tmp_path) as database:
        manifest = Manifest(database)
        assert await manifest.all_forgotten() == (DocumentRef("c", "k", "", ""),)
        assert await manifest.find_forgotten("k") == (DocumentRef("c", "k", "", ""),)
        (there,) = await manifest.corpora()
        assert there.forgotten == 1
