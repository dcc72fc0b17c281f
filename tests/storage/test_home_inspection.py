"""Looking at a home without changing it: what is whole, what is not, and who keeps it locked."""

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
    """Return a database that has just been made."""
    with open_database("", home=tmp_path / "home"):
        pass
    return tmp_path / "home" / "footnote.db"


@pytest.fixture
def other(file: Path) -> Iterator[sqlite3.Connection]:
    """Return somebody else's connection to it."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


def _state(file: Path) -> DatabaseFileState:
    return inspect_database_file(file, seconds=10, patience=0.01)


def test_a_new_database_is_whole_and_can_be_written(file: Path) -> None:
    """And is as long as its file."""
    assert _state(file) == DatabaseFileState(file.stat().st_size, "fits", (), whole=True, unwritable=None)


@pytest.mark.parametrize(("revision", "expected"), [("0000", "older"), ("9999", "newer")])
def test_another_version_s_database_is_told_apart(
    file: Path, other: sqlite3.Connection, revision: str, expected: str
) -> None:
    """And is left as it is."""
    other.execute("UPDATE alembic_version SET version_num = ?", (revision,))

    assert _state(file).revision == expected
    assert other.execute("SELECT version_num FROM alembic_version").fetchone() == (revision,)


def test_an_empty_file_is_an_empty_database(tmp_path: Path) -> None:
    """A crash may leave one."""
    (tmp_path / "footnote.db").touch()

    assert _state(tmp_path / "footnote.db").revision == "empty"


def test_another_program_s_database_is_not_ours(tmp_path: Path) -> None:
    """Nothing of it is changed."""
    with closing(sqlite3.connect(tmp_path / "footnote.db")) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    with pytest.raises(DatabaseUnusable, match="belongs to another program"):
        _state(tmp_path / "footnote.db")


def test_a_database_that_somebody_keeps_locked_cannot_be_written(file: Path, other: sqlite3.Connection) -> None:
    """It can be read all the same."""
    other.execute("BEGIN IMMEDIATE")
    state = _state(file)

    assert state.revision == "fits"
    assert "Another process keeps" in str(state.unwritable)


def test_no_database_at_all_is_told(tmp_path: Path) -> None:
    """Somebody wrote over it."""
    (tmp_path / "footnote.db").write_bytes(b"no database" * 1_000)
    with pytest.raises(DatabaseUnusable, match="damaged, or is not a database"):
        _state(tmp_path / "footnote.db")


def test_every_damaged_page_is_told_or_harmless(file: Path) -> None:
    """Whatever page is written over: never anything but a finding or an error in plain words."""
    whole = file.read_bytes()
    told = 0
    for start in range(0, len(whole), 4_096):
        file.write_bytes(whole[:start] + b"\xa5" * 4_096 + whole[start + 4_096 :])
        try:
            told += bool(_state(file).faults)
        except DatabaseUnusable:
            told += 1

    assert told > len(whole) // 4_096 // 2


def test_a_check_that_takes_too_long_is_ended(file: Path, other: sqlite3.Connection) -> None:
    """And says that it did not see all."""
    other.execute("CREATE TABLE many (x)")
    numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 60000) SELECT x FROM n"
    other.execute(f"INSERT INTO many {numbers}")

    assert not inspect_database_file(file, seconds=-1).whole


def test_a_folder_is_tried_by_writing(tmp_path: Path) -> None:
    """Nothing stays, and its clock is ours."""
    assert abs(probe_folder(tmp_path)) < 5
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(HomeUnusable):
        probe_folder(tmp_path / "missing")


def test_room_is_known_for_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    """By the disk it will be on."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"12345")

    assert free_bytes(tmp_path / "x" / "y") > 0
    assert (used_bytes(tmp_path), used_bytes(tmp_path / "x")) == (5, 0)


def test_who_owns_a_home_is_known_without_owning_it(tmp_path: Path) -> None:
    """Nobody, then this process, then nobody; nothing is made by asking."""
    home = tmp_path / "home"
    before = find_lock_owner(home)
    made = home.exists()
    with lock_home(home):
        during = find_lock_owner(home)

    assert (before, made, find_lock_owner(home)) == (None, False, None)
    assert during
    assert during.startswith("process ")
