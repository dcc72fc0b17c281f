"""Tests of the leaves of entries, which are written with them and kept when a body is erased."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from storage.database.engine import Database
from storage.record.audit_log import AuditLog
from storage.types import EntryKind, LogEntry

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WORDS = LogEntry("t\u00e4", EntryKind.TURN_OPENED, {"question": "Größe? \udce4"})


def rows(home: Path) -> list[tuple]:
    with closing(sqlite3.connect(home / "footnote.db")) as connection:
        return connection.execute("SELECT seq, turn_id, kind, body, salt, commitment, leaf FROM entries").fetchall()


def leaf(seq: int, turn: str, kind: str, commitment: bytes) -> bytes:
    """Compute the leaf of an entry at noon as the guide describes it."""
    parts = f'[1,{seq},"{turn}","{kind}","2026-03-01T12:00:00.000000Z","{commitment.hex()}"]'
    return sha256(b"\x00" + parts.encode()).digest()


async def test_leaf_commits_to_every_field_of_its_entry(database: Database, tmp_path: Path) -> None:
    await AuditLog(database, clock=lambda: NOON).append(WORDS, LogEntry("b", EntryKind.STEP, {}))

    for number, (seq, turn, kind, body, salt, commitment, found) in enumerate(rows(tmp_path), 1):
        assert (seq, len(salt)) == (number, 16)
        assert commitment == sha256(salt + body.encode()).digest()
        assert found == leaf(seq, turn, kind, commitment)


ERASE = "UPDATE entries SET body = '', salt = x''"


@pytest.mark.parametrize(
    ("erased", "statement"),
    [
        ([], f"{ERASE} WHERE seq = 1"),
        ([[2, 2]], f"{ERASE} WHERE seq = 1"),
        ([[1, 9]], f"{ERASE} WHERE seq = 3"),
        ([[1, 1]], "UPDATE entries SET body = '{}', salt = x'' WHERE seq = 1"),
        ([[1, 1]], "UPDATE entries SET body = '' WHERE seq = 1"),
        ([[1, 1]], f"{ERASE}, leaf = x'' WHERE seq = 1"),
        ([[1, 1]], f"{ERASE}, kind = 'step' WHERE seq = 1"),
        ([[1, 1]], "DELETE FROM entries WHERE seq = 1"),
    ],
)
async def test_database_refuses_changes_not_named_by_an_erasure(
    database: Database, tmp_path: Path, erased: list, statement: str
) -> None:
    log = AuditLog(database)
    await log.append(WORDS, WORDS, LogEntry("record", EntryKind.ERASURE, {"erased": erased}))
    with closing(sqlite3.connect(tmp_path / "footnote.db")) as connection:
        with pytest.raises(sqlite3.IntegrityError, match="insert-only"):
            connection.execute(statement)

        assert json.loads(rows(tmp_path)[0][3])["question"]


async def test_body_can_be_erased_only_under_the_newest_entry(database: Database, tmp_path: Path) -> None:
    erasure = LogEntry("record", EntryKind.ERASURE, {"erased": [[1, 1]]})
    await AuditLog(database).append(WORDS, erasure)
    before = rows(tmp_path)
    with closing(sqlite3.connect(tmp_path / "footnote.db")) as connection, connection:
        connection.execute(f"{ERASE} WHERE seq = 1")
    await AuditLog(database).append(WORDS)
    with (
        closing(sqlite3.connect(tmp_path / "footnote.db")) as connection,
        pytest.raises(sqlite3.IntegrityError, match="insert-only"),
    ):
        connection.execute(f"{ERASE} WHERE seq = 1")
    (first, *_) = await AuditLog(database).turn(WORDS.turn_id)

    assert (first.erased, first.body) == (True, {})
    assert rows(tmp_path)[0] == (*before[0][:3], "", b"", *before[0][5:])
