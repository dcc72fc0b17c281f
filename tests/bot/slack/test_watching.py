"""Silent sockets are reopened, on a manual clock."""

import asyncio

from bot.platforms.slack.transport import CHECK_SECONDS, DEAF_SECONDS, LOST_SECONDS, SocketWatch, watch_socket
from tests.platforms.clock import ManualClock


class Socket:
    """Counts how often it is reopened; may fail."""

    def __init__(self, *, fails: int = 0) -> None:
        self.closed, self.opened, self.fails = False, 0, fails

    async def connect_to_new_endpoint(self, force: bool = False) -> None:  # noqa: FBT001, FBT002 - the SDK's own
        assert force
        self.opened += 1
        if self.opened <= self.fails:
            raise ConnectionError("away")


async def begun(socket):
    clock = ManualClock(0.0)
    hearing = SocketWatch(clock.now, clock.sleep)
    task = asyncio.ensure_future(watch_socket(hearing, socket))
    await asyncio.sleep(0)
    return clock, hearing, task


async def test_active_socket_is_not_reopened():
    socket = Socket()
    clock, hearing, task = await begun(socket)
    for _ in range(20):
        await clock.advance(DEAF_SECONDS - CHECK_SECONDS - 1)
        hearing.heard(greeting=False)
    task.cancel()

    assert socket.opened == 0


async def test_silent_socket_is_reopened_after_each_interval():
    socket = Socket(fails=1)
    clock, _, task = await begun(socket)
    await clock.advance(DEAF_SECONDS + CHECK_SECONDS)
    assert socket.opened == 1
    await clock.advance(DEAF_SECONDS - 2 * CHECK_SECONDS)
    assert socket.opened == 1
    await clock.advance(2 * CHECK_SECONDS)
    task.cancel()

    assert socket.opened == 2


async def test_closed_socket_is_not_watched():
    socket = Socket()
    clock, _, task = await begun(socket)
    socket.closed = True
    await clock.advance(2 * DEAF_SECONDS)
    await task

    assert socket.opened == 0


def test_long_silence_before_a_greeting_means_lost_events():
    now = [0.0]
    hearing = SocketWatch(lambda: now[0])
    now[0] = 2 * LOST_SECONDS
    assert hearing.heard(greeting=True) == 0
    now[0] += LOST_SECONDS - 1
    assert hearing.heard(greeting=True) == 0
    now[0] += LOST_SECONDS + 1
    assert hearing.heard(greeting=False) == 0
    now[0] += LOST_SECONDS + 1

    assert hearing.heard(greeting=True) == LOST_SECONDS + 1
