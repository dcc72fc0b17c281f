"""Tests that a blocked loop is logged, and corpora missing from the settings or the database."""

import asyncio

import pytest

from bot.server.monitoring.health import LAG_SAMPLE_SECONDS, list_corpus_reasons, watch_event_loop
from bot.settings.tables.settings_tables import Settings


async def test_event_loop_lag_is_logged_only_beyond_the_tolerance(caplog: pytest.LogCaptureFixture) -> None:
    now, took, done = 0.0, [0.0, 0.9, 1.5, 0.2], asyncio.Event()

    async def sleep(seconds: float) -> None:
        nonlocal now
        if not took:
            done.set()
            await asyncio.Event().wait()
        now += seconds + took.pop(0)

    async with watch_event_loop(tolerated=1.0, clock=lambda: now, sleep=sleep):
        await done.wait()

    assert LAG_SAMPLE_SECONDS < 1.0
    (record,) = caplog.records
    assert (record.message, record.seconds) == ("the event loop was blocked", 1.5)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("read", "served", "expected"),
    [
        (["news"], True, []),
        (["news", "old"], False, []),
        (["old"], True, ["news: in the settings, but", "old: ingested, but"]),
    ],
)
def test_corpora_missing_in_settings_or_database_are_reported(
    read: list[str], *, served: bool, expected: list[str]
) -> None:
    reasons = list(list_corpus_reasons(Settings.model_validate({"corpus": [{"name": "news"}]}), read, served=served))

    assert [reason.startswith(start) for reason, start in zip(reasons, expected, strict=True)] == [True] * len(expected)
