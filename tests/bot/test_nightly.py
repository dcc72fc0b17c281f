"""The nights of a server: every source once, one that fails takes no other with it, a missed night is made up for."""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from bot.nightly import Night, every_source, last_night, nights
from bot.settings import Settings
from bot.source_settings import SourceSettings
from ingest.refreshing import Progress, RefreshRefused, RefreshReport
from storage.types import CorpusInfo

NOW = datetime.now(UTC)
SOURCE = {"type": "folder", "path": "docs"}


def _settings(nightly: str = "") -> Settings:
    corpora = [{"name": name, "source": SOURCE} for name in ("one", "two")]
    return Settings.model_validate({"corpus": [*corpora, {"name": "by-hand"}], "schedule": {"nightly": nightly}})


def _info(name: str, at: datetime | None) -> CorpusInfo:
    return CorpusInfo(name, 1, 1, at, 0)


class _Refresh:
    """Refreshes as it is told to, and says what it was asked for."""

    def __init__(self, **errors: Exception) -> None:
        self.asked: list[str] = []
        self._errors = errors

    async def __call__(self, corpus: str, source: SourceSettings, tell: Callable[[Progress], None]) -> RefreshReport:
        self.asked.append(corpus)
        tell(Progress(1, 1, 1, 0.1))
        assert source.type == "folder"
        if corpus in self._errors:
            raise self._errors[corpus]
        return RefreshReport(corpus, added=2, removed=1, failures=(("scan.pdf", "holds no text"),), seconds=3.2)


def test_every_source_is_read_in_and_told_in_a_line() -> None:
    """A corpus without a source is left as it is."""
    refresh = _Refresh()
    night = asyncio.run(every_source(_settings(), refresh))

    assert refresh.asked == ["one", "two"]
    assert list(night.lines()) == [
        "one: 2 added, 0 changed, 1 removed, 1 could not be read, in 3 s",
        "two: 2 added, 0 changed, 1 removed, 1 could not be read, in 3 s",
    ]


def test_a_corpus_that_fails_takes_no_other_with_it(caplog: pytest.LogCaptureFixture) -> None:
    """What a person can mend is told; what is a fault of the code is told and logged."""
    refused = _Refresh(one=RefreshRefused("The folder is empty.", hint="Look where it went."), two=KeyError("x"))
    with caplog.at_level(logging.ERROR):
        night = asyncio.run(every_source(_settings(), refused))

    assert refused.asked == ["one", "two"]
    assert next(night.lines()) == "one: not brought up to date. The folder is empty — Look where it went."
    assert night.faults["two"].kind == "internal"
    assert [record.message for record in caplog.records] == ["two could not be brought up to date"]


@pytest.mark.parametrize(
    ("times", "expected"),
    [((None, None, NOW), None), ((NOW - timedelta(days=2), NOW - timedelta(days=1), NOW), NOW - timedelta(days=1))],
)
def test_the_last_night_is_the_newest_refresh_of_what_has_a_source(
    times: tuple[datetime | None, ...], expected: datetime | None
) -> None:
    """What was read in by hand says nothing of nights."""
    infos = [_info(name, at) for name, at in zip(("one", "two", "by-hand"), times, strict=True)]

    assert last_night(_settings(), infos) == expected


def _told(nightly: str, refreshed: datetime | None, wanted: int) -> list[Night]:
    heard: list[Night] = []

    async def run() -> None:
        enough = asyncio.Event()

        async def told(night: Night) -> None:
            heard.append(night)
            enough.set()

        async with nights(_settings(nightly), _Refresh(), told, corpora=[_info("one", refreshed)], now=NOW):
            if wanted:
                await asyncio.wait_for(enough.wait(), 10)
            else:
                await asyncio.sleep(0)

    asyncio.run(run())
    return heard


def test_a_night_that_the_server_was_down_for_is_made_up_for() -> None:
    """At once."""
    (night,) = _told("03:00", NOW - timedelta(days=2), 1)

    assert [report.corpus for report in night.reports] == ["one", "two"]


@pytest.mark.parametrize(
    ("nightly", "refreshed"),
    [("", NOW - timedelta(days=9)), ("03:00", None), ("03:00", NOW + timedelta(days=900))],
)
def test_nothing_is_made_up_for_where_nothing_was_missed(nightly: str, refreshed: datetime | None) -> None:
    """No night is set, nothing was ever read in, or the clock was once wrong."""
    assert _told(nightly, refreshed, 0) == []
