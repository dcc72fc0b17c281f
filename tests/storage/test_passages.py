"""Tests of searching own documents and works of reference in one store."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from ingest.refresh.corpus_refresh import refresh_corpus
from storage.indexes.embedding import Vectors
from storage.types import DenseMode
from tests.fakes import PageSource, WordEmbedder
from tests.storage.stores import opened

OWN = {"leave": {"": "Our leave is thirty days a year."}}
WIKI = {f"{n}": {"": f"Annual leave number {n} is leave of so many days a year."} for n in range(120)}


class Encyclopedia(PageSource):
    """The same pages, as a work of reference."""

    @property
    def reference(self) -> bool:
        return True


class Signposts(PageSource):
    """A source whose page "a" is a disambiguation page."""

    def _load(self, key):
        return replace(super()._load(key), disambiguation=key == "a")


@pytest.fixture(params=DenseMode)
async def store(request, tmp_path):
    """Open a store of a one-page handbook and an encyclopedia of many pages, embedded or not."""
    with opened(tmp_path) as opened_store:
        await refresh_corpus(PageSource(OWN), "handbook", opened_store, progress=lambda _: None)
        source = Encyclopedia(WIKI)
        await refresh_corpus(source, "wiki", opened_store, progress=lambda _: None, dense=request.param)
        yield opened_store
        await opened_store.flush()


async def test_bonus_for_own_passages_ranks_them_before_reference_passages(store):
    question, both = "how many days a year is annual leave number 7", ["wiki", "handbook"]
    alike = await store.search(question, both, 5)
    preferring = await replace(store, own_first=lambda: 50.0).search(question, both, 5)

    assert alike[0].passage.corpus == "wiki"
    assert preferring[0].passage.corpus == "handbook"


async def test_reference_passages_do_not_crowd_out_own_passages(store):
    hits = await store.search("annual leave of so many days", ["wiki", "handbook"], 200)

    assert "handbook" in {hit.passage.corpus for hit in hits}


async def test_bonus_does_not_change_the_order_within_one_kind(store):
    hits = await store.search("days of leave", ["handbook"], 5)

    assert await replace(store, own_first=lambda: 5.0).search("days of leave", ["handbook"], 5) == hits


async def test_empty_scope_or_count_finds_nothing(store):
    assert await store.search("leave", [], 5) == ()
    assert await store.search("leave", ["handbook"], 0) == ()


async def test_disambiguation_page_comes_last(tmp_path):
    with opened(tmp_path) as opened_store:
        pages = {"a": {"": "Mercury, Mercury and Mercury."}, "b": {"": "Mercury is a planet near the sun."}}
        await refresh_corpus(Signposts(pages), "wiki", opened_store, progress=lambda _: None)
        hits = await opened_store.search("mercury", ["wiki"], 5)

        assert [hit.document.disambiguation for hit in hits] == [False, True]


@dataclass
class Onlooker(WordEmbedder):
    """An embedder that records whether the indexes are being written meanwhile."""

    writing: Callable[[], bool] = bool
    seen: list[bool] = field(default_factory=list)

    def embed(self, texts: Sequence[str], *, polite: bool = False) -> Vectors:
        self.seen.append(self.writing())
        return super().embed(texts, polite=polite)


async def test_single_write_does_not_wait_for_embedding(tmp_path):
    embedder = Onlooker()
    with opened(tmp_path, embedder) as store:
        embedder.writing = store._writing.locked
        await refresh_corpus(PageSource({"a.md": {"": "The vault opens."}}), "handbook", store, progress=lambda _: None)

    assert embedder.seen == [False]
