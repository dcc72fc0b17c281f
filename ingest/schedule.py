"""The nightly job: every night at a time of day in a time zone, exactly once, whatever clocks do. On APScheduler.

When a night is due is decided purely, by `night_after`; APScheduler keeps the appointment. It knows nothing of what is
done at night nor of what follows: both are passed in.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

PULSE = 30.0
"""Seconds after which the scheduler looks at the clock at the latest. Its own timers stand still while a machine
sleeps, and do not notice when a clock is set."""

log = logging.getLogger(__name__)


def night_after(moment: datetime, at: time, zone: tzinfo) -> datetime:
    """Return when the first night after a moment begins, in UTC. Pure.

    Each day of the zone has one night. Where `at` is skipped that day, the night begins as much later as the clock
    was put forward; where it comes twice, at the first.
    """
    day = moment.astimezone(zone).date()
    nights = (_night(day + timedelta(days=days), at, zone) for days in range(-1, 4))
    return next(night for night in nights if night > moment.astimezone(UTC))


def _night(day: date, at: time, zone: tzinfo) -> datetime:
    return datetime.combine(day, at, zone).astimezone(UTC)


class Nightly(BaseTrigger):  # type: ignore[misc] # APScheduler ships no types
    """APScheduler's view of `night_after`."""

    def __init__(self, at: time, zone: tzinfo) -> None:
        self._at = at
        self._zone = zone

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
        """Return the night after the last one, missed or not."""
        return night_after(previous_fire_time or now, self._at, self._zone)

    def __str__(self) -> str:
        """Return it as APScheduler's log shows it."""
        return f"nightly at {self._at:%H:%M} in {self._zone}"


@asynccontextmanager
async def scheduled(
    work: Callable[[], Awaitable[None]], *, at: time, zone: tzinfo, since: datetime, pulse: float = PULSE
) -> AsyncIterator[None]:
    """Do the work every night within the block.

    One night is worked at a time. Nights that were missed, while the machine slept or before the block began, are made
    up for by one, at once. What the work raises is logged, and ends nothing. At the end of the block work under way is
    cancelled and waited for.

    Args:
        work: What is done.
        at: The time of day.
        zone: Whose.
        since: The moment after which nights count as missed: the last one's, or now.
        pulse: See `PULSE`.
    """
    under_way: set[asyncio.Task[None]] = set()

    async def night() -> None:
        task = asyncio.ensure_future(_guarded(work))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
        await task

    scheduler = AsyncIOScheduler(timezone=UTC)
    first = night_after(since, at, zone)
    once = {"max_instances": 1, "coalesce": True, "misfire_grace_time": None}
    scheduler.add_job(night, Nightly(at, zone), id="nightly", next_run_time=first, **once)
    scheduler.start()
    beating = asyncio.create_task(_beat(scheduler, pulse), name="schedule")
    try:
        yield
    finally:
        beating.cancel()
        scheduler.shutdown(wait=False)
        for task in under_way:
            task.cancel()
        await asyncio.gather(beating, *under_way, return_exceptions=True)


async def _guarded(work: Callable[[], Awaitable[None]]) -> None:
    try:
        await work()
    except Exception:
        log.exception("the nightly job failed; the next night comes all the same")


async def _beat(scheduler: AsyncIOScheduler, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        scheduler.wakeup()
