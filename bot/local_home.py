"""A home that this process has open: `bot.home.Home` over `App`."""

import asyncio
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from bot import answering
from bot.app import App
from bot.refreshing import single_documents, sources
from bot.refreshing.forgotten import Forgotten
from bot.settings_of.sources import SourceSettings
from bot.turns import Answered, Asked
from ingest.holding import held, now
from ingest.recording import recorded
from ingest.refreshing import Progress, RefreshRefused, RefreshReport, refresh
from ingest.types import LiveSource
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

    async def refresh(
        self,
        corpus: str,
        source: SourceSettings,
        tell: Callable[[Progress], None],
        *,
        confirm_removal: bool = False,
        night: datetime | None = None,
    ) -> RefreshReport:
        """Bring a corpus up to date, one at a time: several would be slower than one after another.

        `night` is the night that it is done for, if it is.
        """
        async with self._refreshing:
            there = await self._opened(corpus, source, night)
            return await refresh(
                there,
                corpus,
                self.app.passages,
                progress=tell,
                confirm_removal=confirm_removal,
                source_digest=digest(source),
                night=night,
            )

    async def read_one(self, address: str, sources: Mapping[str, SourceSettings]) -> tuple[RefreshReport, ...]:
        """Read one document in, whatever else is under way."""
        return await single_documents.read_one(self.app, address, sources, self._around)

    async def forget(self, address: str, corpus: str) -> Forgotten:
        """Forget one document, whatever else is under way."""
        return await single_documents.forget_one(self.app, address, corpus)

    async def _opened(self, corpus: str, source: SourceSettings, night: datetime | None) -> LiveSource:
        """Open a source; where that fails, the history tells of it as of any other refresh."""
        try:
            return await asyncio.to_thread(sources.opened, source, self._around)
        except Exception:
            store = self.app.passages
            with suppress(RefreshRefused):  # another process has it open
                begun = RefreshReport(corpus)
                async with (
                    held(store.leases, corpus, clock=now) as lease,
                    recorded(store.runs, begun, lease.owner, night, now),
                ):
                    raise
            raise

    @property
    def _around(self) -> sources.Surroundings:
        return sources.Surroundings(self.app.settings.home, os.environ)


def digest(source: SourceSettings) -> str:
    """Return a short hash of a source's settings: what was read under others says nothing of what is there now."""
    return hashlib.sha256(source.model_dump_json().encode()).hexdigest()[:16]
