"""From a dump to a stated calculation: what was measured, and what follows."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evaluation.cli import app
from evaluation.speed.wikipedia_benchmark import DumpTimes, compute_rates, estimate_english
from tests.ingest.sources.dumps import dump, page

TAKEN = DumpTimes(
    articles=100,
    passages=1_000,
    failures=0,
    dump_mb=2.4,
    seconds=8.64,
    processor_seconds=16.0,
    first_way_seconds=0.1,
    home_mb=10.0,
    memory_mb=300,
    dimensions=384,
)


def test_a_packed_dump_is_scaled_by_its_bytes() -> None:
    """24 GB are 10,000 times 2.4 MB; 86,400 s are a day; a vector has 384 numbers of 4 bytes."""
    follows = estimate_english(TAKEN, packed=True)

    assert (follows.by, follows.times, follows.passages) == ("packed bytes", 10_000, 10_000_000)
    assert (follows.days, follows.home_gb, follows.vectors_gb) == (1.0, 100.0, 15.4)


def test_another_dump_is_scaled_by_its_articles() -> None:
    """Its bytes say nothing of those of a packed one: 7,000,000 articles are 70,000 times 100."""
    follows = estimate_english(TAKEN, packed=False)

    assert (follows.by, follows.times, follows.days) == ("articles", 70_000, 7.0)


def test_rates_are_those_of_the_whole_way() -> None:
    """100 articles and 1,000 passages in 8.64 s."""
    assert (compute_rates(TAKEN)["pages_per_second"], compute_rates(TAKEN)["passages_per_second"]) == (11.57, 115.7)


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_dump_is_made_searchable_and_timed(option: list[str], tmp_path: Path) -> None:
    """With the real store and the real embedder."""
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


def test_a_dump_of_nothing_is_an_error(tmp_path: Path) -> None:
    """There is nothing to calculate with."""
    path = tmp_path / "wiki.xml"
    path.write_bytes(dump(page(1, "Quay", "")))
    result = CliRunner().invoke(app, ["speed", "wikipedia", str(path)])

    assert result.exit_code != 0
