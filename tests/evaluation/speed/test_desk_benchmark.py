"""How long the desk takes to take a question."""

from pathlib import Path

from evaluation.speed.desk_benchmark import DeskLoad, _lines, measure_desk
from tests.evaluation.speed.two_pages import EXAM


async def test_questions_are_answered_once_in_order_during_an_ingest(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Quay\n\nThe quay opens at seven.", encoding="utf-8")

    load = DeskLoad(in_flight=3, questions=8, channels=2, seconds=0.01)

    report = await measure_desk(EXAM, load, tmp_path)

    holds = report["holds"]
    assert report["answered"] == 8
    assert holds["all answered"]
    assert holds["none twice"]
    assert holds["order in a channel"]
    assert "take p99 ms" in _lines(report)
