"""Tests that verifying the record detects every tampering and reports nothing else."""

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from storage.database.engine import Database, open_database
from storage.record.audit_log import AuditLog, encode_entries, insert_entries
from storage.record.proof.checkpoints import Checkpoints, RecordBroken, parse_head
from storage.record.proof.record_check import verify_record
from storage.record.proof.signed_notes import (
    KeyUnusable,
    create_key,
    endorse_key,
    load_key,
    make_signing_key,
    sign_note,
)
from storage.types import RECORD, EntryKind, LogEntry
from tests.storage.record.tampering import KEY, count_missed, make_record, make_turn, unguard
from tests.storage.stores import open_empty_database
from tests.thorough import THOROUGH


async def test_every_tampering_is_detected(tmp_path: Path) -> None:
    tried, missed = await (count_missed(tmp_path) if THOROUGH else count_missed(tmp_path, 31, most=2))

    assert (len(tried), [attempt.kind for attempt in missed]) == (19, [])


async def test_untouched_record_has_no_findings(database: Database) -> None:
    empty = await verify_record(database)
    checkpoint = await make_record(database)
    whole = await verify_record(database, [checkpoint])

    assert (empty.entries, empty.findings, whole.findings) == (0, (), ())
    assert (whole.entries, whole.answers, whole.checkpoints, whole.covered) == (10, 2, 2, 10)


async def test_record_verifies_after_a_process_ends_while_appending(database: Database) -> None:
    def die(connection) -> None:
        insert_entries(connection, encode_entries(make_turn("c"), log.clock()))
        raise KeyError

    log = AuditLog(database)
    await make_record(database)
    with pytest.raises(KeyError):
        await database.write(die)
    await log.append(*make_turn("d"))
    assert (await verify_record(database)).findings == ()


TURN = make_turn("a")
ROWS = {
    "its turn was not opened before": TURN[1:],
    "its turn was opened before": (*TURN, TURN[0]),
    "its turn was closed before": (*TURN, TURN[2]),
    "citation 1 is of a passage that its turn did not find": (TURN[0], *TURN[2:]),
    "its text is not its sentences": (
        *TURN[:2],
        LogEntry("a", EntryKind.TURN_CLOSED, {**TURN[2].body, "text": "It opened in 1912. [1]"}),
    ),
    "the delivered text differs from the recorded answer": (
        *TURN[:3],
        LogEntry("a", EntryKind.DELIVERED, {"outcome": "delivered", "text": "It opened in 1912. [1]"}),
    ),
    "its body is not as any version wrote it": (LogEntry("a", EntryKind.STEP, {"hits": [1]}),),
    "entry 1 was erased, but still has its text": (TURN[0], LogEntry(RECORD, EntryKind.ERASURE, {"erased": [[1, 1]]})),
}


@pytest.mark.parametrize("what", ROWS)
async def test_inconsistent_record_is_found(database: Database, what: str) -> None:
    await AuditLog(database).append(*ROWS[what])
    await Checkpoints(database).make(KEY)
    findings = (await verify_record(database)).findings

    assert any(what in finding.what for finding in findings), findings


NONSENSE = ["'[]'", "'{'", "x'ff00'", "7", "''", "'{\"sentences\": 1}'", "'[[[['"]


@pytest.mark.parametrize("column", ["turn_id", "kind", "at", "body", "salt", "commitment", "leaf"])
async def test_bad_row_does_not_hide_other_findings(tmp_path: Path, column: str) -> None:
    with open_empty_database(tmp_path) as database:
        await AuditLog(database).append(*make_turn("a"), *make_turn("b"))
    unguard(tmp_path)
    for value in NONSENSE:
        with closing(sqlite3.connect(tmp_path / "footnote.db")) as connection, connection:
            connection.execute(f"UPDATE entries SET {column} = {value} WHERE seq = 3")
            connection.execute("UPDATE entries SET leaf = x'00' WHERE seq = 8")
        with open_database("", home=tmp_path) as database:
            findings = " ".join(finding.what for finding in (await verify_record(database)).findings)
        assert ("entry 3" in findings, "entry 8" in findings, "entry 6" in findings) == (True, True, False), value


async def test_checkpoints_of_a_replaced_key_stay_valid(database: Database) -> None:
    old = await make_record(database)
    new = await Checkpoints(database).make(endorse_key(KEY, make_signing_key(KEY.name)))
    checked = await verify_record(database, [old, new])
    keys = [entry.body["instead_of"] for entry in await AuditLog(database).turn(RECORD)]

    assert (checked.findings, checked.checkpoints, keys) == ((), 3, ["", str(KEY.public)])


async def test_changed_record_is_not_signed(database: Database, tmp_path: Path) -> None:
    await make_record(database)
    with closing(sqlite3.connect(tmp_path / "footnote.db")) as connection, connection:
        connection.execute("DROP TRIGGER entries_keep_update")
        connection.execute("UPDATE entries SET leaf = zeroblob(32) WHERE seq = 2")
    await AuditLog(database).append(*make_turn("c"))

    with pytest.raises(RecordBroken, match="does not fit its last checkpoint"):
        await Checkpoints(database).make(KEY)


def test_key_is_private_and_replaced_without_loss(tmp_path: Path) -> None:
    file = tmp_path / "keys" / "record.key"
    with pytest.raises(KeyUnusable, match="no signing key"):
        load_key(file)

    first = create_key(file)
    second = create_key(file, first)

    assert (load_key(file), first.name == second.name, first == second) == (second, True, False)
    assert [path.stat().st_mode & 0o777 for path in file.parent.iterdir()] == [0o600, 0o600]
    file.write_text("nonsense")
    with pytest.raises(KeyUnusable, match="cannot be read"):
        load_key(file)


async def test_restored_backup_is_detected_and_can_be_recorded(tmp_path: Path) -> None:
    with open_empty_database(tmp_path / "old") as database:
        await make_record(database)
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    with open_database("", home=tmp_path / "new") as database:
        await AuditLog(database).append(*make_turn("lost"))
        lost = await Checkpoints(database).make(KEY)
    forged = sign_note(parse_head(lost.rpartition("\n\n")[0] + "\n").format(), make_signing_key(KEY.name))
    with open_database("", home=tmp_path / "old") as database:
        log, heads = AuditLog(database), Checkpoints(database)
        await log.append(*make_turn("c"))
        before = await verify_record(database, [lost])
        await heads.record_restore(KEY, lost, why="the disk was lost", by="terminal")
        after = await verify_record(database, [lost])
        other = await verify_record(database, [forged])
        (entry,) = [logged for logged in await log.turn(RECORD) if logged.kind is EntryKind.RESTORED]
        await log.append(LogEntry(RECORD, EntryKind.RESTORED, {**entry.body, "before": 99}))
        unsigned = await verify_record(database)

    assert ("kept elsewhere" in before.findings[0].what, after.findings, len(other.findings)) == (True, (), 1)
    assert entry.body["why"] == "the disk was lost"
    assert "its note is about another restore" in unsigned.findings[0].what


async def test_clock_set_back_is_reported_as_an_oddity(database: Database) -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    moments = [noon, noon - timedelta(seconds=30), noon - timedelta(hours=1)]
    await AuditLog(database).append(
        *(LogEntry(RECORD, EntryKind.HOLD, {"what": "x", "on": True}, at=moment) for moment in moments)
    )
    checked = await verify_record(database)

    assert (checked.findings, [notice.what[:8] for notice in checked.notices]) == ((), ["entry 3:"])
