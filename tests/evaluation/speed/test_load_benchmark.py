"""Many turns at once on a simulated model server, small: what is measured, and that limits are held to."""

import asyncio
import math
from collections import Counter

import pytest

from evaluation.simulated_model.model_pace import SimulatedModel
from evaluation.simulated_model.model_server import fetch_counts, run_model_server
from evaluation.speed.load_benchmark import TurnLoad, measure_load
from evaluation.speed.workload import median_or_nan, quantile, watch_event_loop
from pipeline.stages import STAGES
from storage.language.words import terms
from tests.evaluation.speed.two_pages import EXAM

QUICK = TurnLoad(
    turns=2, waves=2, first_token=0.01, out=math.inf, prompt=math.inf, rate=math.inf, concurrency=2, calls=4
)  # fmt: skip


async def test_limits_hold_while_many_turns_run_at_once() -> None:
    report = await measure_load(EXAM, QUICK)

    assert report["holds"] == {"concurrency": True, "budget": True, "count": True, "no failure": True}
    assert [wave["ended"] for wave in report["waves"]] == [{"answered": 2}] * 2
    assert report["short"]["ended"] == {"budget_exceeded": 2}
    assert report["waves"][0]["at_once_at_most"] == 2
    assert report["waves"][1]["calls"] == report["waves"][1]["requests"] > 2 * len(STAGES) - 2
    assert all(wave["memory_mb"] > 0 and wave["turn_p95_s"] >= wave["turn_median_s"] > 0 for wave in report["waves"])


async def test_simulated_server_ends_with_its_context() -> None:
    with run_model_server(SimulatedModel()) as url:
        assert fetch_counts(url).requests == fetch_counts(url).busiest == 0
    with pytest.raises(OSError, match=r"refused|reset"):
        fetch_counts(url)


async def test_blocked_event_loop_is_reported_with_its_place() -> None:
    holders = Counter[str]()
    async with watch_event_loop(holders) as lags:
        await asyncio.sleep(0.01)
        asyncio.get_running_loop().call_soon(terms, _LONG)
        await asyncio.sleep(0.02)

    assert max(lags) > 25
    assert any(place.startswith("storage/language/words.py: ") for place in holders)
    assert (median_or_nan([3, 1, 2]), quantile([1, 2, 3, 4], 0.95)) == (2, 4)


_LONG = " ".join(f"word{place}x{place}" for place in range(40_000))
