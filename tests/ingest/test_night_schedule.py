"""The nightly job runs once each night, also if the clock changes; missed nights are made up for."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.refresh.night_schedule import CLOCK_LEAP, next_night, night_after, night_by, run_nightly
from tests.ingest.waiting import until_true

BERLIN, LORD_HOWE, APIA = ZoneInfo("Europe/Berlin"), ZoneInfo("Australia/Lord_Howe"), ZoneInfo("Pacific/Apia")
MISSED = datetime.now(UTC) - timedelta(days=3)


def _nights(start: datetime, count: int, at: time, zone: ZoneInfo) -> list[datetime]:
    nights = [night_after(start, at, zone)]
    while len(nights) < count:
        nights.append(night_after(nights[-1], at, zone))
    return nights


def _utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


def test_time_skipped_by_the_clock_change_runs_an_hour_later() -> None:
    """02:30 of 29 March 2026 does not exist in Berlin; 03:30 does."""
    nights = _nights(datetime(2026, 3, 28, 12, tzinfo=BERLIN), 3, time(2, 30), BERLIN)

    assert nights == [_utc(2026, 3, 29, 1, 30), _utc(2026, 3, 30, 0, 30), _utc(2026, 3, 31, 0, 30)]
    assert nights[0].astimezone(BERLIN).time() == time(3, 30)


def test_time_doubled_by_the_clock_change_runs_once() -> None:
    """The first 02:30 of 25 October 2026 in Berlin, and not the second."""
    nights = _nights(datetime(2026, 10, 24, 12, tzinfo=BERLIN), 2, time(2, 30), BERLIN)

    assert nights == [_utc(2026, 10, 25, 0, 30), _utc(2026, 10, 26, 1, 30)]


def test_restart_within_the_doubled_hour_repeats_nothing() -> None:
    between = datetime(2026, 10, 25, 2, 10, tzinfo=BERLIN, fold=1)

    assert night_after(between, time(2, 30), BERLIN) == _utc(2026, 10, 26, 1, 30)


@given(
    start=st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    at=st.times().map(lambda moment: moment.replace(second=0, microsecond=0, fold=0)),
    zone=st.sampled_from([BERLIN, LORD_HOWE, ZoneInfo("America/Sao_Paulo"), ZoneInfo("Africa/Casablanca")]),
)
def test_each_of_400_days_has_one_nightly_refresh(start: datetime, at: time, zone: ZoneInfo) -> None:
    """Over 400 days in any zone: ascending, at least 22 hours apart, none missing."""
    nights = _nights(start, 400, at, zone)
    gaps = [(later - earlier) / timedelta(hours=1) for earlier, later in pairwise(nights)]

    assert nights[0] > start
    assert 22 <= min(gaps) <= max(gaps) <= 26
    assert round((nights[-1] - nights[0]) / timedelta(days=1)) == 399


def test_calendar_day_skipped_by_a_zone_has_no_nightly_refresh() -> None:
    """Samoa had no 30 December 2011; the nights before and after come once."""
    nights = _nights(datetime(2011, 12, 29, 12, tzinfo=APIA), 2, time(3), APIA)

    assert [night.astimezone(APIA).date() for night in nights] == [date(2011, 12, 31), date(2012, 1, 1)]


@given(
    start=st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    at=st.times().map(lambda moment: moment.replace(second=0, microsecond=0, fold=0)),
    zone=st.sampled_from([BERLIN, LORD_HOWE, APIA]),
)
def test_last_night_precedes_the_next(start: datetime, at: time, zone: ZoneInfo) -> None:
    """No other night is between them, and a night that begins now has begun."""
    before, after = night_by(start, at, zone), night_after(start, at, zone)

    assert before <= start < after
    assert night_after(before, at, zone) == after
    assert night_by(after, at, zone) == after


@pytest.mark.parametrize(
    ("since", "now", "expected"),
    [
        (_utc(2026, 3, 1, 3), _utc(2026, 3, 1, 12), _utc(2026, 3, 2, 3)),
        (_utc(2026, 3, 1, 3), _utc(2026, 3, 2, 3), _utc(2026, 3, 2, 3)),
        (_utc(2026, 3, 1, 3), _utc(2026, 3, 9, 12), _utc(2026, 3, 9, 3)),
        (_utc(2026, 3, 9, 3), _utc(2026, 3, 1, 12), _utc(2026, 3, 2, 3)),
    ],
    ids=["nothing was missed", "it comes", "the last of those missed", "the clock was put back"],
)
def test_next_night_follows_last_run_and_clock(since: datetime, now: datetime, expected: datetime) -> None:
    assert next_night(since, now, time(3), ZoneInfo("UTC")) == expected


class _Clock:
    """A clock that tests set."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


