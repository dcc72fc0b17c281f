"""The threads of discord.py that keep connections alive, ended with the client that they are for.

discord.py tells such a thread to end where it closes a connection, and forgets it where beginning a session is broken
off: it then wakes after its interval, perhaps when the event loop is closed.
"""

import asyncio
import logging
import threading
from collections.abc import Callable

from discord.gateway import DiscordWebSocket, KeepAliveHandler

log = logging.getLogger(__name__)

SECONDS = 5.0
"""How long such a thread may take to end: it is sending at most, over a connection that is closed."""
_LOOK_SECONDS = 0.005


async def end_heartbeats(ours: Callable[[DiscordWebSocket], bool]) -> None:
    """End the threads of our connections, and wait for them. The loop has to run meanwhile, for they use it."""
    found = [one for one in threading.enumerate() if isinstance(one, KeepAliveHandler) and ours(one.ws)]
    for thread in found:
        thread.stop()
    try:
        async with asyncio.timeout(SECONDS):
            while any(thread.is_alive() for thread in found):  # noqa: ASYNC110 - a thread tells nobody of its end
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        log.warning("a heartbeat of discord.py's does not end")
