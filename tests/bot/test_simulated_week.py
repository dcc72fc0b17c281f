"""Two servers on one database for a simulated week: each nightly refresh runs once, and is listed afterwards."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from zoneinfo import ZoneInfo

from rich.console import Console

from bot.cli.rendering.refresh_view import build_refreshes_document as as_document
from bot.cli.rendering.refresh_view import render_refreshes
from bot.server.refresh.nightly import NightLease, NightReport, render_admin_lines, schedule_nights
from bot.server.refresh.run_history import RefreshHistory, build_history
from bot.settings.tables.settings_tables import Settings
from bot.settings.tables.source_settings import SourceSettings
from ingest.refresh.refresh_run import record_run
from ingest.types import RefreshProgress, RefreshReport, SourceUnavailable
from storage.database.engine import open_database
from tests.bot.server.watchman import Clock, until

BERLIN = ZoneInfo("Europe/Berlin")
SETTINGS = Settings.model_validate({
    "timezone": "Europe/Berlin",
    "schedule": {"nightly": "02:30"},
    "corpus": [{"name": name, "source": {"type": "folder", "path": name}} for name in ("handbook", "wiki")],
})  # fmt: skip
AWAY = SourceUnavailable("The folder of “wiki” is not there.", hint="Mount it again.")
STEP = timedelta(seconds=20)
"""How long each refresh takes by the clock; both together take less than a lease lasts."""


def _at(day: int, hour: int, minute: int = 0, month: int = 3) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=BERLIN)


@dataclass
class _Server:
    """One of two processes: what it refreshed, for which night, and what it reported to the admins."""

    name: str
    clock: Clock
    history: RefreshHistory
    broken: set[datetime]
    """The nights in which a source is unavailable."""
    worked: list[tuple[datetime | None, str]] = field(default_factory=list)
    reported: list[tuple[datetime, tuple[str, ...]]] = field(default_factory=list)

    async def refresh(
        self,
        corpus: str,
        source: SourceSettings,
        tell: Callable[[RefreshProgress], None],
        *,
        night: datetime | None = None,
    ) -> RefreshReport:
        """Leave the history that `ingest.refresh.corpus_refresh.refresh_corpus` leaves."""
        del source, tell
        self.worked.append((night, corpus))
        report = RefreshReport(corpus, changed=1, unchanged=9)
        async with record_run(self.history.runs, report, f"{self.name}:1:x", night, self.clock):
            self.clock.now += STEP
            await asyncio.sleep(0)
            if night in self.broken and corpus == "wiki":
                raise AWAY
        return report

    async def hear(self, night: NightReport) -> None:
        self.reported.append((night.due, render_admin_lines(night, heartbeat=True)))

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        history = self.history
        watch = NightLease(history.nights, history.leases, f"{self.name}:1:x", self.clock, look_again=0.002)
        async with schedule_nights(lambda: SETTINGS, self.refresh, self.hear, watch=watch, corpora=(), pulse=0.002):
            yield


async def _night(clock: Clock, moment: datetime, servers: list[_Server], count: int) -> None:
    """Set the clock and wait until this many nights are reported in all."""
    clock.now = moment
    await until(lambda: sum(len(server.reported) for server in servers) == count)
    for _ in range(20):  # the other server looks at it, too
        await asyncio.sleep(0.002)


async def _week(home: Path) -> tuple[list[_Server], RefreshHistory, Clock]:
    clock, broken = Clock(_at(27, 12)), {_at(30, 2, 30).astimezone(UTC)}
    async with AsyncExitStack() as stack:
        databases = [stack.enter_context(open_database("", home=home)) for _ in range(2)]
        servers = [
            _Server(name, clock, build_history(database), broken)
            for name, database in zip(("left", "right"), databases, strict=True)
        ]
        async with servers[0].serving(), servers[1].serving():
            await _night(clock, _at(28, 2, 30), servers, 1)
            await _night(clock, _at(29, 3, 29), servers, 1)  # 02:30 is skipped
            await _night(clock, _at(29, 3, 30), servers, 2)
            await _night(clock, _at(30, 2, 31), servers, 3)  # a source is unavailable
        # No server runs for two nights; the second refresh is done in the morning.
        clock.now = _at(1, 9, month=4)
        async with servers[0].serving(), servers[1].serving():
            await _night(clock, _at(1, 9, month=4), servers, 4)
            await _night(clock, _at(2, 2, 30, month=4), servers, 5)
            clock.now = _at(5, 12, month=4)  # a wrong clock
            await _night(clock, _at(5, 12, month=4), servers, 6)
            await _night(clock, _at(2, 13, month=4), servers, 6)  # put right
            await until_put_back(servers[0].history, clock)
            await _night(clock, _at(3, 2, 30, month=4), servers, 7)
    return servers, build_history(databases[0]), clock


async def until_put_back(history: RefreshHistory, clock: Clock) -> None:
    async with asyncio.timeout(60):
        while any(night.due > clock.now for night in await history.nights.recent()):  # noqa: ASYNC110 - as in `until`
            await asyncio.sleep(0.002)


async def test_nightly_refreshes_of_a_week_run_once_each(tmp_path: Path) -> None:
    servers, _, clock = await _week(tmp_path)
    worked = Counter(refresh for server in servers for refresh in server.worked)
    reported = sorted(report for server in servers for report in server.reported)
    local = [due.astimezone(BERLIN).strftime("%d %H:%M") for due, _ in reported]
    with open_database("", home=tmp_path) as database:
        found = await build_history(database).summarize(SETTINGS, clock.now, count=20)

    assert set(worked.values()) == {1}
    assert local == ["28 02:30", "29 03:30", "30 02:30", "01 02:30", "02 02:30", "03 02:30", "05 02:30"]
    assert [(night.due.astimezone(BERLIN).strftime("%d %H:%M"), night.outcome) for night in found.nights] == [
        *(("03 02:30", "done"), ("02 02:30", "done"), ("01 02:30", "done"), ("31 02:30", "missed")),
        *(("30 02:30", "failed"), ("29 03:30", "done"), ("28 02:30", "done")),
    ]
    assert reported[2][1] == (
        "wiki: not brought up to date. The folder of “wiki” is not there — Mount it again.",
        "Last night: 1 of 2 corpora brought up to date; 0 added, 1 changed, 0 removed, in 0 s.",
    )
    assert [run.state for run in found.ended].count("failed") == 1
    assert found.next_night == _at(4, 2, 30, month=4)

    shown = Console(file=StringIO(), width=200)
    shown.print(render_refreshes(found, BERLIN))
    text = " ".join(shown.file.getvalue().split())  # type: ignore[attr-defined]
    for line in (
        "Running now: nothing.",
        "Next nightly refresh: 2026-04-04 02:30, in 23 h 59 min, if `footnote serve` is running then.",
        "missed 2026-03-31 02:30",
        "wiki: not brought up to date. The folder of “wiki” is not there — Mount it again.",
        "2026-03-30 02:31 wiki: The folder of “wiki” is not there. Mount it again.",
    ):
        assert line in text
    document = as_document(found)
    assert (len(document["nights"]), len(document["runs"]), document["running"]) == (7, 14, [])
