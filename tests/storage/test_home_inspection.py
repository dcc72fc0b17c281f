"""Tests of inspecting a home without changing it: its damage, and the process that locks it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from storage.database.engine import open_database
from storage.errors import DatabaseUnusable, HomeUnusable
from storage.home.home_folder import (
    DatabaseFileState,
    find_lock_owner,
    free_bytes,
    inspect_database_file,
    lock_home,
    probe_folder,
    used_bytes,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with open_database("", home=tmp_path / "home"):
        pass
    return tmp_path / "home" / "footnote.db"


@pytest.fixture
def other(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


def _state(file: Path) -> DatabaseFileState:
    return inspect_database_file(file, seconds=10, patience=0.01)


def test_new_database_is_complete_and_writable(file: Path) -> None:
    assert _state(file) == DatabaseFileState(file.stat().st_size, "fits", (), whole=True, unwritable=None)


@pytest.mark.parametrize(("revision", "expected"), [("0000", "older"), ("9999", "newer")])
def test_database_of_another_version_is_detected(
    file: Path, other: sqlite3.Connection, revision: str, expected: str
) -> None:
    other.execute("UPDATE alembic_version SET version_num = ?", (revision,))

    assert _state(file).revision == expected
    assert other.execute("SELECT version_num FROM alembic_version").fetchone() == (revision,)


def test_empty_file_is_an_empty_database(tmp_path: Path) -> None:
    (tmp_path / "footnote.db").touch()

    assert _state(tmp_path / "footnote.db").revision == "empty"


def test_other_programs_database_is_not_inspected(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "footnote.db")) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    with pytest.raises(DatabaseUnusable, match="belongs to another program"):
        _state(tmp_path / "footnote.db")


def test_locked_database_is_unwritable(file: Path, other: sqlite3.Connection) -> None:
    other.execute("BEGIN IMMEDIATE")
    state = _state(file)

    assert state.revision == "fits"
    assert "Another process keeps" in str(state.unwritable)


def test_missing_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "footnote.db").write_bytes(b"no database" * 1_000)
    with pytest.raises(DatabaseUnusable, match="damaged, or is not a database"):
        _state(tmp_path / "footnote.db")


def test_each_damaged_page_is_reported_or_harmless(file: Path) -> None:
    whole = file.read_bytes()
    reported = 0
    for start in range(0, len(whole), 4_096):
        file.write_bytes(whole[:start] + b"\xa5" * 4_096 + whole[start + 4_096 :])
        try:
            reported += bool(_state(file).faults)
        except DatabaseUnusable:
            reported += 1

    assert reported > len(whole) // 4_096 // 2


def test_slow_check_is_ended(file: Path, other: sqlite3.Connection) -> None:
    other.execute("CREATE TABLE many (x)")
    numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 60000) SELECT x FROM n"
    other.execute(f"INSERT INTO many {numbers}")

    assert not inspect_database_file(file, seconds=-1).whole


def test_folder_probe_writes_a_file(tmp_path: Path) -> None:
    assert abs(probe_folder(tmp_path)) < 5
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(HomeUnusable):
        probe_folder(tmp_path / "missing")


def test_free_space_is_known_for_a_missing_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"12345")

    assert free_bytes(tmp_path / "x" / "y") > 0
    assert (used_bytes(tmp_path), used_bytes(tmp_path / "x")) == (5, 0)


def test_lock_owner_is_known_without_the_lock(tmp_path: Path) -> None:
    home = tmp_path / "home"
    before = find_lock_owner(home)
    made = home.exists()
    with lock_home(home):
        during = find_lock_owner(home)

    assert (before, made, find_lock_owner(home)) == (None, False, None)
    assert during
    assert during.startswith("process ")
