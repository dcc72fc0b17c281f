"""Tests of the answers that admins approved as examples, and of their log entries."""

from datetime import UTC, datetime

from storage.database.engine import Database
from storage.record.admin_choices import ApprovedExamples
from storage.record.audit_log import AuditLog
from storage.types import ApprovedExample, EntryKind, LogEntry

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ADMIN = "slack:T1/U1"


def entry(state: str, turn_id: str = "t1") -> LogEntry:
    return LogEntry(turn_id, EntryKind.FEEDBACK, {"what": "example", "by": ADMIN, "state": state})


async def test_adding_pinning_and_dropping_an_example_is_recorded(database: Database) -> None:
    pool, example = ApprovedExamples(database, clock=lambda: NOON), ApprovedExample("t1", ADMIN, {"turns": ["a"]})

    assert await pool.add(example, entry("added"))
    assert not await pool.add(example, entry("added"))  # nothing changes, and nothing is logged
    assert await pool.all() == (ApprovedExample("t1", ADMIN, {"turns": ["a"]}, NOON),)
    assert await pool.pin("t1", entry("pinned"), pinned=True)
    assert not await pool.pin("t1", entry("pinned"), pinned=True)
    assert not await pool.pin("t2", entry("pinned", "t2"), pinned=True)
    assert [item.pinned for item in await pool.all()] == [True]
    assert await pool.drop("t1", entry("dropped"))
    assert not await pool.drop("t1", entry("dropped"))
    assert await pool.all() == ()
    entries = await AuditLog(database).turn("t1")
    assert [item.body["state"] for item in entries] == ["added", "pinned", "dropped"]
    assert await AuditLog(database).turn("t2") == ()


async def test_retracted_answer_is_not_an_example(database: Database) -> None:
    pool, log = ApprovedExamples(database, clock=lambda: NOON), AuditLog(database)
    for turn_id in ("t1", "t2"):
        await pool.add(ApprovedExample(turn_id, ADMIN, {}), entry("added", turn_id))
    await log.append(LogEntry("t1", EntryKind.EDITED, {"retracted": True}), LogEntry("t2", EntryKind.EDITED, {}))
    assert [example.turn_id for example in await pool.all()] == ["t2"]
