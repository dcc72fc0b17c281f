"""Tests that systemd is notified of the server's state."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.server.monitoring.systemd import ALIVE, READY, build_notify, keep_alive


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(60)
        yield listening


def test_state_is_sent_and_missing_systemd_is_ignored(systemd: socket.socket) -> None:
    build_notify({"NOTIFY_SOCKET": systemd.getsockname()})(READY)
    assert systemd.recv(100) == b"READY=1"
    build_notify({})(READY)
    build_notify({"NOTIFY_SOCKET": "/nowhere/at/all"})(READY)


async def test_event_loop_reports_three_times_per_watchdog_timeout() -> None:
    messages, waits, enough = list[str](), list[float](), asyncio.Event()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            enough.set()
            await asyncio.Event().wait()

    async with keep_alive(messages.append, {"WATCHDOG_USEC": "30000000"}, sleep=sleep):
        await enough.wait()
    assert (messages, waits) == ([ALIVE] * 3, [10.0] * 3)
    async with keep_alive(messages.append, {}):
        pass
