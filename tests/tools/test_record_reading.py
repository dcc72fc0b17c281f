"""The timed searches find generated turns, and the turns are verified."""

from pathlib import Path

from storage.record.audit_log import AuditLog
from tests.storage.stores import open_empty_database
from tools.benchmarks.record_reading import invent_turns, measure_record


async def test_each_search_and_verification_is_timed(tmp_path: Path) -> None:
    with open_empty_database(tmp_path) as database:
        await AuditLog(database).append(*(entry for turn in invent_turns(30) for entry in turn))
        report = await measure_record(database, 1)

    assert {"append a turn", "a word", "checkpoint", "receipt", "verify"} <= set(report)
    assert all(milliseconds > 0 for milliseconds in report.values())
