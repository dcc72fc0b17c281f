"""Tests of night reports: one log line per corpus, and a message to admins about problems."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.desk.platform_port import CannotPost, PlatformUnavailable
from bot.server.refresh.nightly import RETRY_SECONDS, NightNotifier, NightReport, render_admin_lines
from bot.settings.tables.settings_tables import ScheduleSettings
from bot.types import Place, PostedMessages
from bot.views.error_messages import Fault
from ingest.types import RefreshReport

NIGHTLY = "bot.server.refresh.nightly"
DUE = datetime(2026, 3, 1, 3, tzinfo=UTC)
READ = RefreshReport("docs", 2, 1, 30, 1, failures=(("scan.pdf", "holds no text"),), seconds=3.2)
HELD = RefreshReport(
    "wiki", held_back=31, fault="31 of 40 are gone.\n`--confirm-removal wiki` removes them.", seconds=80
)
FAILED = {"site": Fault("source_unavailable", "example.com does not answer.", "Look whether it runs.")}
GOOD = NightReport(DUE, (READ,), {})
BAD = NightReport(DUE, (READ, HELD), FAILED)


def test_report_has_a_line_for_each_corpus() -> None:
    assert (BAD.outcome, GOOD.outcome) == ("failed", "done")
    assert list(BAD.lines()) == [
        "docs: 2 added, 1 changed, 1 removed, 1 could not be read, in 3 s",
        "wiki: 0 added, 0 changed, 0 removed, in 1 min. 31 of 40 are gone. `--confirm-removal wiki` removes them.",
        "site: not brought up to date. example.com does not answer — Look whether it runs.",
    ]


def test_admins_are_notified_of_failures_and_held_back_removals() -> None:
    trouble = (
        "site: not brought up to date. example.com does not answer — Look whether it runs.",
        "wiki: brought up to date. 31 of 40 are gone. `--confirm-removal wiki` removes them.",
    )
    well = "Last night: 1 corpus brought up to date; 2 added, 1 changed, 1 removed, 1 could not be read, in 3 s."
    some = (
        "Last night: 2 of 3 corpora brought up to date; 2 added, 1 changed, 1 removed, 1 could not be read, in 1 min."
    )

    assert render_admin_lines(GOOD, heartbeat=False) == ()
    assert render_admin_lines(GOOD, heartbeat=True) == (well,)
    assert render_admin_lines(BAD, heartbeat=False) == trouble
    assert render_admin_lines(BAD, heartbeat=True) == (*trouble, some)


class _Channel:
    """A platform that records its calls; `faults` are raised first."""

    def __init__(self, *faults: Exception) -> None:
        self.called: list[tuple[Place, str]] = []
        self.faults = list(faults)

    async def call(self, place: Place, text: str, people: Sequence[str]) -> PostedMessages:
        assert not people
        if self.faults:
            raise self.faults.pop(0)
        self.called.append((place, text))
        return PostedMessages(("m",))


def _notify(night: NightReport, platforms: dict[str, Any], *, arrives: Any = None, **schedule: Any) -> list[float]:
    """Report a night; return the seconds waited. `arrives` is connected after the first wait."""
    waits = list[float]()

    async def sleep(seconds: float) -> None:
        if seconds:
            waits.append(seconds)
            if arrives:
                platforms["slack"] = arrives

    settings = ScheduleSettings(**{"admin_channel": "slack:T1/C9"} | schedule)
    asyncio.run(NightNotifier(lambda: settings, platforms, sleep)(night))
    return waits


def test_report_is_logged_and_problems_are_posted_without_mentions(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "bot.server.refresh.nightly")
    channel = _Channel()

    assert _notify(BAD, {"slack": channel}) == []
    assert channel.called == [(Place("slack", "T1", "C9"), "\n".join(render_admin_lines(BAD, heartbeat=False)))]
    assert [record.getMessage() for record in caplog.records if record.name == NIGHTLY] == [
        f"last night: {line}" for line in BAD.lines()
    ]
    assert _notify(BAD, {"slack": channel}, admin_channel="") == []
    assert _notify(GOOD, {"slack": channel}) == []
    assert len(channel.called) == 1


def test_unreachable_platform_is_retried() -> None:
    """It may be unconnected, as after a start, or not respond; it is notified once."""
    late, away = _Channel(), _Channel(PlatformUnavailable("Slack is away."), PlatformUnavailable("Still.", seconds=3))

    assert _notify(BAD, {}, arrives=late) == list(RETRY_SECONDS[:1])
    assert _notify(BAD, {"slack": away}) == list(RETRY_SECONDS[:2])
    assert (len(late.called), len(away.called)) == (1, 1)


@pytest.mark.parametrize(
    ("platforms", "why", "waited"),
    [
        ({}, "slack is not connected.", len(RETRY_SECONDS)),
        ({"slack": _Channel(CannotPost("The channel is archived."))}, "The channel is archived.", 0),
        ({"slack": _Channel(*(PlatformUnavailable("Away.") for _ in range(99)))}, "Away.", len(RETRY_SECONDS)),
    ],
)
def test_failed_delivery_is_logged(
    platforms: dict[str, Any], why: str, waited: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert len(_notify(BAD, platforms)) == waited

    lost = [(record.getMessage(), record.cause) for record in caplog.records]  # type: ignore[attr-defined]
    failed = "sending the nightly report to the admins failed"
    assert lost == [(f"{failed}: {line}", why) for line in render_admin_lines(BAD, heartbeat=False)]


def test_stopping_server_logs_an_undelivered_report(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        waiting = asyncio.Event()

        async def sleep(seconds: float) -> None:
            if seconds:
                waiting.set()
                await asyncio.Event().wait()

        telling = NightNotifier(lambda: ScheduleSettings(admin_channel="slack:T1/C9"), {}, sleep)
        task = asyncio.create_task(telling(BAD))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())

    assert [record.cause for record in caplog.records if record.name == NIGHTLY] == [
        "The server stops; slack is not connected."
    ] * 2  # type: ignore[attr-defined]
