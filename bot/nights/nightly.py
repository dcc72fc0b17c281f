"""What `footnote serve` does at night: every source of the settings is read in again, as `footnote ingest all` does.

One corpus that fails takes no other with it. When the night comes is `ingest.schedule`'s, that it is worked once
`bot.nights.watch`'s; what is told of it, and to whom, is the caller's.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Protocol

from bot.console import Fault, Mendable, fault_of
from bot.nights.night import Night
from bot.nights.watch import NightWatch
from bot.settings import Settings
from bot.settings_of.sources import SourceSettings
from ingest.refreshing import Progress, RefreshReport
from ingest.schedule import PULSE, scheduled
from storage.types import CorpusInfo

log = logging.getLogger(__name__)


class Refresh(Protocol):
    """Brings a corpus up to date with its source, as `LocalHome.refresh` does."""

    async def __call__(
        self,
        corpus: str,
        source: SourceSettings,
        tell: Callable[[Progress], None],
        *,
        night: datetime | None = None,
    ) -> RefreshReport:
        """Do it, for the night that was due then."""
        ...


def last_refresh(settings: Settings, corpora: Sequence[CorpusInfo]) -> datetime | None:
    """Return when any corpus that has a source was last brought up to date; None if none ever was. Pure."""
    wanted = settings.sources
    done = [info.refreshed for info in corpora if info.name in wanted and info.refreshed]
    return max(done, default=None)


async def every_source(settings: Settings, refresh: Refresh, due: datetime) -> Night:
    """Read in every source, one after another."""
    reports: list[RefreshReport] = []
    faults: dict[str, Fault] = {}
    for corpus, source in settings.sources.items():
        try:
            reports.append(await refresh(corpus, source, _unheard, night=due))
        except Exception as error:
            faults[corpus] = fault_of(error)
            if not isinstance(error, Mendable):
                log.exception("%s could not be brought up to date", corpus)
    return Night(due, tuple(reports), faults)


@asynccontextmanager
async def nights(
    settings: Settings,
    refresh: Refresh,
    told: Callable[[Night], Awaitable[None]],
    *,
    watch: NightWatch,
    corpora: Sequence[CorpusInfo],
    pulse: float = PULSE,
) -> AsyncIterator[None]:
    """Have the nights of `[schedule] nightly` within the block; none where it names no time.

    A night that no process worked through is made up for at once. Before there ever was a night, those count that
    came after a corpus was last brought up to date.

    Args:
        settings: What there is to read, when, and in which zone.
        refresh: Does it.
        told: Hears of each night that was worked here; what it raises is logged.
        watch: Sees to it that no other process works it too.
        corpora: What is indexed.
        pulse: As `ingest.schedule.PULSE`.
    """
    at = settings.schedule.at
    if at is None:
        yield
        return

    async def work(due: datetime) -> None:
        if night := await watch.keep(due, lambda: every_source(settings, refresh, due)):
            await told(night)

    now = watch.clock()
    since = min(now, await watch.last() or last_refresh(settings, corpora) or now)
    again = partial(scheduled, put_back=watch.put_back, clock=watch.clock, pulse=pulse)
    async with again(work, at=at, zone=settings.zone, since=since):
        yield


def _unheard(progress: Progress) -> None:
    """Nobody watches at night."""
