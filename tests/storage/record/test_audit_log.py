"""Tests of the append-only log."""

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.database.engine import Database, open_database, to_json_value
from storage.record.audit_log import AuditLog
from storage.types import CheckedClaim, Claim, EntryKind, LogEntry, Step, Verdict

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
EAST = timezone(timedelta(hours=5))


@pytest.fixture
def log(database: Database) -> AuditLog:
    """Return a log whose clock is fixed at noon."""
    return AuditLog(database, clock=lambda: NOON)


def opened(turn: str, **body: Any) -> LogEntry:
    return LogEntry(turn, EntryKind.TURN_OPENED, body)


def closed(turn: str, **body: Any) -> LogEntry:
    return LogEntry(turn, EntryKind.TURN_CLOSED, body)


async def test_entries_come_back_in_order_with_a_number_and_a_time(log: AuditLog) -> None:
    numbers = await log.append(opened("a", question="Why?"), opened("b"), closed("a", text="Because."))

    assert await log.turn("a") == (
        LogEntry("a", EntryKind.TURN_OPENED, {"question": "Why?"}, numbers[0], NOON),
        LogEntry("a", EntryKind.TURN_CLOSED, {"text": "Because."}, numbers[2], NOON),
    )
    assert sorted(numbers) == list(numbers)


async def test_given_time_of_an_entry_is_kept(log: AuditLog) -> None:
    await log.append(LogEntry("a", EntryKind.STEP, {}, at=datetime(2026, 3, 1, 17, tzinfo=EAST)))

    assert [entry.at for entry in await log.turn("a")] == [NOON]


async def test_unknown_turn_has_no_entries(log: AuditLog) -> None:
    assert await log.turn("nobody") == ()


async def test_entries_are_appended_all_or_none(log: AuditLog) -> None:
    """Half a turn would look complete."""
    with pytest.raises(TypeError):
        await log.append(opened("a"), opened("a", what=object()))

    assert await log.turn("a") == ()


async def test_turns_are_found_by_the_beginning_of_their_id(log: AuditLog) -> None:
    await log.append(opened("ab1"), closed("ab1"), opened("ab2"), opened("b1"))

    assert await log.find("ab") == ("ab1", "ab2")
    assert await log.find("ab1") == ("ab1",)
    assert await log.find("", limit=2) == ("ab1", "ab2")
    assert await log.find("%") == await log.find("a_1") == ()


async def test_turns_are_listed_newest_first_in_pages(log: AuditLog) -> None:
    await log.append(*(entry for turn in "abc" for entry in (opened(turn), closed(turn, of=turn))), opened("d"))

    first = await log.turns(2)
    second = await log.turns(2, before=first[-1][0].seq)

    ended = [(start.turn_id, end and end.body) for start, end in first + second]
    assert ended == [("d", None), ("c", {"of": "c"}), ("b", {"of": "b"}), ("a", {"of": "a"})]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = '{}'",
        "UPDATE entries SET at = at WHERE seq = 1",
        "DELETE FROM entries",
        "INSERT OR REPLACE INTO entries (seq, turn_id, kind, at, body) VALUES (1, 'x', 'step', '2026-01-01', '{}')",
        "REPLACE INTO entries SELECT * FROM entries",
    ],
)
async def test_database_refuses_to_change_or_remove_an_entry(tmp_path: Path, statement: str) -> None:
    with open_database("", home=tmp_path) as database:
        await AuditLog(database).append(opened("a", question="Why?"))
    with closing(sqlite3.connect(tmp_path / "footnote.db")) as connection:
        before = connection.execute("SELECT * FROM entries").fetchall()

        with pytest.raises(sqlite3.IntegrityError, match="insert-only"):
            connection.execute(statement)

        assert connection.execute("SELECT * FROM entries").fetchall() == before


def test_appended_entries_survive_a_kill(tmp_path: Path) -> None:
    """`append` returns when the entry is on the disk."""
    code = (
        "import asyncio, os, signal, sys; from pathlib import Path\n"
        "from storage.record.audit_log import AuditLog; from storage.database.engine import open_database\n"
        "from storage.types import EntryKind, LogEntry\n"
        "with open_database('', home=Path(sys.argv[1])) as database:\n"
        "    asyncio.run(AuditLog(database).append(LogEntry('a', EntryKind.TURN_OPENED, {})))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )

    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)

    assert done.returncode == -signal.SIGKILL
    with closing(sqlite3.connect(tmp_path / "footnote.db")) as connection:
        assert connection.execute("SELECT turn_id FROM entries").fetchall() == [("a",)]


TEXT = st.text("aä中\udce4\x00 ", max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)


@given(JSON)
def test_json_values_are_stored_unchanged(value: Any) -> None:
    assert to_json_value(value) == value


@pytest.mark.parametrize("text", ["Grüße 🎉", "half \udce4 a pair", "zero \x00 byte", "\u202e backwards"])
async def test_any_text_a_person_can_type_is_recorded(log: AuditLog, text: str) -> None:
    await log.append(opened("a", question=text))

    assert [entry.body for entry in await log.turn("a")] == [{"question": text}]


def test_dates_and_dataclasses_are_stored_as_json_values() -> None:
    checked = CheckedClaim(Claim("It is.", "model"), Verdict.REFUTES, ("p1",), "No.")
    step = Step("search", {"at": NOON, "day": date(2026, 3, 1), "claims": (checked,)}, 1.5)

    assert to_json_value(step) == {
        "stage": "search",
        "facts": {
            "at": "2026-03-01T12:00:00+00:00",
            "day": "2026-03-01",
            "claims": [
                {
                    "claim": {"text": "It is.", "origin": "model"},
                    "verdict": "REFUTES",
                    "evidence": ["p1"],
                    "reasoning": "No.",
                    "looked_at": [],
                    "because": [],
                }
            ],
        },
        "milliseconds": 1.5,
        "began": 0.0,
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [{"deep": float("-inf")}], datetime(2026, 3, 1)])  # noqa: DTZ001 - what must be refused
def test_values_that_json_would_change_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="cannot be recorded"):
        to_json_value(value)


@pytest.mark.parametrize("value", [object(), {1: "a"}, {"a"}, b"bytes", Claim, LogEntry])
def test_values_outside_json_are_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        to_json_value(value)
