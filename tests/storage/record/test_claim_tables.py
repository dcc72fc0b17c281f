"""Tests of the tables for people's queries: their rows, erasing, rebuilding, and that `verify` finds every change."""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from storage.database.engine import Database, open_database
from storage.record.audit_log import AuditLog
from storage.record.erasure import ErasureTarget, RecordErasure
from storage.record.proof.record_check import verify_record
from storage.record.turn_index import rebuild_index
from storage.types import EntryKind, LogEntry
from tests.storage.record.tampering import make_turn, unguard
from tests.storage.stores import open_empty_database, open_home_database
from tools.example_record import RECORD, build_entries

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
GUIDE = Path(__file__).parents[3] / "docs" / "audit.md"
SAID = "It opened in 1911."
ANN, BEN = "slack:T1/UANN", "slack:T1/UBEN"


def judge(text: str, origin: str, verdict: str, *evidence: str, reason: str = "") -> dict[str, Any]:
    return {
        "claim": {"text": text, "origin": origin},
        "verdict": verdict,
        "evidence": evidence,
        "reasoning": reason,
        "looked_at": ["p9"],
    }


def make_checked(turn_id: str, user: str = "UANN") -> list[LogEntry]:
    """Make a turn that says one sentence, refutes a claim by a page that it does not cite, and withholds a sentence."""
    opened, step, closed, delivered = make_turn(turn_id)
    citation = {**closed.body["citations"][0], "corpus": "c", "document": "hall.md", "revision": "r7"}
    claims = [
        judge("It opened in 1912.", "model", "REFUTES", "p2", "p1", reason="Another year."),
        judge(SAID, "retrieved", "SUPPORTS", "p1", reason="word for word"),
    ]
    withheld = [{"text": "It is blue.", "reason": "No passage says so."}]
    body = {**closed.body, "citations": [citation], "claims": claims, "withheld": withheld}
    asker = {"platform": "slack", "workspace": "T1", "channel": "C1", "user": user}
    found = {"stage": "search", "hits": [["p1", 1.0, "c", "hall.md"], ["p2", 0.5, "c", "fire.md"]]}
    return [
        LogEntry(turn_id, opened.kind, {**opened.body, "asker": asker, "question": f"Why {turn_id}?"}, at=NOON),
        LogEntry(turn_id, step.kind, found, at=NOON),
        LogEntry(turn_id, closed.kind, body, at=NOON),
        LogEntry(turn_id, delivered.kind, delivered.body, at=NOON),
    ]


def rate(turn_id: str, by: str, comment: str = "") -> LogEntry:
    return LogEntry(
        turn_id, EntryKind.FEEDBACK, {"what": "down", "by": by, "comment": comment, "missed": True}, at=NOON
    )


async def run(database: Database, *statements: str) -> list[Any]:
    """Run statements in one transaction, and return the rows of the last one."""

    def execute(connection: Any) -> list[Any]:
        results = [connection.execute(text(statement)) for statement in statements]
        return [tuple(row) for row in results[-1]] if results[-1].returns_rows else []

    return await database.write(execute)


async def read_tables(database: Database) -> list[list[Any]]:
    tables = {"claims": "turn, number", "claim_passages": "turn, claim, position", "feedback": "seq"}
    return [await run(database, f"SELECT * FROM {name} ORDER BY {key}") for name, key in tables.items()]


async def test_turn_and_its_feedback_are_rows(database: Database) -> None:
    await AuditLog(database).append(*make_checked("a"), rate("a", BEN, "Wrong."))
    claims, passages, [feedback] = await read_tables(database)

    assert claims == [
        (1, 1, "It opened in 1912.", "model", "REFUTES", "Another year.", False),
        (1, 2, SAID, "retrieved", "SUPPORTS", "word for word", True),
        (1, 3, "It is blue.", "retrieved", "WITHHELD", "No passage says so.", False),
    ]
    assert passages == [
        (1, 1, 1, "p2", "c", "fire.md", "", ""),
        (1, 1, 2, "p1", "c", "hall.md", "r7", SAID),
        (1, 2, 1, "p1", "c", "hall.md", "r7", SAID),
    ]
    assert (feedback[:2], feedback[3:]) == ((5, 1), ("down", BEN, "Wrong.", True, 0))


