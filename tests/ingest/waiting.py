"""Running refreshes for tests: an embedder that waits until it is released."""

import asyncio
import threading
from dataclasses import dataclass, field

from ingest.refresh.corpus_refresh import refresh_corpus
from tests.fakes import WordEmbedder
from tests.storage.stores import listed_passages

PATIENCE = 60


@dataclass
class WaitingEmbedder(WordEmbedder):
    """Waits at the first text that contains "wait" until it is released."""

    begun: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    def embed(self, texts, *, polite=False):
        """Embed the words, after the wait."""
        if any("wait" in text for text in texts):
            self.begun.set()
            assert self.go_on.wait(PATIENCE)
        return super().embed(texts, polite=polite)


async def until(condition):
    """Wait until an asynchronous condition holds."""
    async with asyncio.timeout(PATIENCE):
        while not await condition():  # noqa: ASYNC110 - it is in the database, which sends no events
            await asyncio.sleep(0.01)


async def until_true(condition):
    """Wait until a condition holds that only polling shows."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(0.001)


async def count_changes(store, source, corpus="wiki"):
    """Refresh; return the numbers of added, changed, unchanged, removed and unreadable documents."""
    report = await refresh_corpus(source, corpus, store, progress=lambda _: None)
    return (report.added, report.changed, report.unchanged, report.removed, report.failed)


async def run(store, source, **options):
    """Refresh the corpus of these tests."""
    return await refresh_corpus(source, "c", store, progress=lambda _: None, **options)


async def begun(store, embedder, source, **options):
    """Start a refresh; return its task once it is in the middle of a batch."""
    task = asyncio.create_task(run(store, source, **options))
    assert await asyncio.to_thread(embedder.begun.wait, PATIENCE)
    return task


async def texts(store, key):
    """Return the texts of a document's passages."""
    return [passage.text for passage in await listed_passages(store.manifest, "c", key)]
