"""Tests of lazy corpora, whose passages are embedded when searched and kept within a limit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.refresh.corpus_refresh import refresh_corpus
from storage.errors import EmbeddingUnavailable
from storage.passages import PassageStore
from storage.search.candidate_search import LAZY_DEPTH
from storage.search.lazy_vectors import HALF_LIFE, add_use
from storage.types import DenseMode
from tests.fakes import PageSource, WordEmbedder
from tests.storage.stores import opened

PAGES = {f"{n}": {"": f"Gate number {n} of the harbour opens at {n} sharp."} for n in range(60)}
QUESTION = "When does gate 7 of the harbour open?"


@asynccontextmanager
async def lazy_store(home: Path, embedder: WordEmbedder, kept: int = 1000) -> AsyncIterator[PassageStore]:
    """Open a store of one lazy corpus; its pending vectors are stored at the end."""
    with opened(home, embedder) as unbounded:
        store = replace(unbounded, kept=kept)
        await refresh_corpus(PageSource(PAGES), "gates", store, progress=lambda _: None, dense=DenseMode.LAZY)
        yield store
        await store.flush()


async def test_question_embeds_only_its_best_lexical_passages_without_a_vector(tmp_path: Path) -> None:
    async with lazy_store(tmp_path, first := WordEmbedder()) as store:
        assert first.calls == []
        hits = await store.search(QUESTION, ["gates"], 5)
        await store.flush()
        assert store.dense.count("gates") == LAZY_DEPTH
    async with lazy_store(tmp_path, second := WordEmbedder()) as store:
        again = await store.search(QUESTION, ["gates"], 5)

    assert sum(first.calls) == LAZY_DEPTH + 1
    assert second.calls == [1]
    assert hits[0].document.key == "7"
    assert [hit.passage.id for hit in hits] == [hit.passage.id for hit in again]


async def test_concurrent_requests_embed_a_passage_once(tmp_path: Path) -> None:
    async with lazy_store(tmp_path, embedder := WordEmbedder()) as store:
        results = await asyncio.gather(*(store.search(QUESTION, ["gates"], 5) for _ in range(8)))

    assert {hits[0].document.key for hits in results} == {"7"}
    assert LAZY_DEPTH < sum(embedder.calls) <= LAZY_DEPTH + 8


async def test_cancelled_waiter_leaves_other_waiters_their_result(tmp_path: Path) -> None:
    begun, loop = asyncio.Event(), asyncio.get_running_loop()

    class Slow(WordEmbedder):
        def embed(self, texts, *, polite=False):
            if len(texts) > 1:
                loop.call_soon_threadsafe(begun.set)
            return super().embed(texts, polite=polite)

    async with lazy_store(tmp_path, Slow()) as store:
        gone, other = (asyncio.create_task(store.search(QUESTION, ["gates"], 5)) for _ in range(2))
        await begun.wait()
        gone.cancel()
        assert len(await other) == 5


async def test_number_of_stored_vectors_is_limited_and_frequently_used_ones_remain(tmp_path: Path) -> None:
    async with lazy_store(tmp_path, WordEmbedder(), kept=50) as store:
        for number in (7, 7, *range(20, 40)):
            best = (await store.search(f"gate number {number}", ["gates"], 1))[0].passage.id
            await store.flush()
            assert store.dense.count("gates") <= 50
            assert best in store.dense.contents("gates")
        assert await store.lazy.uses.known("gates") == store.dense.contents("gates").keys()


async def test_changed_and_removed_passages_lose_their_vectors(tmp_path: Path) -> None:
    async with lazy_store(tmp_path, WordEmbedder()) as store:
        hit, other = await store.search(QUESTION, ["gates"], 2)
        await store.flush()
        changed = PageSource(PAGES | {"7": {"": "This gate is closed for good."}})
        await refresh_corpus(changed, "gates", store, progress=lambda _: None, dense=DenseMode.LAZY)
        assert hit.passage.id not in store.dense.contents("gates")
        await store.remove("gates", [other.document.key])
        assert await store.lazy.uses.known("gates") == store.dense.contents("gates").keys()
        hits = await store.search(QUESTION, ["gates"], 60)

    assert other.document.key not in {hit.document.key for hit in hits}
    assert hit.passage.id not in {hit.passage.id for hit in hits}


async def test_passage_removed_while_embedded_is_not_stored(tmp_path: Path) -> None:
    async with lazy_store(tmp_path, WordEmbedder()) as store:
        await store.search(QUESTION, ["gates"], 5)
        await store.remove("gates", ["7"])
        await store.flush()
        vectors = store.dense.held("gates", "7")

    assert vectors == {}


async def test_vectors_of_another_embedder_are_computed_again(tmp_path: Path) -> None:
    async with lazy_store(tmp_path, WordEmbedder()) as store:
        await store.search(QUESTION, ["gates"], 5)
    async with lazy_store(tmp_path, WordEmbedder(name="words@2")) as store:
        await store.check()
        assert store.dense.count("gates") == 0


async def test_failing_embedding_service_raises_in_every_search(tmp_path: Path) -> None:
    class Failing(WordEmbedder):
        def embed(self, texts, *, polite=False):
            if len(texts) > 1:
                raise EmbeddingUnavailable("The service is away.")
            return super().embed(texts, polite=polite)

    async with lazy_store(tmp_path, Failing()) as store:
        for _ in range(2):
            with pytest.raises(EmbeddingUnavailable):
                await store.search(QUESTION, ["gates"], 5)
        assert not store.lazy._running


@given(st.lists(st.floats(0, 400), min_size=1, max_size=6), st.lists(st.floats(0, 400), min_size=1, max_size=6))
def test_use_counts_half_after_each_half_life(one: list[float], other: list[float]) -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)

    def worth(days: list[float]) -> float:
        value = None
        for day in days:
            value = add_use(value, begin + timedelta(days=day))
        assert value is not None
        return value

    def counted(days: list[float]) -> float:
        return sum(2 ** (day / HALF_LIFE.days) for day in days)

    difference = counted(one) - counted(other)
    if abs(difference) > 1e-6 * counted(one):
        assert (worth(one) > worth(other)) == (difference > 0)


async def test_corpus_can_change_its_dense_mode(tmp_path: Path) -> None:
    async with lazy_store(tmp_path, embedder := WordEmbedder()) as store:
        results = []
        for mode, held in ((DenseMode.EAGER, 60), (DenseMode.LAZY, 60), (DenseMode.OFF, 0), (DenseMode.LAZY, 0)):
            await refresh_corpus(PageSource(PAGES), "gates", store, progress=lambda _: None, dense=mode)
            await store.check()
            assert store.dense.count("gates") == held
            results.append((await store.search(QUESTION, ["gates"], 1))[0].document.key)
            await store.flush()

        assert results == ["7"] * 4
        assert sum(embedder.calls) == 60 + 1 + LAZY_DEPTH
        (corpus,) = await store.manifest.corpora()
        assert corpus.dense is DenseMode.LAZY


async def test_describing_a_corpus_again_keeps_its_lazy_dense_mode(tmp_path: Path) -> None:
    async with lazy_store(tmp_path, WordEmbedder()) as store:
        await store.manifest.describe("gates", reference=False)
        await store.check()
        (corpus,) = await store.manifest.catalogue()

    assert corpus.dense is DenseMode.LAZY
