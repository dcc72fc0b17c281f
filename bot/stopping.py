"""SIGTERM and Ctrl-C for a server: the first asks it to stop in order, a second one hurries it."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Stopping:
    """What was asked of a server so far."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """To stop: take nothing more, and let what is under way finish for a while."""
    hurried: asyncio.Event = field(default_factory=asyncio.Event)
    """To finish nothing any more: what is under way is put back."""

    def hear(self) -> None:
        """Note a further signal."""
        if self.asked.is_set():
            self.hurried.set()
        self.asked.set()


@contextmanager
def stoppable() -> Iterator[Stopping]:
    """Give what signals ask within the block; they do nothing else."""
    loop, stopping = asyncio.get_running_loop(), Stopping()
    for number in SIGNALS:
        loop.add_signal_handler(number, stopping.hear)
    try:
        yield stopping
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
