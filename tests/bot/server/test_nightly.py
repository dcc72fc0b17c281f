"""Tests of nightly refreshes: each source once, independent failures, and missed nights made up for."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.server.refresh.nightly import NightLease, NightReport, find_last_refresh, refresh_every_source, schedule_nights
from bot.server.refresh.run_history import RefreshHistory, build_history
from bot.settings.tables.settings_tables import Settings
from bot.settings.tables.source_settings import SourceSettings
from ingest.types import RefreshProgress, RefreshRefused, RefreshReport
from storage.database.engine import open_database
from storage.database.refresh_log import NIGHT_LEASE, NightLog
from storage.errors import DatabaseUnusable
from storage.types import CorpusInfo, RunState
from tests.bot.server.watchman import Clock, until

NIGHTLY = "bot.server.refresh.nightly"
NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
DUE = datetime(2026, 3, 5, 3, tzinfo=UTC)
SOURCE = {"type": "folder", "path": "docs"}


def _settings(nightly: str = "") -> Settings:
    corpora = [{"name": name, "source": SOURCE} for name in ("one", "two")]
    return Settings.model_validate({"corpus": [*corpora, {"name": "by-hand"}], "schedule": {"nightly": nightly}})


def _info(name: str, at: datetime | None) -> CorpusInfo:
    return CorpusInfo(name, 1, 1, at, 0)


class _Refresh:
    """A refresh that records its calls and raises the error given for a corpus."""

    def __init__(self, **errors: Exception) -> None:
        self.asked: list[tuple[str, datetime | None]] = []
        self._errors = errors

    async def __call__(
        self,
        corpus: str,
        source: SourceSettings,
        report: Callable[[RefreshProgress], None],
        *,
        night: datetime | None = None,
    ) -> RefreshReport:
        self.asked.append((corpus, night))
        report(RefreshProgress(1, 1, 1, 0.1))
        assert source.type == "folder"
        if corpus in self._errors:
            raise self._errors[corpus]
        return RefreshReport(corpus, added=2, removed=1, seconds=3.2)


@contextmanager
def _history(home: Path) -> Iterator[RefreshHistory]:
    with open_database("", home=home) as database:
        yield build_history(database)


def _watch(history: RefreshHistory, owner: str, clock: Callable[[], datetime]) -> NightLease:
    return NightLease(history.nights, history.leases, owner, clock, look_again=0.001, renewing=0.001)


async def _done() -> NightReport:
    return NightReport(DUE, (RefreshReport("one"),), {})


def test_every_source_is_refreshed_for_the_due_night() -> None:
    refresh = _Refresh()
    night = asyncio.run(refresh_every_source(_settings(), refresh, DUE))

    assert refresh.asked == [("one", DUE), ("two", DUE)]
    assert (night.due, [report.corpus for report in night.reports], night.faults) == (DUE, ["one", "two"], {})


def test_failing_corpus_leaves_others_unaffected(caplog: pytest.LogCaptureFixture) -> None:
    refused = _Refresh(one=RefreshRefused("The folder is empty.", hint="Look where it went."), two=KeyError("x"))
    with caplog.at_level(logging.ERROR):
        night = asyncio.run(refresh_every_source(_settings(), refused, DUE))

    assert [corpus for corpus, _ in refused.asked] == ["one", "two"]
    assert next(night.lines()) == "one: not brought up to date. The folder is empty — Look where it went."
    assert night.faults["two"].kind == "internal"
    assert [record.message for record in caplog.records if record.name == NIGHTLY] == ["refreshing two failed"]


@pytest.mark.parametrize(
    ("times", "expected"),
    [((None, None, NOW), None), ((NOW - timedelta(days=2), NOW - timedelta(days=1), NOW), NOW - timedelta(days=1))],
)
def test_last_refresh_is_the_newest_of_corpora_with_a_source(
    times: tuple[datetime | None, ...], expected: datetime | None
) -> None:
    infos = [_info(name, at) for name, at in zip(("one", "two", "by-hand"), times, strict=True)]

    assert find_last_refresh(_settings(), infos) == expected


async def _worked(
    home: Path, refreshed: datetime | None, *, nightly: str = "03:00", before: datetime | None = None, count: int = 0
) -> list[datetime]:
    """Return the nights that a server runs at its start, once there are `count`, after the recorded night `before`."""
    nights = list[datetime]()

    async def notify(night: NightReport) -> None:
        nights.append(night.due)

    with _history(home) as history:
        watch = _watch(history, "this", Clock(NOW))
        if before:
            assert await history.nights.begin(before, before, "another", seconds=1)
            await history.nights.end(before, before, "done", ())
        infos = [_info("one", refreshed)]
        async with schedule_nights(
            lambda: _settings(nightly), _Refresh(), notify, watch=watch, corpora=infos, pulse=0.001
        ):
            for _ in range(10):  # pulses in which an unwanted refresh could start
                await asyncio.sleep(0.001)
            await until(lambda: len(nights) >= count)
            rows = await history.nights.recent()
            await until(lambda: len(nights) == len([row for row in rows if row.owner == "this"]))
    return nights


async def test_missed_night_is_made_up_for(tmp_path: Path) -> None:
    """Recorded nights decide; without any, the last refreshes do."""
    assert await _worked(tmp_path / "a", NOW, before=DUE - timedelta(days=2), count=1) == [DUE]
    assert await _worked(tmp_path / "b", NOW - timedelta(days=2), count=1) == [DUE]


async def test_nightly_refresh_that_ran_on_time_is_not_repeated(tmp_path: Path) -> None:
    assert await _worked(tmp_path / "a", NOW - timedelta(days=9), nightly="") == []
    assert await _worked(tmp_path / "b", NOW - timedelta(days=9), before=DUE) == []
    assert await _worked(tmp_path / "c", None) == []
    assert await _worked(tmp_path / "d", NOW + timedelta(days=900)) == []


async def test_nightly_refresh_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    clock, results = Clock(NOW), list[NightReport | None]()
    with _history(tmp_path) as history:
        assert await history.nights.begin(DUE, NOW, "dead")
        watch = _watch(history, "alive", clock)
        waiting = asyncio.create_task(watch.keep(DUE, _done))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        clock.now += timedelta(minutes=3)
        results.append(await asyncio.wait_for(waiting, 60))
        (row,) = await history.nights.recent()

    assert results == [await _done()]
    assert (row.owner, row.outcome) == ("alive", "done")


async def test_lost_lease_stops_the_work_silently(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock, begun, stopped = Clock(NOW), asyncio.Event(), asyncio.Event()

    async def endless() -> NightReport:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        raise AssertionError

    with _history(tmp_path) as history:
        watch = NightLease(history.nights, history.leases, "slow", clock, look_again=0.001, renewing=0.05)
        slow = asyncio.create_task(watch.keep(DUE, endless))
        await begun.wait()
        clock.now += timedelta(hours=1)
        assert await asyncio.wait_for(_watch(history, "quick", clock).keep(DUE, _done), 60) == await _done()
        assert await asyncio.wait_for(slow, 60) is None
        (row,) = await history.nights.recent()

    assert (stopped.is_set(), row.owner, row.outcome) == (True, "quick", "done")
    assert "took over the nightly refresh" in caplog.text


async def test_nightly_refresh_taken_over_by_another_server_is_not_ended_by_the_first(tmp_path: Path) -> None:
    clock = Clock(NOW)

    async def stood_still() -> NightReport:
        clock.now += timedelta(hours=1)
        assert await history.nights.begin(DUE, clock(), "quick")
        return await _done()

    with _history(tmp_path) as history:
        watch = NightLease(history.nights, history.leases, "slow", clock, look_again=0.001, renewing=60)
        await watch.keep(DUE, stood_still)
        (row,) = await history.nights.recent()

        assert (row.owner, row.ended) == ("quick", None)
        assert await history.leases.holder(NIGHT_LEASE, clock()) == "quick"


async def test_stopped_server_releases_its_night(tmp_path: Path) -> None:
    clock, begun = Clock(NOW), asyncio.Event()

    async def endless() -> NightReport:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    with _history(tmp_path) as history:
        working = asyncio.create_task(_watch(history, "first", clock).keep(DUE, endless))
        await begun.wait()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        assert await history.leases.holder(NIGHT_LEASE, clock()) is None
        assert await _watch(history, "second", clock).last() is None
        assert await _watch(history, "second", clock).keep(DUE, _done) == await _done()


class FailingNightLog(NightLog):
    """A night log whose database is unreachable at first."""

    failures = 2

    async def begin(self, due: datetime, at: datetime, owner: str, seconds: float = 60) -> bool:
        if self.failures:
            self.failures -= 1
            raise DatabaseUnusable("PostgreSQL does not answer.", hint="Look whether it runs.")
        return await super().begin(due, at, owner, seconds)


async def test_night_waits_for_an_unreachable_database(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with open_database("", home=tmp_path) as database:
        watch = NightLease(
            FailingNightLog(database), build_history(database).leases, "one", Clock(NOW), look_again=0.001
        )
        assert await asyncio.wait_for(watch.keep(DUE, _done), 60) == await _done()

    assert [record.cause for record in caplog.records if record.name == NIGHTLY] == [
        "PostgreSQL does not answer. Look whether it runs."
    ] * 2  # type: ignore[attr-defined]


async def test_nightly_refreshes_recorded_in_the_future_are_deleted_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock(DUE + timedelta(days=300))
    with _history(tmp_path) as history:
        watch = _watch(history, "one", clock)
        assert await watch.keep(DUE + timedelta(days=300), _done)
        await history.nights.end(DUE + timedelta(days=300), clock(), "done", ())
        clock.now = NOW
        assert await watch.last() is None
        assert await history.nights.recent() == ()

    assert "1 recorded nightly refreshes are in the future" in caplog.text


async def test_run_of_a_dead_process_is_shown_as_lost(tmp_path: Path) -> None:
    settings = Settings.model_validate({"home": tmp_path})
    with _history(tmp_path) as history:
        for corpus in ("killed", "alive"):
            await history.leases.take(f"refresh:{corpus}", "box:1:a", NOW, 60)
            await history.runs.begin(corpus, NOW, "box:1:a")
        later = NOW + timedelta(seconds=90)
        assert len((await history.summarize(settings, NOW, count=9)).running) == 2
        await history.leases.renew("refresh:alive", "box:1:a", later, 60)
        summary = await history.summarize(settings, later, count=9)

    assert [run.corpus for run in summary.running] == ["alive"]
    assert [(run.corpus, run.state, run.ended) for run in summary.ended] == [("killed", RunState.LOST, NOW)]
    assert "the next run continues there" in summary.ended[0].fault
