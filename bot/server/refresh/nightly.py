"""Run the nightly refresh: every source of the settings, once over all processes, with a report to the admins.

`ingest.refresh.night_schedule` decides when it begins. The process that runs it holds a lease and renews it; when the
process dies or stops, the lease ends, and a waiting process takes over. A failing corpus does not affect others. With
`[schedule] heartbeat`, a daily message confirms the refresh; without that message, nothing ran.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from bot.desk.platform_port import Platform, PlatformError, PlatformUnavailable
from bot.desk.supervisor import run_beside, wait_for_first
from bot.settings.tables.settings_tables import ScheduleSettings, Settings
from bot.settings.tables.source_settings import SourceSettings
from bot.types import Place
from bot.views.error_messages import Fault, ReportableError, explain_error
from bot.views.sanitize import sanitize_line
from bot.views.text_formats import format_count, format_duration
from ingest.refresh.night_schedule import CHECK_SECONDS, CLOCK_LEAP, run_nightly
from ingest.types import RefreshProgress, RefreshReport
from storage.clock import Clock
from storage.database.refresh_log import NIGHT_LEASE, NIGHT_LEASE_SECONDS, Leases, NightLog
from storage.errors import StorageError
from storage.types import CorpusInfo


@dataclass(frozen=True, slots=True)
class NightReport:
    """The reports and faults of one nightly refresh, which was due at `due`."""

    due: datetime
    reports: tuple[RefreshReport, ...]
    faults: Mapping[str, Fault]  # why corpora were not brought up to date, by their names

    @property
    def outcome(self) -> str:
        """`failed` if any corpus was not brought up to date, otherwise `done`."""
        return "failed" if self.faults else "done"

    def lines(self) -> Iterator[str]:
        for report in self.reports:
            counts, seconds = _render_counts(report), format_duration(report.seconds)
            yield f"{report.corpus}: {counts}, in {seconds}{_render_fault(report)}"
        for corpus, fault in self.faults.items():
            yield f"{corpus}: not brought up to date. {fault.line()}"

    def troubles(self) -> Iterator[str]:
        """Yield lines that need attention: failures, and faults such as removals held back."""
        for corpus, fault in self.faults.items():
            yield f"{corpus}: not brought up to date. {fault.line()}"
        for report in self.reports:
            if report.fault:
                yield f"{report.corpus}: brought up to date{_render_fault(report)}"

    def summary(self) -> str:
        done, all_of_it = len(self.reports), len(self.reports) + len(self.faults)
        total = RefreshReport(
            "",
            added=sum(report.added for report in self.reports),
            changed=sum(report.changed for report in self.reports),
            removed=sum(report.removed for report in self.reports),
            failures=tuple(failure for report in self.reports for failure in report.failures),
        )
        which = format_count(done, "corpus", "corpora") if done == all_of_it else f"{done} of {all_of_it} corpora"
        seconds = sum(report.seconds for report in self.reports)
        return f"Last night: {which} brought up to date; {_render_counts(total)}, in {format_duration(seconds)}."


def _render_counts(report: RefreshReport) -> str:
    unread = f", {report.failed:,} could not be read" if report.failed else ""
    return f"{report.added:,} added, {report.changed:,} changed, {report.removed:,} removed{unread}"


def _render_fault(report: RefreshReport) -> str:
    return f". {sanitize_line(report.fault)}" if report.fault else ""


log = logging.getLogger(__name__)

_RECENT_NIGHTS = 50  # the number of recent nightly refreshes among which the last finished one is searched


@dataclass(frozen=True)
class NightLease:
    """Lets only one process run each nightly refresh."""

    nights: NightLog
    leases: Leases
    owner: str
    clock: Clock
    look_again: float = 15.0
    """Seconds between two checks of a refresh that another process runs, or that cannot be started."""
    renewing: float = 30.0  # seconds between two renewals of the lease; it outlasts several

    async def last(self) -> datetime | None:
        """Return when the newest finished nightly refresh was due; None if there is none."""
        await self.put_back()
        ended = (night.due for night in await self.nights.recent(_RECENT_NIGHTS) if night.ended)
        return next(ended, None)

    async def put_back(self) -> None:
        """Delete the records of nightly refreshes in the future, which were made while the clock was wrong."""
        if count := await self.nights.undo(self.clock() + CLOCK_LEAP):
            log.warning("the clock was set back: %d recorded nightly refreshes are in the future", count)

    async def keep(self, due: datetime, work: Callable[[], Coroutine[Any, Any, NightReport]]) -> NightReport | None:
        """Run the nightly refresh and store its report; return the report, or None if another process ran the refresh.

        Also returns None if the clock is set back in the meantime, so that the refresh is not due yet.
        """
        while due <= self.clock() + CLOCK_LEAP:
            ours = await self._begin(due)
            if ours is not None:
                return await self._run_leased(work) if ours else None
            await asyncio.sleep(self.look_again)
        return None

    async def _begin(self, due: datetime) -> bool | None:
        """Try to start a nightly refresh. True: it is started. False: it was already done. None: try again later."""
        try:
            if await self.nights.begin(due, self.clock(), self.owner):
                return True
            ended = any(night.due == due and night.ended for night in await self.nights.recent(_RECENT_NIGHTS))
        except StorageError as error:
            log.warning("cannot start the nightly refresh, retrying", extra={"cause": f"{error} {error.hint}"})
            return None
        return False if ended else None

    async def _run_leased(self, work: Callable[[], Coroutine[Any, Any, NightReport]]) -> NightReport | None:
        try:
            if night := await self._run_while_leased(work):
                await self._store_end(night)
            return night
        finally:
            with suppress(StorageError):  # the lease lapses by itself
                await self.leases.release(NIGHT_LEASE, self.owner)

    async def _run_while_leased(self, work: Callable[[], Coroutine[Any, Any, NightReport]]) -> NightReport | None:
        """Run the work while this process holds the lease; return None if another process takes it over."""
        async with run_beside(work(), name="night") as working:
            await wait_for_first(working, self._renew())
            if working.done():
                return working.result()
            log.warning("another process took over the nightly refresh: this one did not renew its lease in time")
            return None

    async def _store_end(self, night: NightReport) -> None:
        try:
            await self.nights.end(night.due, self.clock(), night.outcome, night.lines(), self.owner)
        except StorageError as error:
            log.warning("cannot store nightly report", extra={"cause": f"{error} {error.hint}"})

    async def _renew(self) -> None:
        """Renew the lease until another process holds it.

        A lease that lapsed while the database was unreachable is renewed.
        """
        while True:
            await asyncio.sleep(self.renewing)
            with suppress(StorageError):
                if not await self.leases.renew(NIGHT_LEASE, self.owner, self.clock(), NIGHT_LEASE_SECONDS):
                    return


RETRY_SECONDS = (15.0, 30.0, 60.0, *(300.0,) * 36)  # the waits before further attempts: three hours altogether


def render_admin_lines(night: NightReport, *, heartbeat: bool) -> tuple[str, ...]:
    """Return the lines for the admins; empty if all is well and no heartbeat is set."""
    return (*night.troubles(), *((night.summary(),) if heartbeat else ()))


@dataclass(frozen=True)
class NightNotifier:
    """Reports a nightly refresh in the log and to the admins."""

    schedule: Callable[[], ScheduleSettings]
    platforms: Mapping[str, Platform]  # the connected ones, by name
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    async def __call__(self, night: NightReport) -> None:
        for line in night.lines():
            log.info("last night: %s", line)
        schedule = self.schedule()
        lines = render_admin_lines(night, heartbeat=schedule.heartbeat)
        if lines and schedule.admin_channel:
            await self._post(schedule.admin_channel, lines)

    async def _post(self, channel: str, lines: Sequence[str]) -> None:
        """Post lines to a channel as one message; retry if the platform is unreachable."""
        name, _, rest = channel.partition(":")
        workspace, _, place = rest.partition("/")
        why = f"{name} is not connected."
        try:
            for seconds in (0.0, *RETRY_SECONDS):
                await self.sleep(seconds)
                if platform := self.platforms.get(name):
                    try:
                        await platform.call(Place(name, workspace, place), "\n".join(lines), people=())
                    except PlatformUnavailable as error:
                        why = str(error)
                    else:
                        return
        except PlatformError as error:
            why = str(error)
        except asyncio.CancelledError:
            _log_undelivered(channel, lines, f"The server stops; {why}")
            raise
        _log_undelivered(channel, lines, why)


def _log_undelivered(channel: str, lines: Sequence[str], why: str) -> None:
    for line in lines:
        log.warning(
            "sending the nightly report to the admins failed: %s", line, extra={"channel": channel, "cause": why}
        )


class RefreshCorpus(Protocol):
    """Refreshes a corpus from its source, as `LocalService.refresh` does."""

    async def __call__(
        self,
        corpus: str,
        source: SourceSettings,
        report: Callable[[RefreshProgress], None],
        *,
        night: datetime | None = None,
    ) -> RefreshReport: ...


def find_last_refresh(settings: Settings, corpora: Sequence[CorpusInfo]) -> datetime | None:
    """Return the time of the latest refresh of any corpus with a source; None if there was none."""
    sources = settings.sources
    done = [info.refreshed for info in corpora if info.name in sources and info.refreshed]
    return max(done, default=None)


async def refresh_every_source(settings: Settings, refresh: RefreshCorpus, due: datetime) -> NightReport:
    """Refresh every source, one after another, and return the reports and faults."""
    reports: list[RefreshReport] = []
    faults: dict[str, Fault] = {}
    for corpus, source in settings.sources.items():
        try:
            reports.append(await refresh(corpus, source, _ignore_progress, night=due))
        except Exception as error:
            faults[corpus] = explain_error(error)
            if not isinstance(error, ReportableError):
                log.exception("refreshing %s failed", corpus)
    return NightReport(due, tuple(reports), faults)


@asynccontextmanager
async def schedule_nights(
    read: Callable[[], Settings],
    refresh: RefreshCorpus,
    notify: Callable[[NightReport], Awaitable[None]],
    *,
    watch: NightLease,
    corpora: Sequence[CorpusInfo],
    pulse: float = CHECK_SECONDS,
) -> AsyncIterator[None]:
    """Run the nightly refreshes of `[schedule] nightly` within the block. A missed refresh is made up for immediately.

    Before the first recorded nightly refresh, one counts as missed only if it was due after the last refresh of any
    corpus. `read` returns the current settings; `notify` receives the report of each refresh that ran here, and its
    errors are logged; `watch` ensures that only one process runs each nightly refresh.
    """

    async def work(due: datetime) -> None:
        if night := await watch.keep(due, lambda: refresh_every_source(read(), refresh, due)):
            await notify(night)

    settings, now = read(), watch.clock()
    since = min(now, await watch.last() or find_last_refresh(settings, corpora) or now)
    again = partial(run_nightly, put_back=watch.put_back, clock=watch.clock, pulse=pulse)
    async with again(work, at=lambda: read().schedule.at, zone=settings.zone, since=since):
        yield


def _ignore_progress(progress: RefreshProgress) -> None: ...
