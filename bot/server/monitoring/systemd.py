"""Notify systemd when the server is ready, alive or stopping, so that systemd restarts a server that is stuck."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from bot.desk.supervisor import run_beside

log = logging.getLogger(__name__)

READY, STOPPING, ALIVE = "READY=1", "STOPPING=1", "WATCHDOG=1"
Notify = Callable[[str], None]


def build_notify(environ: Mapping[str, str]) -> Notify:
    """Return a function that sends a state to systemd; it does nothing without systemd."""
    address = environ.get("NOTIFY_SOCKET", "")

    def notify(state: str) -> None:
        if not address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)  # noqa: FBT003 - the standard library's
                sender.sendto(state.encode(), f"\0{address[1:]}" if address.startswith("@") else address)
        except OSError as error:
            log.warning("notifying systemd failed", extra={"cause": str(error)})

    return notify


@asynccontextmanager
async def keep_alive(
    notify: Notify, environ: Mapping[str, str], *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> AsyncIterator[None]:
    """Report within the block that the event loop runs, three times per timeout of systemd's watchdog."""
    microseconds = environ.get("WATCHDOG_USEC", "")
    if not microseconds.isdigit() or not int(microseconds):
        yield
        return

    async def beat() -> None:
        while True:
            notify(ALIVE)
            await sleep(int(microseconds) / 3_000_000)

    async with run_beside(beat(), name="systemd"):
        yield
