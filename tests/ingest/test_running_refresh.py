"""A running refresh: its lease, cancellation, and searches meanwhile."""

import asyncio
import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from ingest.refresh.refresh_run import hold_lease
from ingest.types import RefreshRefused
from storage.database.refresh_log import Leases
from storage.errors import LeaseLost
from storage.types import RunState
from tests.ingest.sourced import Scripted, found, pages
from tests.ingest.waiting import PATIENCE, begun, run, texts, until

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Clock:
    """A clock that tests set."""

    def __init__(self):
        self.now = NOON

    def __call__(self):
        """Return the current moment."""
        return self.now

    def turn(self, seconds):
        """Let some seconds pass."""
        self.now += timedelta(seconds=seconds)


async def states(store):
    """Return the states of the runs, newest first."""
    return [run.state for run in await store.runs.recent()]


async def test_second_refresh_of_a_corpus_is_refused(store, embedder):
    """It names the holder; other corpora are independent."""
    first = await begun(store, embedder, Scripted([found("a", "Please wait.")]))

    with pytest.raises(RefreshRefused, match="already being refreshed by") as caught:
        await run(store, Scripted(pages("a")))
    assert "footnote ingest status" in caught.value.hint

    embedder.go_on.set()
    assert (await first).added == 1
    assert (await run(store, Scripted(pages("a")))).changed == 1
    assert await states(store) == [RunState.DONE, RunState.DONE]


async def test_lease_is_renewed_during_a_long_batch(store, embedder):
    clock, leases = Clock(), store.leases
    task = await begun(store, embedder, Scripted([found("a", "Please wait.")]), clock=clock, lease_seconds=0.03)
    clock.turn(1000)

    await until(lambda: leases.holder("refresh:c", clock()))
    embedder.go_on.set()

    assert (await task).added == 1
    assert await leases.holder("refresh:c", clock()) is None


async def test_lost_lease_ends_the_refresh_without_further_writes(store, embedder):
    """The process was suspended; another continues, and the history shows both."""
    clock = Clock()
    task = await begun(store, embedder, Scripted([found("a", "Please wait.")]), clock=clock, lease_seconds=0.03)
    clock.turn(1000)
    other = Leases(store.manifest.database)
    while not await other.take("refresh:c", "another", clock.now + timedelta(seconds=10), 1000):
        clock.turn(1000)
    await store.runs.begin("c", clock(), "another")
    embedder.go_on.set()

    with pytest.raises(LeaseLost, match="taken over"):
        await asyncio.wait_for(task, PATIENCE)

    assert task.cancelling() == 0
    assert await texts(store, "a") == []
    assert await states(store) == [RunState.RUNNING, RunState.LOST]
    assert await other.holder("refresh:c", clock()) == "another"


async def test_losing_the_lease_interrupts_a_block_that_waits(store):
    clock, other = Clock(), Leases(store.manifest.database)

    async def waiting():
        async with asyncio.timeout(PATIENCE), hold_lease(store.leases, "c", clock=clock, seconds=0.03):
            while not await other.take("refresh:c", "another", clock(), 1000):
                clock.turn(1000)
            await asyncio.Event().wait()

    with pytest.raises(LeaseLost, match="was suspended"):
        await waiting()


async def test_refused_lease_leaves_neither_run_nor_lease(store):
    await store.leases.take("refresh:c", "another", NOON, 60)

    with pytest.raises(RefreshRefused, match="by another"):
        async with hold_lease(store.leases, "c", clock=lambda: NOON):
            raise AssertionError("it was held")

    assert await store.leases.holder("refresh:c", NOON) == "another"


async def test_cancelled_refresh_stops_its_source_and_keeps_applied_changes(store):
    """The source's thread has ended and its resources are closed."""
    reading, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def wait():
        try:
            reading.set()
            assert go_on.wait(PATIENCE)
        finally:
            closed.set()

    source = Scripted([*pages(*(f"{n:03}" for n in range(256))), wait, *pages("never")], marked="m2")
    source.stop = go_on.set
    task = asyncio.create_task(run(store, source))
    assert await asyncio.to_thread(reading.wait, PATIENCE)
    await until(lambda: store.manifest.fingerprints("c"))
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE)

    assert closed.is_set()
    assert "never" not in await store.manifest.fingerprints("c")
    assert (await store.manifest.checkpoint("c")).mark == ""
    (recorded,) = await store.runs.recent()
    assert (recorded.state, recorded.ended is not None) == (RunState.CANCELLED, True)
    assert await store.leases.holder("refresh:c", NOON) is None


async def test_event_loop_runs_while_a_cancelled_source_stops_slowly(store):
    reading, go_on = threading.Event(), threading.Event()

    def wait():
        reading.set()
        assert go_on.wait(PATIENCE)

    task = asyncio.create_task(run(store, Scripted([wait])))
    assert await asyncio.to_thread(reading.wait, PATIENCE)
    task.cancel()
    for _ in range(20):
        await asyncio.sleep(0)  # a blocked loop would delay each of these
    task.cancel()  # a second cancellation
    await asyncio.sleep(0)
    assert not task.done()
    go_on.set()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE)


@dataclass(frozen=True)
class Interrupted:
    """An index after whose first search a function runs, before the caller gets the result."""

    index: object
    then: object
    done: threading.Event = field(default_factory=threading.Event)

    def __getattr__(self, name):
        return getattr(self.index, name)

    def search(self, *args):
        """Search, and run the function once."""
        result = self.index.search(*args)
        if not self.done.is_set():
            self.done.set()
            self.then()
        return result


async def test_search_overtaken_by_a_commit_finds_the_new_version(store):
    """The candidates belong to the old version, which is retired before they are joined."""
    await run(store, Scripted([found("a", "The tariff is nine florins.")]))
    loop = asyncio.get_running_loop()
    new = Scripted([found("a", "The tariff is ten florins.")])

    def commit():
        asyncio.run_coroutine_threadsafe(run(store, new), loop).result(PATIENCE)

    slow = replace(store, dense=Interrupted(store.dense, commit))

    hits = await slow.search("What is the tariff in florins?", ["c"], 5)

    assert [hit.passage.text for hit in hits] == ["The tariff is ten florins."]


@pytest.mark.parametrize("method", ["expected", "documents"])
async def test_slow_source_is_stopped_without_blocking_the_loop(store, method):
    """For example during a download of hours."""
    reading, go_on = threading.Event(), threading.Event()

    def wait(*_args):
        reading.set()
        assert go_on.wait(PATIENCE)

    source = Scripted(pages("a"))
    setattr(source, method, wait)
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()

    source.stop = lambda: loop.call_soon(stopped.set)
    task = asyncio.create_task(run(store, source))
    assert await asyncio.to_thread(reading.wait, PATIENCE)
    task.cancel()
    await asyncio.wait_for(stopped.wait(), PATIENCE)
    assert not task.done()
    go_on.set()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE)
    assert (await store.runs.recent())[0].state == RunState.CANCELLED
