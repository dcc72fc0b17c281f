"""An embedder that waits until a test lets it go on, and waiting for what comes in its own time."""

import asyncio
import threading
from dataclasses import dataclass, field

from tests.fakes import WordEmbedder

PATIENCE = 20


@dataclass
class WaitingEmbedder(WordEmbedder):
    """Waits at the first text that says "wait" until it is told to go on."""

    begun: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    def embed(self, texts, *, polite=False):
        """Embed as words, later."""
        if any("wait" in text for text in texts):
            self.begun.set()
            assert self.go_on.wait(PATIENCE)
        return super().embed(texts, polite=polite)


async def until(there):
    """Wait until something is there."""
    async with asyncio.timeout(PATIENCE):
        while not await there():  # noqa: ASYNC110 - it is in the database, which sends no events
            await asyncio.sleep(0.01)
