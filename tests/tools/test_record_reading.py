"""Invented turns are found by every filter that is measured."""

from pathlib import Path

from storage.record.audit_log import AuditLog
from tests.storage.stores import open_empty_database
from tools.benchmarks.record_reading import invent_turns, measure_record


async def test_each_query_and_appending_is_timed(tmp_path: Path) -> None:
    with open_empty_database(tmp_path) as database:
        await AuditLog(database).append(*(entry for turn in invent_turns(30) for entry in turn))
        report = await measure_record(database, 1)

    assert report["newest"][2] == 30
    assert report["a frequent word"][2] > 20
    assert report["a word that is not there"][2] == 0
    assert all(0 < median <= slow for median, slow, _ in report.values())
