"""What `footnote serve` does at night: every source of the settings is read in again, as `footnote ingest all` does.

One corpus that fails takes no other with it. When the night comes is `ingest.schedule`'s; what is told of it, and to
whom, is the caller's.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.console import Fault, Mendable, fault_of
from bot.settings import Settings
from bot.source_settings import SourceSettings
from ingest.refreshing import Progress, RefreshReport
from ingest.schedule import scheduled
from storage.types import CorpusInfo

Refresh = Callable[[str, SourceSettings, Callable[[Progress], None]], Awaitable[RefreshReport]]
"""Brings a corpus up to date with its source, as `Home.refresh` does."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Night:
    """What a night came to."""

    reports: tuple[RefreshReport, ...]
    faults: Mapping[str, Fault]
    """Why a corpus was not brought up to date, by its name."""

    def lines(self) -> Iterator[str]:
        """Tell it, a line a corpus."""
        for report in self.reports:
            documents = f"{report.added} added, {report.changed} changed, {report.removed} removed"
            unread = f", {report.failed} could not be read" if report.failed else ""
            yield f"{report.corpus}: {documents}{unread}, in {report.seconds:.0f} s"
        for corpus, fault in self.faults.items():
            yield f"{corpus}: not brought up to date. {fault.line()}"


def sources(settings: Settings) -> Mapping[str, SourceSettings]:
    """Return the corpora that have a source, with it."""
    return {corpus.name: corpus.source for corpus in settings.corpus if corpus.source}


def last_night(settings: Settings, corpora: Sequence[CorpusInfo]) -> datetime | None:
    """Return when any corpus that has a source was last brought up to date; None if none ever was. Pure."""
    wanted = sources(settings)
    done = [info.refreshed for info in corpora if info.name in wanted and info.refreshed]
    return max(done, default=None)


async def every_source(settings: Settings, refresh: Refresh) -> Night:
    """Read in every source, one after another."""
    reports, faults = [], {}
    for corpus, source in sources(settings).items():
        try:
            reports.append(await refresh(corpus, source, _unheard))
        except Exception as error:
            faults[corpus] = fault_of(error)
            if not isinstance(error, Mendable):
                log.exception("%s could not be brought up to date", corpus)
    return Night(tuple(reports), faults)


@asynccontextmanager
async def nights(
    settings: Settings,
    refresh: Refresh,
    told: Callable[[Night], Awaitable[None]],
    *,
    corpora: Sequence[CorpusInfo],
    now: datetime | None = None,
) -> AsyncIterator[None]:
    """Have the nights of `[schedule] nightly` within the block; none where it names no time.

    A night that was missed since a corpus was last brought up to date is made up for at once.

    Args:
        settings: What there is to read, when, and in which zone.
        refresh: Does it.
        told: Hears of each night; what it raises is logged.
        corpora: What is indexed.
        now: The moment; None: as the clock says.
    """
    at = settings.schedule.at
    if at is None:
        yield
        return

    async def work() -> None:
        await told(await every_source(settings, refresh))

    now = now or datetime.now(UTC)
    since = min(now, last_night(settings, corpora) or now)
    async with scheduled(work, at=at, zone=settings.zone, since=since):
        yield


def _unheard(progress: Progress) -> None:
    """Nobody watches at night."""
