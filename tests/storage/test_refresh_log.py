"""Tests of the history of refreshes."""

from datetime import UTC, datetime, timedelta

from storage.database.refresh_log import LOST_RUN_FAULT, RefreshLog
from storage.manifest import Manifest
from storage.types import RunOutcome, RunState

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ONE, TWO = NOON + timedelta(hours=1), NOON + timedelta(hours=2)
OUTCOME = RunOutcome(
    RunState.DONE,
    added=1,
    changed=2,
    unchanged=3,
    removed=4,
    failed=5,
    held_back=6,
    passages_added=7,
    passages_removed=8,
    fault="Look.",
    edition="2026-03-01",
)


async def test_run_is_shown_while_running_and_when_ended(database):
    runs = RefreshLog(database)
    number = await runs.begin("c", NOON, "host:1", night=NOON)
    await runs.progress(number, ONE, 10, 40, 99)
    (running,) = await runs.recent()
    assert (running.state, running.begun, running.seen, running.ended) == (RunState.RUNNING, NOON, ONE, None)
    assert (running.done, running.total, running.passages, running.owner, running.night) == (10, 40, 99, "host:1", NOON)

    await runs.end(number, TWO, OUTCOME)

    (ended,) = await runs.recent()
    outcome = {name: getattr(ended, name) for name in RunOutcome.__dataclass_fields__}
    assert (RunOutcome(**outcome), ended.ended) == (OUTCOME, TWO)


async def test_run_of_a_dead_process_is_marked_lost_by_the_next_run(database):
    runs = RefreshLog(database)
    first = await runs.begin("c", NOON, "host:1")
    await runs.progress(first, ONE, 10, None, 99)
    other = await runs.begin("d", ONE, "host:1")
    second = await runs.begin("c", TWO, "host:2")
    await runs.end(first, TWO, OUTCOME)

    lost = (await runs.recent(corpus="c"))[1]

    assert (lost.id, lost.state, lost.ended, lost.fault, lost.done) == (first, RunState.LOST, ONE, LOST_RUN_FAULT, 10)
    assert {name: (run.id, run.state) for name, run in (await runs.last()).items()} == {
        "c": (second, RunState.RUNNING),
        "d": (other, RunState.RUNNING),
    }


async def test_newest_runs_are_listed_first_up_to_the_limit(database):
    runs = RefreshLog(database)
    numbers = [await runs.begin(corpus, NOON, "o") for corpus in "cdcdc"]

    assert [run.id for run in await runs.recent(2)] == numbers[:2:-1]
    assert [run.id for run in await runs.recent(corpus="d")] == [numbers[3], numbers[1]]


async def test_ended_runs_are_summarised(database):
    runs = RefreshLog(database)
    for corpus, outcome in (("c", OUTCOME), ("c", OUTCOME), ("c", RunOutcome(RunState.FAILED)), ("d", None)):
        number = await runs.begin(corpus, NOON, "host:1")
        if outcome:
            await runs.end(number, TWO, outcome)
    totals = {
        (total.corpus, total.state): (total.runs, total.done["added"], total.done["passages_removed"])
        for total in await runs.totals()
    }
    assert totals == {("c", RunState.DONE): (2, 2, 16), ("c", RunState.FAILED): (1, 0, 0)}


async def test_corpora_are_listed_with_their_last_run(database):
    runs, manifest = RefreshLog(database), Manifest(database)
    await manifest.finish("c", NOON)
    await runs.end(await runs.begin("c", ONE, "o"), TWO, RunOutcome(RunState.FAILED, fault="It is cut short."))

    (info,) = await manifest.corpora()

    assert info.last_run is not None
    assert (info.refreshed, info.last_run.state, info.last_run.fault) == (NOON, RunState.FAILED, "It is cut short.")
