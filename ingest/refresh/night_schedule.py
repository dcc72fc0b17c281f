"""Run the nightly refresh of `footnote serve` at a time of day in a time zone, exactly once a night.

The pure function `next_night` decides when a night is due, also when clocks change. APScheduler only starts the work
then.
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

    Each day of the zone has one night, which begins at the time `at`. If daylight saving skips that time, the night
    begins later by the shift; if the time occurs twice, the night begins at the first.
    """
    day = moment.astimezone(zone).date()
    nights = (_night_start(day + timedelta(days=days), at, zone) for days in range(-1, 4))
    return next(night for night in nights if night > moment.astimezone(UTC))


def night_by(moment: datetime, at: time, zone: tzinfo) -> datetime:
    """Return when the latest night up to `moment` began, in UTC. Pure."""
    day = moment.astimezone(zone).date()
    nights = (_night_start(day - timedelta(days=days), at, zone) for days in range(-1, 4))
    return next(night for night in nights if night <= moment.astimezone(UTC))


def next_night(since: datetime, now: datetime, at: time, zone: tzinfo) -> datetime:
    """Return the next night to run: the latest one that was missed since `since`, or else the coming one. Pure.

    If the clock was set back to before `since`, no night counts as missed.
    """
    missed = night_by(now, at, zone)
    return missed if missed > since else night_after(now, at, zone)


def _night_start(day: date, at: time, zone: tzinfo) -> datetime:
    return datetime.combine(day, at, zone).astimezone(UTC)


@dataclass
class _Calendar:
    """The nightly refreshes of a schedule, called nights. Those up to `since` have been run, or will not be run."""

    when: Callable[[], time | None]
    zone: tzinfo
    clock: Clock
    since: datetime
    at: time | None = field(init=False)

    def __post_init__(self) -> None:
        self.at = self.when()

    def reload(self) -> None:
        """Read the time of day from the settings again.

        If it has changed, nights at the new time before now are not run.
        """
        if (at := self.when()) != self.at:
            self.at, self.since = at, max(self.since, self.clock())

    def due(self) -> datetime | None:
        """Return the night that is to be run now, or None."""
        now = self.clock()
        night = next_night(self.since, now, self.at, self.zone) if self.at else None
        return night if night and night <= now else None

    def appointment(self) -> datetime:
        """Return when the next night is to be run, on the clock that APScheduler uses."""
        now = self.clock()
        return _machine_time(next_night(self.since, now, self.at, self.zone) - now if self.at else _IDLE)

    def following(self) -> datetime:
        """Return when the first night after this moment begins, on the clock that APScheduler uses."""
        now = self.clock()
        return _machine_time(night_after(now, self.at, self.zone) - now if self.at else _IDLE)


def _machine_time(wait: timedelta) -> datetime:
    return datetime.now(UTC) + max(wait, timedelta())


class NightlyTrigger(BaseTrigger):  # type: ignore[misc] # APScheduler ships no types
    """An APScheduler trigger that fires when the next night of a schedule begins."""

    def __init__(self, calendar: _Calendar) -> None:
        self._calendar = calendar

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
        """Return when the next night begins. A missed night is found by the regular check of the clock instead."""
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
    """Call `work` every night while the block runs, for one night at a time.

    If nights were missed, while the machine slept or before the block, only the latest of them is run, at once. Errors
    of the work are logged. At the end of the block, running work is cancelled and awaited.

    Args:
        work: Called with the moment when its night was due.
        at: Returns the current time of day for refreshes; None if there are no nightly refreshes.
        zone: The time zone of this time of day.
        since: The last night that was run, or else the present time. Nights after it count as missed.
        put_back: Called if the clock was set back, by `CLOCK_LEAP` or more, to before nights that were already run.
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
