"""From a dump to a stated calculation: what was measured, and what follows."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evaluation.cli import app
from evaluation.speed.wikipedia_benchmark import DumpTimes, compare_tenths, compute_ratios, estimate_english
from tests.ingest.sources.dumps import dump, page
from tests.thorough import THOROUGH

TAKEN = DumpTimes(
    articles=100,
    passages=1_000,
    failures=0,
    dump_mb=2.4,
    seconds=7.2,
    processor_seconds=14.4,
    first_way_seconds=0.1,
    night_seconds=0.36,
    rate=1_000 / 7.2,
    first_rate=150.0,
    last_rate=120.0,
    cut_rate=300.0,
    eager_rate=2.0,
    home_mb=1.0,
    memory_mb=300,
)


def test_packed_dump_is_scaled_by_its_bytes() -> None:
    """24 GB are 10,000 times 2.4 MB."""
    follows = estimate_english(TAKEN, packed=True)

    assert (follows.by, follows.times, follows.passages) == ("packed bytes", 10_000, 10_000_000)
    assert (follows.hours, follows.night_hours, follows.home_gb) == (20.0, 1.0, 10.0)


def test_unpacked_dump_is_scaled_by_its_articles() -> None:
    """Its bytes say nothing of those of a packed one: 7,000,000 articles are 70,000 times 100."""
    follows = estimate_english(TAKEN, packed=False)

    assert (follows.by, follows.times, follows.hours) == ("articles", 70_000, 140.0)


def test_ratios_are_computed_from_one_run() -> None:
    found = compute_ratios(TAKEN)

    assert (found["of_cutting"], found["of_eager"], found["last_of_first"]) == (0.463, 69.4, 0.8)
    assert (found["night_of_first"], found["bytes_a_passage"]) == (0.05, 1000.0)


@pytest.mark.parametrize(
    ("marks", "rates"),
    [
        ([], (0.0, 0.0)),
        ([(10, 2.0)], (5.0, 5.0)),
        ([(10, 10.0), (20, 11.0), (50, 14.0), (90, 18.0), (100, 20.0), (100, 30.0)], (10.0, 5.0)),
    ],
)
def test_tenths_are_compared_by_passages(marks: list[tuple[int, float]], rates: tuple[float, float]) -> None:
    assert compare_tenths(marks) == rates


@pytest.mark.parametrize("option", [[], ["--json"]] if THOROUGH else [["--json"]])
def test_dump_is_ingested_and_timed(option: list[str], tmp_path: Path) -> None:
    path = tmp_path / "wiki.xml"
    path.write_bytes(dump(page(1, "Quay", "The quay was built in 1901."), page(2, "Pier", "The pier is long.")))
    result = CliRunner().invoke(app, ["speed", "wikipedia", str(path), *option])

    assert result.exit_code == 0, result.output
    if option:
        report = json.loads(result.stdout)
        assert (report["articles"], report["passages"], report["failures"]) == (2, 2, 0)
        assert report["english_wikipedia"]["by"] == "articles"
    else:
        assert "2 articles, 2 passages" in result.stdout
        assert "Assumed:" in result.stdout


def test_empty_dump_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "wiki.xml"
    path.write_bytes(dump(page(1, "Quay", "")))
    result = CliRunner().invoke(app, ["speed", "wikipedia", str(path)])

    assert result.exit_code != 0
