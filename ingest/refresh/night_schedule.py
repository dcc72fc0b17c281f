"""Run the nightly job at a time of day in a time zone, exactly once a night, also when clocks change. On APScheduler.

The pure function `next_night` decides when a night is due; APScheduler keeps the appointment.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import partial

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from storage.clock import Clock, utc_now

CHECK_SECONDS = 30.0
"""Seconds between two checks of the clock: a scheduler's timers stop while a machine sleeps, and miss a clock that is
set."""

_IDLE = timedelta(days=1)  # the next appointment of a schedule without a time: one may be set at any moment
CLOCK_LEAP = timedelta(hours=1)  # a night further ahead than this was run under a wrong clock

log = logging.getLogger(__name__)


def night_after(moment: datetime, at: time, zone: tzinfo) -> datetime:
    """Return when the first night after a moment begins, in UTC. Pure.

    Each day of the zone has one night. If daylight saving skips `at` that day, the night begins later by the shift;
    if it doubles `at`, it begins at the first.
    """
    day = moment.astimezone(zone).date()
    nights = (_night_start(day + timedelta(days=days), at, zone) for days in range(-1, 4))
    return next(night for night in nights if night > moment.astimezone(UTC))


def night_by(moment: datetime, at: time, zone: tzinfo) -> datetime:
    """Return when the last night began, in UTC: at `moment` or before. Pure."""
    day = moment.astimezone(zone).date()
    nights = (_night_start(day - timedelta(days=days), at, zone) for days in range(-1, 4))
    return next(night for night in nights if night <= moment.astimezone(UTC))


def next_night(since: datetime, now: datetime, at: time, zone: tzinfo) -> datetime:
    """Return the next night to run: the last one missed after `since`, or else the coming one. Pure.

    If the clock was set back behind `since`, the present time counts.
    """
    missed = night_by(now, at, zone)
    return missed if missed > since else night_after(now, at, zone)


def _night_start(day: date, at: time, zone: tzinfo) -> datetime:
    return datetime.combine(day, at, zone).astimezone(UTC)


@dataclass
class _Calendar:
    """The nights of one schedule; those up to `since` were run or are not made up for."""

    when: Callable[[], time | None]
    zone: tzinfo
    clock: Clock
    since: datetime
    at: time | None = field(init=False)

    def __post_init__(self) -> None:
        self.at = self.when()

    def reload(self) -> None:
        """Read the time of day again; if it changed, nights that it would have had before now are not made up for."""
        if (at := self.when()) != self.at:
            self.at, self.since = at, max(self.since, self.clock())

    def due(self) -> datetime | None:
        """Return the night to run now, if any."""
        now = self.clock()
        night = next_night(self.since, now, self.at, self.zone) if self.at else None
        return night if night and night <= now else None

    def appointment(self) -> datetime:
        """Return when the next night is to run, by the machine's clock, which APScheduler uses."""
        now = self.clock()
        return _machine_time(next_night(self.since, now, self.at, self.zone) - now if self.at else _IDLE)

    def following(self) -> datetime:
        """Return when the night after this moment begins, by the same clock."""
        now = self.clock()
        return _machine_time(night_after(now, self.at, self.zone) - now if self.at else _IDLE)


def _machine_time(wait: timedelta) -> datetime:
    return datetime.now(UTC) + max(wait, timedelta())


class NightlyTrigger(BaseTrigger):  # type: ignore[misc] # APScheduler ships no types
    """Fires at the nights of a calendar."""

    def __init__(self, calendar: _Calendar) -> None:
        self._calendar = calendar

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
        """Return when the next night begins; a missed one is noticed at the next check of the clock."""
        del previous_fire_time, now
        return self._calendar.following()

    def __str__(self) -> str:
        at = self._calendar.at
        return f"nightly at {at:%H:%M} in {self._calendar.zone}" if at else "never"


@asynccontextmanager
async def run_nightly(
    work: Callable[[datetime], Awaitable[None]],
    *,
    at: Callable[[], time | None],
    zone: tzinfo,
    since: datetime,
    put_back: Callable[[], Awaitable[None]],
    clock: Clock = utc_now,
    pulse: float = CHECK_SECONDS,
) -> AsyncIterator[None]:
    """Call `work` every night within the block, one night at a time.

    If nights were missed, while the machine slept or before the block, only the last of them is run, at once. Errors of
    the work are logged. At the end of the block, running work is cancelled and awaited.

    Args:
        work: Called with the moment when its night was due.
        at: Returns the present time of day for refreshes; None if there are no nightly refreshes.
        zone: Its time zone.
        since: Nights after this moment count as missed: the last night, or now.
        put_back: Called when the clock was put back behind nights that were already run, by `CLOCK_LEAP` or more.
        clock: Returns the time.
        pulse: Seconds between two checks of the clock.
    """
    calendar, running = _Calendar(at, zone, clock, since), set[asyncio.Task[None]]()

    async def night() -> None:
        calendar.reload()
        if due := calendar.due():
            calendar.since = due
            task = asyncio.ensure_future(_log_errors(partial(work, due)))
            running.add(task)
            task.add_done_callback(running.discard)
            await task

    scheduler = AsyncIOScheduler(timezone=UTC)
    once = {"max_instances": 1, "coalesce": True, "misfire_grace_time": None}
    job = scheduler.add_job(night, NightlyTrigger(calendar), id="nightly", next_run_time=calendar.appointment(), **once)

    async def watch_clock() -> None:
        while True:
            await asyncio.sleep(pulse)
            if running:
                continue
            calendar.reload()
            if calendar.since > clock() + CLOCK_LEAP:
                calendar.since = clock()
                await _log_errors(put_back)
            job.modify(next_run_time=calendar.appointment())

    scheduler.start()
    watching = asyncio.create_task(watch_clock(), name="schedule")
    try:
        yield
    finally:
        watching.cancel()
        scheduler.shutdown(wait=False)
        for task in running:
            task.cancel()
        await asyncio.gather(watching, *running, return_exceptions=True)


async def _log_errors(work: Callable[[], Awaitable[None]]) -> None:
    try:
        await work()
    except Exception:
        log.exception("the nightly job failed; the next one is not affected")