class _Work:
    """The work of a night: counts its calls, and may wait or raise."""

    def __init__(self, error: Exception | None = None, *, endless: bool = False) -> None:
        self.begun = asyncio.Event()
        self.due: list[datetime] = []
        self.backs = 0
        self.cancelled = False
        self._error = error
        self._endless = endless

    @property
    def count(self) -> int:
        return len(self.due)

    async def put_back(self) -> None:
        """Count how often the clock was put back."""
        self.backs += 1

    async def __call__(self, due: datetime) -> None:
        self.due.append(due)
        self.begun.set()
        try:
            if self._endless:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        if self._error:
            raise self._error


async def _during(work: _Work, since: datetime, *waits: Callable[[], Awaitable[object]]) -> None:
    at = (datetime.now(UTC) - timedelta(hours=1)).time().replace(second=0, microsecond=0)
    nightly = run_nightly(work, at=lambda: at, zone=UTC, since=since, put_back=work.put_back, pulse=0.001)
    async with asyncio.timeout(60), nightly:
        for wait in waits:
            await wait()


async def _pulses() -> None:
    """Let the scheduler check the clock some times."""
    for _ in range(20):
        await asyncio.sleep(0.001)


async def test_several_missed_nights_are_run_once() -> None:
    work = _Work()
    await _during(work, MISSED, work.begun.wait, _pulses)

    assert work.count == 1


async def test_no_night_runs_before_it_is_due() -> None:
    work = _Work()
    await _during(work, datetime.now(UTC), _pulses)

    assert work.count == 0


def _nightly_at_three(work: _Work, clock: _Clock) -> AbstractAsyncContextManager[None]:
    since = _utc(2026, 3, 1, 3)
    return run_nightly(
        work, at=lambda: time(3), zone=UTC, since=since, put_back=work.put_back, clock=clock, pulse=0.001
    )


async def test_each_night_gets_its_due_time_and_follows_the_clock() -> None:
    """A machine may wake up much later; no night runs before the clock reaches it."""
    clock, work = _Clock(_utc(2026, 3, 1, 12)), _Work()
    async with _nightly_at_three(work, clock):
        clock.now = _utc(2026, 3, 2, 2, 59)
        await _pulses()
        for count, moment in enumerate((_utc(2026, 3, 2, 3), _utc(2026, 3, 3, 9), _utc(2026, 3, 7, 4))):
            assert work.count == count
            clock.now = moment
            await until_true(lambda enough=count + 1: work.count == enough)
        await _pulses()

    assert work.due == [_utc(2026, 3, 2, 3), _utc(2026, 3, 3, 3), _utc(2026, 3, 7, 3)]
    assert work.backs == 0


async def test_clock_that_jumps_ahead_and_back_skips_no_night() -> None:
    """Nights that ran too early are reported and run again; small steps are ignored."""
    clock, work = _Clock(_utc(2026, 3, 1, 12)), _Work()
    async with _nightly_at_three(work, clock):
        clock.now = _utc(2026, 3, 4, 15)
        await until_true(lambda: work.count == 1)
        clock.now = _utc(2026, 3, 1, 12, 5)
        await until_true(lambda: work.backs == 1)
        clock.now = _utc(2026, 3, 2, 3, 0)
        await until_true(lambda: work.count == 2)
        clock.now -= CLOCK_LEAP / 2
        await _pulses()

    assert (work.due, work.backs) == ([_utc(2026, 3, 4, 3), _utc(2026, 3, 2, 3)], 1)


async def test_failing_work_is_logged_and_the_schedule_continues(caplog: pytest.LogCaptureFixture) -> None:
    work = _Work(ValueError("broken"))
    with caplog.at_level(logging.ERROR):
        await _during(work, MISSED, work.begun.wait, _pulses)

    schedule_log = [record for record in caplog.records if record.name == "ingest.refresh.night_schedule"]
    assert len(schedule_log) == 1
    assert "the next one is not affected" in caplog.text


async def test_running_work_is_cancelled_and_awaited_at_the_end() -> None:
    work = _Work(endless=True)
    await _during(work, MISSED, work.begun.wait)

    assert (work.count, work.cancelled) == (1, True)
