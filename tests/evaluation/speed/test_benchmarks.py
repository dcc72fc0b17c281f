"""Small runs of each benchmark: it reports its measurements, and its checks detect faults."""

import asyncio
import json
import math
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evaluation.cli import app
from evaluation.simulated_model.model_pace import SimulatedModel
from evaluation.simulated_model.model_server import fetch_counts
from evaluation.simulated_model.paced_model import run_model_server
from evaluation.speed.load_benchmark import TurnLoad, measure_load
from evaluation.speed.wikipedia_benchmark import compare_tenths, compute_ratios, estimate_english
from evaluation.speed.workload import median_or_nan, quantile, watch_event_loop
from pipeline.stages import STAGES
from storage.language.words import terms
from tests.evaluation.speed.two_pages import EXAM
from tests.ingest.sources.dumps import dump, page


async def test_limits_hold_while_many_turns_run_at_once() -> None:
    unlimited = {"out": math.inf, "prompt": math.inf, "rate": math.inf}
    load = TurnLoad(turns=2, waves=2, first_token=0.01, concurrency=2, calls=4, **unlimited)
    report = await measure_load(EXAM, load)

    assert report["holds"] == {"concurrency": True, "budget": True, "count": True, "no failure": True}
    assert [wave["ended"] for wave in report["waves"]] == [{"answered": 2}] * 2
    assert report["short"]["ended"] == {"budget_exceeded": 2}
    assert report["waves"][1]["calls"] == report["waves"][1]["requests"] > 2 * len(STAGES) - 2
    assert all(wave["memory_mb"] > 0 and wave["turn_p95_s"] >= wave["turn_median_s"] > 0 for wave in report["waves"])


def test_simulated_server_ends_with_its_context() -> None:
    with run_model_server(SimulatedModel()) as url:
        assert fetch_counts(url).requests == fetch_counts(url).busiest == 0
    with pytest.raises(OSError, match=r"refused|reset"):
        fetch_counts(url)


async def test_blocked_event_loop_is_reported_with_its_place() -> None:
    holders, long = Counter[str](), " ".join(f"word{place}x{place}" for place in range(40_000))
    async with watch_event_loop(holders) as lags:
        await asyncio.sleep(0.01)
        asyncio.get_running_loop().call_soon(terms, long)
        await asyncio.sleep(0.02)

    assert max(lags) > 25
    assert any(place.startswith("storage/language/words.py: ") for place in holders)
    assert (median_or_nan([3, 1, 2]), quantile([1, 2, 3, 4], 0.95)) == (2, 4)


def test_dump_times_are_scaled_to_the_english_wikipedia() -> None:
    times = {
        "articles": 100, "passages": 1_000, "dump_mb": 2.4, "seconds": 7.2, "processor_seconds": 14.4,
        "night_seconds": 0.36, "rate": 1_000 / 7.2, "first_rate": 150.0, "last_rate": 120.0, "cut_rate": 300.0,
        "eager_rate": 2.0, "home_mb": 1.0,
    }  # fmt: skip
    packed, plain = estimate_english(times, packed=True), estimate_english(times, packed=False)
    ratios = compute_ratios(times)

    assert [packed[name] for name in ("by", "times", "hours", "home_gb")] == ["packed bytes", 10_000, 20.0, 10.0]
    assert [plain[name] for name in ("by", "times", "hours")] == ["articles", 70_000, 140.0]
    assert (ratios["of_cutting"], ratios["of_eager"], ratios["last_of_first"]) == (0.463, 69.4, 0.8)
    assert compare_tenths([]) == (0.0, 0.0)
    assert compare_tenths([(10, 10.0), (20, 11.0), (50, 14.0), (90, 18.0), (100, 20.0), (100, 30.0)]) == (10.0, 5.0)


def test_dump_is_ingested_and_timed(tmp_path: Path) -> None:
    path = tmp_path / "wiki.xml"
    path.write_bytes(dump(page(1, "Quay", "The quay was built in 1901."), page(2, "Pier", "The pier is long.")))
    result = CliRunner().invoke(app, ["speed", "wikipedia", str(path), "--json"])

    report = json.loads(result.stdout)
    assert (report["articles"], report["passages"], report["failures"]) == (2, 2, 0)
    assert report["english_wikipedia"]["by"] == "articles"
    path.write_bytes(dump(page(1, "Quay", "")))
    assert CliRunner().invoke(app, ["speed", "wikipedia", str(path)]).exit_code != 0


def test_searches_are_timed_alone_and_during_an_ingest() -> None:
    options = ["--passages", "30", "--ingested", "6", "--questions", "4", "--json"]
    report = json.loads(CliRunner().invoke(app, ["speed", "search", *options]).stdout)

    assert (report["passages"], report["alone"]["searches"]) == (30, 4)
    assert report["ingesting"]["searches"] > 0
    assert report["alone"]["search_p50_ms"] > 0
