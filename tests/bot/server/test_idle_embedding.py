"""Tests that likely passages are embedded in idle time until the store is full."""

from dataclasses import replace
from pathlib import Path

import pytest

from bot.server.idle_embedding import IdleEmbedding
from ingest.refresh.corpus_refresh import refresh_corpus
from storage.passages import PassageStore
from storage.types import DenseMode
from tests.fakes import PageSource, WordEmbedder
from tests.storage.stores import opened

PAGES = {f"{n}": {"": f"Gate number {n} of the harbour opens at {n} sharp."} for n in range(30)}


class Titled(PageSource):
    """A source whose page "7" has further titles."""

    def _load(self, key):
        page = super()._load(key)
        return replace(page, aliases=("Northern gate", "Old gate")) if key == "7" else page


@pytest.fixture
async def store(tmp_path: Path):
    with opened(tmp_path, WordEmbedder()) as found:
        await refresh_corpus(Titled(PAGES), "gates", found, progress=lambda _: None, dense=DenseMode.LAZY)
        yield found
        await found.flush()


async def test_documents_with_other_titles_are_embedded_when_idle(store: PassageStore) -> None:
    work = IdleEmbedding(store, busy=lambda: False, clock=lambda: store.activity.last + 60)

    assert await work.work()
    assert await work.work()
    assert [len(store.dense.held("gates", key)) for key in ("7", "8")] == [1, 0]
    assert sum(store.embedder.calls) == 1


@pytest.mark.parametrize(("busy", "since"), [(True, 60), (False, 59)])
async def test_idle_embedding_waits_for_refreshes_and_questions(
    store: PassageStore, *, busy: bool, since: float
) -> None:
    work = IdleEmbedding(store, busy=lambda: busy, clock=lambda: store.activity.last + since)

    assert not work.idle()
    assert not await work._embed([("gates", "7")])
    assert store.embedder.calls == []


async def test_full_store_is_not_filled_further(store: PassageStore) -> None:
    full = replace(store, kept=0)
    work = IdleEmbedding(full, busy=lambda: False, clock=lambda: full.activity.last + 60)

    assert await work.work()
    assert store.embedder.calls == []
