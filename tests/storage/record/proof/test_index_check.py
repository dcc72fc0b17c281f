"""Tests that `verify` finds every change of the index of turns and of its documents, and nothing in genuine records."""

from dataclasses import replace

import pytest

from storage.database.engine import Database
from storage.database.schema import turns
from storage.record.audit_log import AuditLog
from storage.record.erasure import ErasureTarget, RecordErasure
from storage.record.proof.record_check import verify_record
from storage.record.turn_index import rebuild_index
from storage.types import EntryKind, LogEntry
from tests.storage.record.test_claim_tables import ANN, BEN, make_checked, rate, run
from tools.example_record import RECORD, build_entries

NUMBERS = ("sentences", "withheld", "claims", "supported", "refuted", "up", "down", "tokens", "seconds", "cost")
COLUMNS = [column.name for column in turns.c]
TEXTS = [name for name in COLUMNS if name not in {*NUMBERS, "seq", "at", "retracted", "erased"}]
CHANGES = [
    *(f"UPDATE turns SET {name} = 'EVIL' WHERE seq = 1" for name in TEXTS),
    *(f"UPDATE turns SET {name} = {name} + 1 WHERE seq = 1" for name in NUMBERS),
    *(f"UPDATE turns SET {name} = NOT {name} WHERE seq = 1" for name in ("retracted", "erased")),
    "UPDATE turns SET at = '2026-03-01 12:00:01.000000' WHERE seq = 1",
    "UPDATE turns SET status = 'answered' WHERE seq = 6",
    "UPDATE turns SET question = '', asker = '', asker_name = '', channel_name = '', erased = true WHERE seq = 1",
    "DELETE FROM turns WHERE seq = 6",
    "INSERT INTO turns SELECT 3, 'forged', {} FROM turns WHERE seq = 1".format(", ".join(COLUMNS[2:])),
    *(f"UPDATE turn_documents SET {name} = 'evil'" for name in ("corpus", "document")),
    "UPDATE turn_documents SET cited = NOT cited",
    "UPDATE turn_documents SET seq = 6",
    "DELETE FROM turn_documents",
    "INSERT INTO turn_documents VALUES ('c', 'evil.md', true, 1)",
]


def make_entries() -> list[LogEntry]:
    """Make a rated turn, and an unfinished one, whose opening entry is the sixth."""
    opened, *_ = make_checked("open")
    return [*make_checked("a"), rate("a", BEN), opened]


async def read_index(database: Database) -> list[object]:
    queries = ("SELECT * FROM turns ORDER BY seq", "SELECT * FROM turn_documents", "SELECT rowid FROM turn_words")
    return [await run(database, query) for query in queries]


@pytest.mark.parametrize("change", CHANGES)
async def test_change_of_the_index_is_found_and_rebuilt(database: Database, change: str) -> None:
    await AuditLog(database).append(*make_entries())
    index, whole = await read_index(database), await verify_record(database)
    await run(database, change)
    changed = await verify_record(database)
    await rebuild_index(database)

    assert whole.findings == ()
    assert any("of the table turn" in finding.what for finding in changed.findings), changed.findings
    assert (await read_index(database), (await verify_record(database)).findings) == (index, ())


async def test_changed_columns_are_named(database: Database) -> None:
    await AuditLog(database).append(*make_entries())
    await run(database, "UPDATE turns SET question = 'EVIL', asker = 'slack:T1/UEVIL' WHERE seq = 1")
    (finding,) = (await verify_record(database)).findings

    assert (finding.turn_id, finding.what) == ("a", "its row of the table turns was changed: asker, question")


async def test_text_in_the_row_of_an_erased_turn_is_found(database: Database) -> None:
    await AuditLog(database).append(*make_entries())
    await RecordErasure(database).erase(ErasureTarget(conversation="a"), why="asked", by="terminal")
    await run(database, "UPDATE turns SET question = 'EVIL' WHERE seq = 1")

    findings = [finding.what for finding in (await verify_record(database)).findings]
    assert findings == ["its row of the table turns was changed: question"]


async def test_genuine_record_has_no_findings(database: Database) -> None:
    log, erasure = AuditLog(database), RecordErasure(database)
    for turn in RECORD["turns"]:
        await log.append(*build_entries(turn))
    examples = (await verify_record(database)).findings
    await log.append(*make_checked("a"), *make_checked("b", "UBEN"), rate("a", BEN), rate("b", ANN), rate("b", BEN))
    opened, *rest = make_checked("c", "UCEM")
    await log.append(replace(opened, body={**opened.body, "earlier": ["Why a?"]}), *rest, *make_checked("open")[:1])
    await log.append(LogEntry("b", EntryKind.EDITED, {"retracted": True, "by": ANN}))
    before = (await verify_record(database)).findings
    await erasure.erase(ErasureTarget(person=ANN), why="asked", by="terminal")
    erased = (await verify_record(database)).findings
    await log.append(rate("b", BEN, "Still wrong."))
    await rebuild_index(database)

    assert (examples, before, erased, (await verify_record(database)).findings) == ((), (), (), ())
