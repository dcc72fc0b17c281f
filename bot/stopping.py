"""SIGTERM and Ctrl-C for a server: the first asks it to stop in order, each further one hurries it."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stoppable() -> Iterator[asyncio.Event]:
    """Give an event that the first signal within the block sets; each further one cancels what the block waits for.

    A block that was hurried so ends without an error: that it ended is what was asked for.
    """
    asked, loop, task = asyncio.Event(), asyncio.get_running_loop(), asyncio.current_task()
    hurried = 0

    def hear() -> None:
        nonlocal hurried
        if not asked.is_set():
            asked.set()
        elif task:
            hurried += 1
            task.cancel()

    for number in SIGNALS:
        loop.add_signal_handler(number, hear)
    try:
        yield asked
    except asyncio.CancelledError:
        if not (task and hurried):
            raise
        while hurried:
            hurried -= task.uncancel() >= 0
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
