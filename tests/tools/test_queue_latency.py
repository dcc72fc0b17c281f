"""How long a question takes to be kept."""

from pathlib import Path

from storage.database.engine import open_database
from storage.database.queue import Queue
from storage.record.audit_log import AuditLog
from tests.storage.stores import opened
from tools.benchmarks.queue_latency import QueueLoad, _lines, measure_under


async def test_questions_are_kept_beside_turns_and_an_ingest(tmp_path: Path) -> None:
    """Each of them, and what goes on beside them ends with them."""
    with opened(tmp_path) as store, open_database("", home=tmp_path) as database:
        figures = await measure_under(QueueLoad(turns=3, ingest=True), "both", database, store, 20)

        assert await Queue(database).by_key("both-19")
        assert await AuditLog(database).turns(1)
        assert await store.manifest.listed("both")
    assert figures["questions"] == 20
    assert 0 < figures["put_p50_ms"] <= figures["put_p99_ms"] <= figures["put_max_ms"]
    assert "both: put p50" in _lines({"both": figures})
