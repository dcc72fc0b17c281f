"""Tests of opening a database of release 0.1.0, and of refusing databases that cannot be migrated."""

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect

from storage.database.engine import Database, open_database
from storage.database.schema import REVISION
from storage.errors import DatabaseUnusable
from storage.manifest import Manifest
from storage.record.admin_choices import ChannelOverrides
from storage.record.audit_log import AuditLog
from storage.record.proof.record_check import verify_record
from storage.types import Checkpoint, CorpusInfo, DocumentRef, EntryKind, LogEntry, PassageKind
from tests.storage.release_0_1_0 import MOMENT, list_entries, make_old_home
from tests.storage.stores import listed_passages


def read(file: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def list_tables(file: Path) -> set[str]:
    return {name for (name,) in read(file, "SELECT name FROM sqlite_master WHERE type = 'table'")}


async def describe_tables(database: Database) -> Mapping[str, Any]:
    def describe(connection: Any) -> Mapping[str, Any]:
        tables = inspect(connection)
        return {
            name: (
                Counter(
                    (column["name"], str(column["type"]), column["nullable"]) for column in tables.get_columns(name)
                ),
                tables.get_pk_constraint(name)["constrained_columns"],
                sorted((index["name"], index["column_names"], index["unique"]) for index in tables.get_indexes(name)),
                sorted(key["constrained_columns"] for key in tables.get_foreign_keys(name)),
            )
            for name in tables.get_table_names()
        }

    return await database.read(describe)


async def test_old_home_keeps_its_documents(tmp_path: Path) -> None:
    file = make_old_home(tmp_path)

    with open_database("", home=tmp_path) as database:
        manifest = Manifest(database)
        document = await manifest.document("c", "k")
        passages = await listed_passages(manifest, "c", "k")
        assert document
        assert (document.title, document.date, document.aliases) == ("Title", MOMENT, ("Other", "Names"))
        assert await manifest.fingerprints("c") == {"k": "print", "none": "blank"}
        assert [(passage.text, passage.section, passage.kind) for passage in passages] == [
            ("A text.", "", PassageKind.PROSE),
            ("Second text.", "S", PassageKind.TABLE),
        ]
        assert await manifest.checkpoint("c") == Checkpoint("mark", "digest", "edition")
        assert await manifest.corpora() == (CorpusInfo("c", 2, 2, MOMENT, 1, "edition", None, 1),)
        assert [found.key for found in await manifest.find("https://x.example/k/")] == ["k"]
        assert await manifest.all_forgotten() == (DocumentRef("c", "gone", "Gone", "https://x.example/gone"),)
        assert await ChannelOverrides(database).of("slack:T1/C1") == {"effort": "quick"}

    assert read(file, "SELECT key, state FROM questions") == [("q", "waiting")]
    assert read(file.with_name("footnote.db.before-0005"), "SELECT text FROM passages WHERE id = 'id0'") == [
        ("Removed text.",)
    ]


async def test_old_record_is_found_and_verified(tmp_path: Path) -> None:
    odd = [("open", "turn_opened", "{}"), ("bare", "turn_closed", "{}")]
    make_old_home(tmp_path, list_entries(400) + odd, first=3)

    with open_database("", home=tmp_path) as database:
        log = AuditLog(database)
        assert len(await log.turns(9999)) == 401
        assert (await log.turn("t1"))[0].body["question"] == "Größe?"
        (begun,) = await log.turn("record")
        assert (begun.kind, begun.body) == (EntryKind.TREE_BEGUN, {"entries": 1202, "gaps": [[1, 2]]})
        assert [finding.turn_id for finding in (await verify_record(database)).findings] == ["bare"]


async def test_old_home_has_the_tables_of_a_new_one(tmp_path: Path) -> None:
    entries = list_entries(20)
    make_old_home(tmp_path / "old", entries)

    with open_database("", home=tmp_path / "old") as old, open_database("", home=tmp_path / "new") as new:
        assert await describe_tables(old) == await describe_tables(new)
        await AuditLog(new, clock=lambda: MOMENT).append(
            *(LogEntry(turn_id, EntryKind(kind), json.loads(body)) for turn_id, kind, body in entries)
        )
        for query in ("SELECT * FROM turns ORDER BY 1", "SELECT * FROM turn_words ORDER BY 1"):
            rows = [await each.read(lambda it, query=query: it.exec_driver_sql(query).all()) for each in (old, new)]
            assert (len(rows[0]), rows[0]) == (20, rows[1])
    triggers = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
    assert read(tmp_path / "old" / "footnote.db", triggers) == read(tmp_path / "new" / "footnote.db", triggers)


def test_failed_migration_leaves_the_database_unchanged(tmp_path: Path) -> None:
    file = make_old_home(tmp_path)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE passages SET kind = 'unknown'")
    before = list_tables(file)

    with pytest.raises(ValueError, match="unknown"), open_database("", home=tmp_path):
        pass

    assert (list_tables(file), read(file, "SELECT * FROM alembic_version")) == (before, [("0005",)])


def test_reading_does_not_migrate_an_old_home(tmp_path: Path) -> None:
    file = make_old_home(tmp_path)

    with pytest.raises(DatabaseUnusable, match="another version"), open_database("", home=tmp_path, read_only=True):
        pass

    assert read(file, "SELECT * FROM alembic_version") == [("0005",)]


@pytest.mark.parametrize(
    ("revision", "message", "hint"),
    [
        *((f"{number:04}", "unreleased Footnote", "commit 769daaf2") for number in (1, 2, 3, 4, 6, 7, 8, 9)),
        ("of tomorrow", "newer Footnote", "Upgrade"),
    ],
)
def test_other_revisions_are_refused_and_unchanged(tmp_path: Path, revision: str, message: str, hint: str) -> None:
    with open_database("", home=tmp_path):
        pass
    file = tmp_path / "footnote.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    before = file.read_bytes()

    with pytest.raises(DatabaseUnusable, match=message) as caught, open_database("", home=tmp_path):
        pass

    assert hint in caught.value.hint
    assert (file.read_bytes(), list(tmp_path.glob("footnote.db*"))) == (before, [file])


def test_new_home_has_the_current_revision(tmp_path: Path) -> None:
    with open_database("", home=tmp_path):
        pass

    assert read(tmp_path / "footnote.db", "SELECT version_num FROM alembic_version") == [(REVISION,)] == [("0012",)]


def test_database_of_another_program_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "footnote.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE theirs (name TEXT)")

    with pytest.raises(DatabaseUnusable, match="another program"), open_database("", home=tmp_path):
        pass

    assert {"theirs"} == list_tables(file)
