"""Whether a socket still hears: one that has heard nothing for too long is opened anew, however alive it looks.

A socket may answer pings and yet deliver nothing (slackapi/bolt-python 1529). Slack delivers what was not acknowledged
three times within six minutes, so a socket that is opened anew after four minutes of silence loses nothing; where it
was away for longer, what was written meanwhile is caught up.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

log = logging.getLogger(__name__)

DEAF_SECONDS = 240.0
LOST_SECONDS = 300.0
"""After so long a silence that ends with a new connection, Slack has given events up."""
CHECK_SECONDS = 15.0


class Socket(Protocol):
    """What is watched."""

    closed: bool

    async def connect_to_new_endpoint(self, force: bool = False) -> None:  # noqa: FBT001, FBT002 - the SDK's own
        """Open it anew."""
        ...


class Hearing:
    """When a socket heard something last, by a clock in seconds that nobody sets."""

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Take a clock, and what waits by it."""
        self._now, self.sleep = now, sleep
        self._last = self._tried = now()
        self.greeted = False
        """Whether Slack has said hello."""

    def heard(self, *, greeting: bool) -> float:
        """Note that something came, and return for how many seconds events were lost before it; 0 if they were not."""
        now = self._now()
        silence = now - self._last if greeting and self.greeted else 0.0
        self.greeted = self.greeted or greeting
        self._last = self._tried = now
        return silence if silence > LOST_SECONDS else 0.0

    def deaf(self) -> bool:
        """Return whether it has heard nothing for too long, and nobody has opened it anew since."""
        return self._now() - max(self._last, self._tried) >= DEAF_SECONDS

    def tried(self) -> None:
        """Note that it is opened anew."""
        self._tried = self._now()


async def watched(hearing: Hearing, socket: Socket) -> None:
    """Open a socket anew whenever it is deaf, until this is cancelled."""
    while not socket.closed:
        await hearing.sleep(CHECK_SECONDS)
        if not hearing.deaf() or socket.closed:
            continue
        hearing.tried()
        log.info("the socket to Slack has been silent, and is opened anew")
        try:
            await socket.connect_to_new_endpoint(force=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
            log.warning("the socket could not be opened anew", extra={"cause": str(error)})
