"""Embed passages of lazy corpora that are likely to be needed next, while no question or refresh runs.

The documents that answers cite most often come first. Then come the documents with the most alternative titles, which
are usually those with the most links. A question interrupts the embedding within some hundredths of a second.
"""

import asyncio
import heapq
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bot.desk.supervisor import run_beside
from storage.errors import StorageError
from storage.passages import PassageStore
from storage.record.record_search import RecordSearch
from storage.search.lazy_vectors import EMBEDDED_AT_ONCE
from storage.types import DenseMode, DocumentId

log = logging.getLogger(__name__)

QUIET_SECONDS = 60.0  # after the last search
LOOK_SECONDS = 30.0
REST_SECONDS = 3_600.0  # once everything is embedded, or no more vectors fit
MOST_DOCUMENTS = 20_000  # of each kind
DOCUMENTS_AT_ONCE = 20
SCANNED_AT_ONCE = 20_000  # version numbers
EARLY = 4.0  # half-lives by which these vectors count as older, so that vectors made for questions are kept longer


@dataclass(frozen=True)
class IdleEmbedding:
    """Embeds passages while the server is idle; `busy` returns whether other work is running."""

    passages: PassageStore
    busy: Callable[[], bool]
    quiet: float = QUIET_SECONDS
    clock: Callable[[], float] = time.monotonic

    def idle(self) -> bool:
        return not self.busy() and self.clock() - self.passages.activity.last >= self.quiet

    async def work(self) -> bool:
        """Embed until a question comes. Return whether all is embedded, or no more vectors can be stored."""
        manifest = self.passages.manifest
        lazy = [info.name for info in await manifest.catalogue() if info.dense is DenseMode.LAZY]
        if not lazy:
            return True
        record = RecordSearch(manifest.database)
        cited = [document for name in lazy for document in await record.cited_documents(name, limit=MOST_DOCUMENTS)]
        if not await self._embed([(citation.corpus, citation.document) for citation in cited]):
            return False
        return await self._embed(await self._find_linked(lazy))

    async def _embed(self, names: Sequence[DocumentId]) -> bool:
        store = self.passages
        for start in range(0, len(names), DOCUMENTS_AT_ONCE):
            some = names[start : start + DOCUMENTS_AT_ONCE]
            for corpus in sorted({corpus for corpus, _ in some}):
                stored = await store.manifest.stored(corpus, [key for of, key in some if of == corpus])
                rows = [(version.document, passage) for version in stored.values() for passage in version.passages]
                for first in range(0, len(rows), EMBEDDED_AT_ONCE):
                    if not self.idle():
                        return False
                    if await store.lazy.room() < EMBEDDED_AT_ONCE:
                        return True
                    await store.lazy.fill(rows[first : first + EMBEDDED_AT_ONCE], early=EARLY)
        return True

    async def _find_linked(self, corpora: Sequence[str]) -> list[DocumentId]:
        """Return the documents with the most alternative titles, most first; empty if a question interrupts."""
        manifest, best = self.passages.manifest, list[tuple[int, DocumentId]]()
        for start in range(0, (await manifest.lag(0, 1)).head, SCANNED_AT_ONCE):
            if not self.idle():
                return []
            aliases = await manifest.count_aliases(corpora, start, start + SCANNED_AT_ONCE)
            best = heapq.nlargest(MOST_DOCUMENTS, [*best, *((count, name) for name, count in aliases.items())])
        return [name for _, name in best]


@asynccontextmanager
async def embed_when_idle(work: IdleEmbedding, *, pulse: float = LOOK_SECONDS) -> AsyncIterator[None]:
    """Embed passages ahead of questions within the block, whenever the server is idle."""

    async def watch() -> None:
        while True:
            await asyncio.sleep(pulse)
            try:
                done = work.idle() and await work.work()
            except StorageError as error:
                log.warning("embedding ahead failed", extra={"cause": str(error)})
                done = True
            if done:
                await asyncio.sleep(REST_SECONDS)

    async with run_beside(watch(), name="embedding ahead"):
        yield
