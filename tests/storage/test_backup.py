"""Tests that a backup has one state of a home in use, and is restored completely or not at all."""

import json
import os
import shutil
import sqlite3
import stat
import tarfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from storage.database.engine import open_database
from storage.errors import DatabaseUnusable, HomeLocked, HomeUnusable, StorageError
from storage.home.backup import MANIFEST, BackupManifest, BackupUnusable, restore_backup, write_backup
from storage.home.home_folder import lock_home
from storage.record.audit_log import AuditLog
from storage.record.proof.record_check import verify_record
from storage.types import EntryKind, LogEntry
from tests.fakes import full_disk

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home of some megabytes with a question that is being answered."""
    home = tmp_path_factory.mktemp("filled") / "home"
    with open_database("", home=home):
        pass
    with closing(sqlite3.connect(home / "footnote.db")) as connection, connection:
        connection.execute("CREATE TABLE filling (number INTEGER PRIMARY KEY, body TEXT)")
        filling = ((number, "x" * 3_000) for number in range(2_000))
        connection.executemany("INSERT INTO filling VALUES (?, ?)", filling)
        for ticket, state in ((1, "done"), (2, "running")):
            row = (ticket, f"key{ticket}", *("",) * 6, state, "", "2026-03-01 11:00:00.000000", "", False, "")
            columns = "ticket, key, channel, conversation, asker, message, body, handle, state, outcome, taken_at"
            sql = f"INSERT INTO questions ({columns}, turn_id, sending, owner) VALUES ({', '.join('?' * len(row))})"
            connection.execute(sql, row)
    return home


@pytest.fixture
def home(filled: Path, tmp_path: Path) -> Path:
    return shutil.copytree(filled, tmp_path / "home")


def back_up(home: Path, target: Path, **changes: Any) -> BackupManifest:
    return write_backup(home, target, **{"version": "1.0", "made": NOW, "progress": lambda *_: None, **changes})


def restored(file: Path, home: Path) -> BackupManifest:
    return restore_backup(file, home, lambda *_: None)


def rows(home: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(home / "footnote.db")) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_concurrent_writes_are_not_in_the_backup(home: Path, tmp_path: Path, name: str) -> None:
    copied = list[int]()
    with closing(sqlite3.connect(home / "footnote.db", isolation_level=None)) as writer:
        # A server has it open; the backup has the state at the copy's first read.
        def write(doing: str, done: int, _: int) -> None:
            if doing == "copying":
                copied.append(done)
                writer.execute("DELETE FROM filling WHERE number = ?", (len(copied),))
                writer.execute("INSERT INTO filling (body) VALUES (?)", ("later",))

        made = back_up(home, tmp_path / name, progress=write)
    assert len(copied) > 1
    assert copied == sorted(copied)
    assert restored(tmp_path / name, tmp_path / "other") == made
    assert rows(tmp_path / "other", "SELECT count(*), min(number), max(number) FROM filling") == [(2_000, 0, 1_999)]
    assert rows(home, "SELECT count(*) FROM filling WHERE body = 'later'") == [(len(copied),)]


async def test_restored_record_verifies_and_open_questions_are_marked_as_sending(home: Path, tmp_path: Path) -> None:
    with open_database("", home=home) as database:
        await AuditLog(database).append(LogEntry("t1", EntryKind.TURN_OPENED, {"question": "?"}))
        made = back_up(home, tmp_path / "a.tar", settings=b"[model]\n")
    assert made.counts["entries"] == made.counts["turns"] == 1
    assert stat.S_IMODE((tmp_path / "a.tar").stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["a.tar", "home"]  # noqa: PTH208
    other = tmp_path / "other"
    restored(tmp_path / "a.tar", other)
    assert (other / "footnote.toml.restored").read_bytes() == b"[model]\n"
    assert rows(other, "SELECT ticket FROM questions WHERE sending") == [(2,)]
    with open_database("", home=other) as database:
        assert (await verify_record(database, [])).entries == 1


def test_old_write_ahead_log_is_not_mixed_with_the_restored_database(home: Path, tmp_path: Path) -> None:
    back_up(home, tmp_path / "a.tar")
    with closing(sqlite3.connect(home / "footnote.db", isolation_level=None)) as connection:
        connection.execute("DELETE FROM filling")
        (home / "footnote.db").unlink()
        restored(tmp_path / "a.tar", home)
        assert rows(home, "SELECT count(*) FROM filling") == [(2_000,)]


def change_manifest(file: Path, **changes: Any) -> None:
    with tarfile.open(file) as archive:
        members = {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
    members[MANIFEST] = json.dumps(json.loads(members[MANIFEST]) | changes).encode()
    loose = file.parent / "loose"
    loose.mkdir()
    with tarfile.open(file, "w") as archive:
        for name, content in members.items():
            (loose / name).write_bytes(content)
            archive.add(loose / name, name)


def flip(file: Path, at: int) -> None:
    whole = bytearray(file.read_bytes())
    whole[at] ^= 0xFF
    file.write_bytes(whole)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda file: flip(file, 3_000_000), "is damaged"),
        (lambda file: flip(file, 100), "is damaged"),
        (lambda file: flip(file, 600), "is damaged"),
        (lambda file: os.truncate(file, 2_000_000), "is damaged"),
        (lambda file: file.write_bytes(b"no tar"), "is damaged"),
        (lambda file: file.write_bytes(b""), "is damaged"),
        (lambda file: file.unlink(), "There is no file"),
        (lambda file: change_manifest(file, schema="9999"), "a newer Footnote"),
        (lambda file: change_manifest(file, format=2), "a newer Footnote"),
        (lambda file: change_manifest(file, parts=[]), "is damaged"),
    ],
)
def test_damaged_or_newer_backup_leaves_no_files(home: Path, tmp_path: Path, damage: Any, said: str) -> None:
    back_up(home, tmp_path / "a.tar")
    damage(tmp_path / "a.tar")
    with pytest.raises(BackupUnusable, match=said):
        restored(tmp_path / "a.tar", tmp_path / "other")
    assert not list((tmp_path / "other").glob("footnote*"))


def test_existing_files_are_not_overwritten(home: Path, tmp_path: Path) -> None:
    back_up(home, tmp_path / "a.tar")
    with pytest.raises(HomeUnusable, match="is already there"):
        back_up(home, tmp_path / "a.tar")
    with pytest.raises(HomeUnusable, match="has a database already"):
        restored(tmp_path / "a.tar", home)
    back_up(home, tmp_path / "b.tar", settings=b"[model]")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "footnote.toml.restored").write_text("of an earlier one")
    with pytest.raises(HomeUnusable, match="restored is already there"):
        restored(tmp_path / "b.tar", tmp_path / "new")
    assert (tmp_path / "new" / "footnote.toml.restored").read_text() == "of an earlier one"
    with pytest.raises(HomeUnusable) as caught:
        restored(tmp_path / "a.tar", tmp_path / "a.tar" / "home")
    assert caught.value.hint == "Move that file away, or restore into another folder with --home."
    with lock_home(tmp_path / "other"), pytest.raises(HomeLocked):
        restored(tmp_path / "a.tar", tmp_path / "other")


def test_failed_write_leaves_no_files(home: Path, tmp_path: Path) -> None:
    back_up(home, tmp_path / "a.tar")
    for size in (1_000_000, (home / "footnote.db").stat().st_size):
        with full_disk(size), pytest.raises(StorageError):
            back_up(home, tmp_path / "b.tar")
    with full_disk(1_000_000), pytest.raises(StorageError):
        restored(tmp_path / "a.tar", tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar", "home", "other"]
    assert not list((tmp_path / "other").glob("footnote*"))


def test_damaged_or_missing_database_is_not_backed_up(home: Path, tmp_path: Path) -> None:
    with pytest.raises(HomeUnusable, match="no database"):
        back_up(tmp_path / "empty", tmp_path / "a.tar")
    file = home / "footnote.db"
    whole = bytearray(file.read_bytes())
    whole[4096 * 1000 : 4096 * 1010] = bytes(4096 * 10)
    file.write_bytes(whole)
    with pytest.raises(DatabaseUnusable, match="is damaged"):
        back_up(home, tmp_path / "a.tar")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]
