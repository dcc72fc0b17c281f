"""A home that this process has open: `bot.home.Home` over `App`."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bot import answering, sources
from bot.app import App
from bot.source_settings import SourceSettings
from bot.turns import Answered, Asked
from ingest.refreshing import Progress, RefreshReport, refresh
from pipeline.types import Event
from storage.types import CorpusInfo, Hit


@dataclass(frozen=True)
class LocalHome:
    """The home itself."""

    app: App
    _refreshing: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def answer(self, asked: Asked, tell: Callable[[Event], None]) -> Answered:
        """Answer a question, as `answering.answer` does."""
        return await answering.answer(self.app, asked, tell)

    async def check(self, asked: Asked, tell: Callable[[Event], None]) -> Answered:
        """Check a claim, as `answering.check` does."""
        return await answering.check(self.app, asked, tell)

    async def search(self, query: str, corpora: Sequence[str], count: int) -> tuple[Hit, ...]:
        """Return the passages that fit best."""
        return await self.app.passages.search(query, corpora, count)

    async def corpora(self) -> tuple[CorpusInfo, ...]:
        """Return what is indexed."""
        return await self.app.manifest.corpora()

    async def refresh(self, corpus: str, source: SourceSettings, tell: Callable[[Progress], None]) -> RefreshReport:
        """Bring a corpus up to date, one at a time: two that read the same source would undo each other's work."""
        around = sources.Surroundings(self.app.settings.home, os.environ)
        there = await asyncio.to_thread(sources.opened, source, around)
        async with self._refreshing:
            return await refresh(there, corpus, self.app.passages, progress=tell)
