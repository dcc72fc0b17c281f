"""Packed corpora, which are not embedded, have the same passages as embedded ones."""

import pytest

from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from storage.errors import StorageError
from storage.types import DenseMode
from tests.fakes import PageSource
from tests.ingest.sources.dumps import dump, pack_streams, page
from tests.storage.stores import opened

ARTICLES = [
    page(n, f"Page {n}", f"'''Page {n}''' is about [[thing]]s.\n\n== More ==\n" + f"It says number {n}. " * 60)
    for n in range(1, 40)
]
REDIRECTS = [page(n + 100, f"Other {n}", f"#REDIRECT [[Page {n}]]", redirect=f"Page {n}") for n in range(1, 40, 3)]
EMPTY = page(99, "Empty", "{{stub}}")


def written(folder, pages, *, index, size=20):
    """Write a multistream dump with its index, or the same pages as one stream."""
    folder.mkdir(exist_ok=True)
    if not index:
        path = folder / "dump.xml"
        path.write_bytes(dump(*pages))
        return path
    path = folder / "wiki-multistream.xml.bz2"
    content, lines, _ = pack_streams(*(pages[at : at + size] for at in range(0, len(pages), size)))
    path.write_bytes(content)
    path.with_name("wiki-multistream-index.txt").write_text(lines)
    return path


async def refreshed(store, source, dense=DenseMode.LAZY, *, confirm=True):
    """Refresh a corpus, and return the report."""
    return await refresh_corpus(source, "wiki", store, progress=lambda _: None, dense=dense, confirm_removal=confirm)


async def held(store):
    """Return the documents of the corpus without their numbers, and what a search for words finds."""
    versions = await store.manifest.listed("wiki")
    hits = await store.search("other number 7", ["wiki"], 5)
    return {version.document.key: (version.document, version.passages) for version in versions}, [
        hit.passage.id for hit in hits
    ]


@pytest.mark.parametrize(("index", "processes"), [(True, 2), (True, 1), (False, 1)])
async def test_packed_corpus_equals_an_embedded_one(tmp_path, index, processes):
    """Documents, passages and aliases are equal; nothing is embedded."""
    path = written(tmp_path / "dump", [*ARTICLES, EMPTY, *REDIRECTS], index=index)
    with opened(tmp_path / "eager") as store:
        eager = await refreshed(store, WikipediaDump(path, processes=1), DenseMode.EAGER)
        expected, _ = await held(store)
    with opened(tmp_path / "lazy") as store:
        lazy = await refreshed(store, WikipediaDump(path, processes=processes))
        again = await refreshed(store, WikipediaDump(path, processes=1))
        assert store.embedder.calls == []
        documents, found = await held(store)

        assert documents == expected
        assert found
    counts = [(one.added, one.passages_added, [key for key, _ in one.failures]) for one in (eager, lazy)]
    assert counts == [(39, eager.passages_added, ["99"])] * 2
    assert (again.unchanged, again.added, again.changed, [key for key, _ in again.failures]) == (39, 0, 0, ["99"])


async def test_any_source_can_be_packed(tmp_path):
    """The refresh packs the documents of a source that does not pack them itself."""
    pages = {f"{n}.md": {"": f"Page {n} says {n}."} for n in range(30)}
    with opened(tmp_path) as store:
        await refreshed(store, PageSource(pages))
        del pages["3.md"]
        report = await refreshed(store, PageSource({**pages, "4.md": {"": "Now it is new."}, "5.md": None}))

        assert (report.added, report.changed, report.removed, report.unchanged, report.failed) == (0, 1, 1, 27, 1)
        assert (report.passages_added, report.passages_removed) == (1, 2)
        assert {"4.md"} == {hit.document.key for hit in await store.search("now new", ["wiki"], 1)}


class Torn(WikipediaDump):
    """A dump that fails after some articles."""

    def documents(self, known, since=""):
        """List some articles, and fail."""
        listing = super().documents(known, since)

        def items():
            for number, item in enumerate(listing.items):
                if number == 30:
                    raise StorageError("the test wants it so", hint="")
                yield item

        return type(listing)(items())


async def test_interrupted_packing_continues_without_reading_again(tmp_path):
    """The survey of the interrupted run is as old as the dump."""
    path = written(tmp_path / "dump", [*ARTICLES, *REDIRECTS], index=True, size=7)
    kept = tmp_path / "survey"
    with opened(tmp_path / "home") as store:
        with pytest.raises(StorageError):
            await refreshed(store, Torn(path, processes=1, survey=kept))
        before = set(await store.manifest.fingerprints("wiki"))
        report = await refreshed(store, WikipediaDump(path, processes=1, survey=kept))
        documents, _ = await held(store)

        assert len(documents) == 39
        assert (report.unchanged, report.added) == (len(before), 39 - len(before))
        assert before