async def test_sentences_of_a_stopped_turn_are_said_without_a_verdict(database: Database) -> None:
    opened, *_ = make_turn("a")
    spoken = {"status": "cancelled", "spoken": [{"text": SAID, "citations": [1]}]}
    await AuditLog(database).append(opened, LogEntry("a", EntryKind.TURN_CLOSED, spoken))

    assert (await read_tables(database))[0] == [(1, 1, SAID, "retrieved", "", "", True)]


async def test_steps_that_were_added_before_the_end_name_the_pages(database: Database) -> None:
    entries = make_checked("a")
    await AuditLog(database).append(*entries[:2])
    await AuditLog(database).append(*entries[2:])

    assert (await read_tables(database))[1][0] == (1, 1, 1, "p2", "c", "fire.md", "", "")


CHANGES = [
    *(f"UPDATE claims SET {name} = '{name}' WHERE number = 2" for name in ("text", "origin", "verdict", "reason")),
    "UPDATE claims SET said = NOT said WHERE number = 3",
    "UPDATE claims SET number = 9 WHERE number = 3",
    "UPDATE claims SET turn = 99 WHERE number = 3",
    "DELETE FROM claims WHERE number = 1",
    "DELETE FROM claims",
    "INSERT INTO claims VALUES (1, 4, 'It is new.', 'model', 'REFUTES', '', false)",
    "INSERT INTO claims VALUES (2, 1, 'It is of no turn.', 'model', 'REFUTES', '', false)",
    "INSERT INTO claims VALUES (6, 1, 'It is of an open turn.', 'model', 'REFUTES', '', false)",
    *(
        f"UPDATE claim_passages SET {name} = '{name}' WHERE claim = 1 AND position = 1"
        for name in ("passage", "corpus", "document", "revision", "quote")
    ),
    "UPDATE claim_passages SET position = 7 WHERE claim = 1 AND position = 1",
    "DELETE FROM claim_passages WHERE claim = 2",
    "INSERT INTO claim_passages VALUES (1, 2, 2, 'p', 'c', 'd', '', '')",
    "INSERT INTO claim_passages VALUES (6, 1, 1, 'p', 'c', 'd', '', '')",
    *(f"UPDATE feedback SET {name} = '{name}'" for name in ("what", "person", "comment")),
    "UPDATE feedback SET at = '2026-03-01 12:00:01.000000'",
    "UPDATE feedback SET turn = 6",
    "UPDATE feedback SET missed = false",
    "UPDATE feedback SET rating = 5",
    "DELETE FROM feedback",
    "INSERT INTO feedback VALUES (4, 1, '2026-03-01 12:00:00.000000', 'up', 'x', '', false, 0)",
]


async def test_every_change_of_the_tables_is_found_and_rebuilt(database: Database) -> None:
    open_turn, *_ = make_turn("open")
    await AuditLog(database).append(*make_checked("a"), rate("a", BEN), open_turn)
    rows, whole = await read_tables(database), await verify_record(database)
    missed = []
    for change in CHANGES:
        await run(database, change)
        found = (await verify_record(database)).findings
        missed += [] if any("of the table" in finding.what for finding in found) else [change]
        await rebuild_index(database)
        assert (change, await read_tables(database)) == (change, rows)

    assert (missed, whole.findings, (await verify_record(database)).findings) == ([], (), ())


