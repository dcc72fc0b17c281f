"""A source that an engine reads: its listings and refreshes equal those of the source itself."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.refresh.batch_reader import BatchReader
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.refresh.distributed_source import DistributedSource, WorkerEmbedder, distribute
from ingest.sources.folder import FolderSource
from ingest.types import DeletedDocument, Unreadable
from storage.errors import EmbeddingUnavailable
from storage.types import DenseMode
from tests.fakes import WordEmbedder
from tests.ingest.engines.pickling import PicklingEngine
from tests.ingest.sourced import Scripted, found
from tests.storage.stores import contents, opened


def read_all(reader):
    """Return everything that a refresh gets from a reader."""
    batches = list(iter(reader.batch, None))
    pages = [(found.key, found.fingerprint, found.size, page) for batch in batches for found, page in batch.read]
    packed = [document for batch in batches for document in batch.packed]
    counts = [(batch.failures, batch.unchanged, batch.looked_at) for batch in batches]
    return pages, packed, counts, reader.gone


ITEMS = st.sampled_from(["known", "new", "changed", "unreadable", "broken", "deleted", "large"])


def make(number, kind):
    key = f"{number}.md"
    if kind == "deleted":
        return DeletedDocument(key)
    if kind == "broken":
        return Unreadable(key, "is broken")
    item = found(key, "" if kind == "unreadable" else f"Page {number}.", fingerprint=kind)
    return replace(item, size=1 << 20) if kind == "large" else item


@given(kinds=st.lists(ITEMS, max_size=40), ahead=st.integers(1, 5), packs=st.booleans())
def test_items_keep_their_order(kinds, ahead, packs):
    known = {f"{number}.md": "known" if kind == "known" else "old" for number, kind in enumerate(kinds)}
    items = [make(*each) for each in enumerate(kinds)]
    plain, far = Scripted(items), DistributedSource(Scripted(items), PicklingEngine(ahead), block_documents=4)
    if packs:
        far.pack_for("docs")

    readers = [BatchReader(source.documents(known), known, pack_for="docs" * packs) for source in (plain, far)]

    assert read_all(readers[1]) == read_all(readers[0])


def test_unchanged_refresh_starts_no_engine():
    items = [make(number, "known") for number in range(1_000)]
    known = {item.key: "known" for item in items}
    engine = PicklingEngine()
    list(DistributedSource(Scripted(items), engine).documents(known))
    assert engine.sent == []

    items[500] = make(500, "new")
    list(DistributedSource(Scripted(items), engine, block_documents=8).documents(known))
    assert [len(block.documents) for block in engine.sent] == [1]


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "docs"
    place.mkdir()
    for number in range(12):
        body = "\n\n".join(f"## Part {part}\n\nDoor {number} opens at {part}." for part in range(number % 4))
        (place / f"{number}.md").write_text(f"# Door {number} &amp;amp; co\n\nIts key is {number}.\n\n{body}")
    (place / "bad.md").write_text("")
    return FolderSource(place, url_base="https://docs.example")


@pytest.mark.parametrize("dense", [DenseMode.EAGER, DenseMode.LAZY])
async def test_distributed_refresh_equals_a_local_one_and_embeds_nothing_here(tmp_path, folder, dense):
    with opened(tmp_path / "a") as plain, opened(tmp_path / "b") as store:
        first = await refresh_corpus(folder, "docs", plain, progress=lambda _: None, dense=dense)
        embedded = list(store.embedder.calls)
        far, relieved = distribute(folder, store, PicklingEngine(), store.embedder, WordEmbedder)

        second = await refresh_corpus(far, "docs", relieved, progress=lambda _: None, dense=dense)

        assert replace(second, seconds=0) == replace(first, seconds=0)
        assert first.added == 12
        assert first.failed == 1
        assert await contents(store, "docs") == await contents(plain, "docs")
        assert store.embedder.calls == embedded


def test_other_embedder_is_an_error_and_stop_reaches_engine_and_source():
    engine, source = PicklingEngine(), Scripted([make(1, "new")])
    far = DistributedSource(source, engine, WorkerEmbedder("another", WordEmbedder))

    with pytest.raises(EmbeddingUnavailable, match="not with another"):
        list(far.documents({}))
    far.stop()
    assert engine.stopped
    assert source.stopped.is_set()
