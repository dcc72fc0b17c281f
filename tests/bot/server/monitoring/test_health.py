"""A loop that stands still is told of."""

import asyncio

import pytest

from bot.server.monitoring.health import LAG_SAMPLE_SECONDS, watch_event_loop


async def test_only_what_is_longer_than_tolerated_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """With its length."""
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