@pytest.mark.parametrize("value", ["x'ff00'", "CAST(text AS BLOB)", "7", "text || char(0) || 'x'"])
async def test_value_that_cannot_be_read_is_a_finding(tmp_path: Path, value: str) -> None:
    with open_empty_database(tmp_path) as database:
        await AuditLog(database).append(*make_checked("a"), *make_checked("b"))
    unguard(tmp_path)
    with closing(sqlite3.connect(tmp_path / "footnote.db")) as connection, connection:
        connection.execute(f"UPDATE claims SET text = {value} WHERE turn = 1 AND number = 1")
        connection.execute("DELETE FROM claim_passages WHERE turn = 5")
    with open_database("", home=tmp_path) as database:
        findings = (await verify_record(database)).findings

    assert [(finding.turn_id, finding.what) for finding in findings] == [
        ("a", "entry 3: rows of the table claims were changed, added or removed"),
        ("b", "entry 7: rows of the table claim_passages were changed, added or removed"),
    ]


async def test_erased_turn_has_no_rows(database: Database) -> None:
    await AuditLog(database).append(*make_checked("a"), *make_checked("b", "UBEN"))
    await AuditLog(database).append(rate("a", BEN, "Why a?"), rate("b", ANN, "Wrong."), rate("b", BEN))
    await RecordErasure(database).erase(ErasureTarget(person=ANN), why="asked", by="terminal")
    tables = await read_tables(database)
    checked = await verify_record(database)
    await rebuild_index(database)

    assert [{row[0] for row in rows} for rows in tables] == [{5}, {5}, {11}]
    assert (checked.findings, await read_tables(database)) == ((), tables)


async def test_pages_of_erased_steps_are_unknown(database: Database) -> None:
    await AuditLog(database).append(*make_checked("a"))
    quoting = make_checked("b", "UBEN")
    opened = LogEntry("b", quoting[0].kind, {**quoting[0].body, "earlier": ["Why a?"]}, at=NOON)
    await AuditLog(database).append(opened, *quoting[1:])
    await RecordErasure(database).erase(ErasureTarget(person=ANN), why="asked", by="terminal")
    claims, passages, _ = await read_tables(database)
    checked = await verify_record(database)

    assert (len(claims), passages[0], passages[1][5]) == (3, (5, 1, 1, "p2", "", "", "", ""), "hall.md")
    assert checked.findings == ()


@pytest.mark.parametrize("revision", ["0010", "0011"])
async def test_home_of_a_development_revision_gets_the_tables(tmp_path: Path, revision: str) -> None:
    with open_empty_database(tmp_path) as database:
        await AuditLog(database).append(*make_checked("a"), rate("a", BEN))
        rows = await read_tables(database)
        drops = {
            "0010": [f"DROP TABLE {name}" for name in ("claims", "claim_passages", "feedback")],
            "0011": [f"ALTER TABLE feedback DROP COLUMN {name}" for name in ("missed", "rating")],
        }
        await run(database, *drops[revision], f"UPDATE alembic_version SET version_num = '{revision}'")
    with open_home_database(tmp_path) as database:
        assert await read_tables(database) == rows
        assert (await verify_record(database)).findings == ()


def list_queries() -> Sequence[tuple[str, str]]:
    """Return the queries of the guide, each with its output."""
    guide = GUIDE.read_text(encoding="utf-8")
    found = re.findall(r"^    (SELECT[^;]*);\n((?:    .*\n)*)", guide, re.MULTILINE)
    return [(query, re.sub(r"^    ", "", output, flags=re.MULTILINE).strip()) for query, output in found]


@pytest.mark.parametrize(("query", "output"), list_queries())
async def test_query_of_the_guide_has_its_output(database: Database, query: str, output: str) -> None:
    for turn in RECORD["turns"]:
        await AuditLog(database).append(*build_entries(turn))
    rows = await run(database, query)

    assert "\n".join("|".join(map(str, row)) for row in rows) == output


def test_guide_has_five_queries() -> None:
    assert len(list_queries()) == 5
