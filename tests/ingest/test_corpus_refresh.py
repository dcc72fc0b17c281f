"""Refreshing a corpus: only changes are written, and a crash at any moment loses nothing."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.refresh.batch_reader import BatchReader
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.refresh.document_plan import KeySet, find_missing
from ingest.sources.folder import FolderSource
from ingest.types import Block, ChangedDocument, Page, RefreshRefused, Section
from storage.errors import StorageError
from storage.home.home_folder import holds_passages
from tests.fakes import PageSource, WordEmbedder
from tests.ingest.sourced import Scripted
from tests.storage.stores import Contents, contents, opened
from tests.thorough import EXAMPLES

FIRST = {
    "leave.md": {"title": "Leave", "": "Everyone has 30 days of leave.", "Illness": "Call before nine."},
    "lunch.md": {"title": "Lunch", "": "Lunch is served at noon."},
    "vault.md": {"title": "Vault", "": "The vault opens at ten."},
}


async def run(store, pages, corpus="handbook"):
    """Refresh from pages written in the test, and return the report without its seconds."""
    report = await refresh_corpus(PageSource(pages), corpus, store, progress=lambda _: None)
    return replace(report, seconds=0.0)


async def found(store, text):
    """Return the texts found for a question."""
    return [hit.passage.text for hit in await store.search(text, ["handbook"], 5)]


async def test_first_run_adds_every_document(tmp_path):
    with opened(tmp_path) as store:
        report = await run(store, FIRST)

        assert (report.added, report.changed, report.unchanged, report.removed, report.failed) == (3, 0, 0, 0, 0)
        assert report.passages_added == 4
        assert (await found(store, "how many days of leave"))[0] == "Everyone has 30 days of leave."


async def test_unchanged_documents_are_neither_loaded_nor_embedded(tmp_path):
    with opened(tmp_path) as store:
        await run(store, FIRST)
        source, calls = PageSource(FIRST), list(store.embedder.calls)

        report = await refresh_corpus(source, "handbook", store, progress=lambda _: None)

        assert (report.unchanged, report.passages_added, report.passages_removed) == (3, 0, 0)
        assert source.loaded == []
        assert store.embedder.calls == calls


async def test_edit_removal_and_rename_change_only_their_passages(tmp_path):
    """One section is edited, one page deleted, one renamed; other passages are kept."""
    second = {
        "leave.md": {**FIRST["leave.md"], "Illness": "Call before eight."},
        "meals.md": FIRST["lunch.md"],
    }
    with opened(tmp_path) as store:
        await run(store, FIRST)
        before = {row[0] for row in (await contents(store, "handbook")).manifest}

        report = await run(store, second)

        after = await contents(store, "handbook")
        assert (report.added, report.changed, report.removed) == (1, 1, 2)
        assert (report.passages_added, report.passages_removed) == (2, 3)
        assert len(before & {row[0] for row in after.manifest}) == 1
        assert set(after.dense) == set(after.lexical) == {row[0] for row in after.manifest}
        assert "The vault opens at ten." not in await found(store, "when does the vault open")


async def test_new_title_is_indexed_although_texts_are_unchanged(tmp_path):
    with opened(tmp_path) as store:
        await run(store, FIRST)
        await run(store, {**FIRST, "vault.md": {"title": "Strongroom", "": "The vault opens at ten."}})

        hits = await store.search("strongroom", ["handbook"], 1)

        assert hits[0].document.title == "Strongroom"
        assert (await contents(store, "handbook")).dense[hits[0].passage.id] == hits[0].passage.hash


async def test_first_passage_is_found_by_aliases(tmp_path):
    """A wiki's redirects can change while the text does not."""
    page = {"": "A philosopher and pupil of Plato.", "Works": "Most of them are lost."}
    with opened(tmp_path) as store:
        await run(store, {"1": {**page, "aliases": "Aristoteles"}, "2": {"": "Nothing of that kind."}})
        before, _ = store.lexical.search("Aristoteles", ["handbook"], 5)

        report = await run(store, {"1": {**page, "aliases": "Stagirite"}, "2": {"": "Nothing of that kind."}})

        assert (len(before), report.passages_added, report.passages_removed) == (1, 0, 0)
        assert store.lexical.search("Aristoteles", ["handbook"], 5)[0] == {}
        assert len(store.lexical.search("Stagirite", ["handbook"], 5)[0]) == len(before)


async def test_unreadable_document_is_reported_and_keeps_its_version(tmp_path):
    with opened(tmp_path) as store:
        await run(store, FIRST)

        report = await run(store, {**FIRST, "lunch.md": None, "new.md": None})

        assert [key for key, _ in report.failures] == ["lunch.md", "new.md"]
        assert await store.manifest.failures("handbook") == report.failures
        assert "Lunch is served at noon." in await found(store, "when is lunch served")


async def test_empty_source_is_refused_and_removes_nothing(tmp_path):
    """The folder may just not be mounted."""
    with opened(tmp_path) as store:
        await run(store, FIRST)

        with pytest.raises(RefreshRefused, match="holds no documents"):
            await run(store, {})

        assert len((await contents(store, "handbook")).manifest) == 4


def test_documents_of_an_unlistable_folder_are_not_missing():
    known = dict.fromkeys(["a.md", "b.md", "people/leave.md", "people/old/pay.md", "peoples.md"], "")

    assert find_missing(known, KeySet(["a.md", "people/"])) == ["b.md", "peoples.md"]


class CrashingIndex:
    """Passes calls on to an index until its lives are used up, then fails before or after the call."""

    def __init__(self, index, lives, *, after):
        self._index, self._lives, self._after = index, lives, after

    def __getattr__(self, name):
        method = getattr(self._index, name)
        if name not in {"upsert", "delete", "follow", "clear", "begin_again"}:
            return method
        return lambda *args: self._call(method, args)

    def _call(self, method, args):
        self._lives -= 1
        if self._lives < 0 and not self._after:
            raise StorageError("the power is gone")
        method(*args)
        if self._lives < 0:
            raise StorageError("the power is gone")


texts = st.dictionaries(
    st.sampled_from(["", "One", "Two"]),
    st.text("abc ", min_size=3, max_size=12).filter(lambda text: len(text.strip()) > 2),
    min_size=1,
)
states = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), texts, min_size=1)


@settings(max_examples=EXAMPLES // 4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=states,
    second=states,
    third=states,
    lives=st.integers(0, 6),
    after=st.booleans(),
    which=st.sampled_from(["dense", "lexical"]),
)
async def test_run_after_a_crash_at_any_write_equals_an_undisturbed_store(
    tmp_path_factory, first, second, third, lives, after, which
):
    """The crash may be before or after any write to an index; nothing of the crashed run remains."""
    with opened(tmp_path_factory.mktemp("whole")) as store:
        await run(store, third)
        expected = await contents(store, "handbook")
    home = tmp_path_factory.mktemp("crashed")
    with opened(home) as store:
        await run(store, first)
        crashing = replace(store, **{which: CrashingIndex(getattr(store, which), lives, after=after)})
        try:
            await run(crashing, second)
        except StorageError:
            await store.recover()
            await store.check()
    with opened(home) as store:
        await run(store, third)

        assert await contents(store, "handbook") == expected


async def test_reindexing_rebuilds_equal_indexes(tmp_path):
    with opened(tmp_path) as store:
        await run(store, FIRST)
        before = await contents(store, "handbook")
        store.dense.remove("handbook")
        store.lexical.clear()
        with pytest.raises(StorageError, match=r"missing|holds 0 of"):
            await store.check()
        steps = []

        count = await store.reindex(lambda done, total: steps.append((done, total)))

        assert (count, steps[-1]) == (4, (4, 4))
        assert await contents(store, "handbook") == before
        await store.check()


async def test_interrupted_reindexing_indexes_no_unknown_document(tmp_path):
    """Otherwise the next check would report lost database pages."""
    with opened(tmp_path) as store:
        await run(store, FIRST)
        crashing = replace(store, lexical=CrashingIndex(store.lexical, 0, after=False))
        with pytest.raises(StorageError, match="power"):
            await refresh_corpus(PageSource({}), "handbook", crashing, progress=lambda _: None, confirm_removal=True)
        with pytest.raises(StorageError, match="power"):
            await crashing.reindex(lambda *_: None)

        assert holds_passages(tmp_path / "footnote.db")
        await store.recover()
        assert await contents(store, "handbook") == Contents(frozenset(), {}, {})


async def test_batch_is_embedded_in_few_calls(tmp_path):
    embedder = WordEmbedder()
    with opened(tmp_path, embedder) as store:
        await run(store, {f"{n}.md": {"": f"Page number {n} says {n}."} for n in range(300)})

        assert embedder.calls == [64, 64, 64, 64, 44]


class OddText(str):
    """A text that cannot be split, as if chunking had a bug."""

    __slots__ = ()

    def split(self, *_args):
        """Fail."""
        raise ValueError("no one foresaw this text")


def failing(error):
    """Return a load that raises."""

    def load():
        raise error

    return load


def loading(**loads):
    """Make a source of documents, each with a function that loads it."""
    return Scripted([ChangedDocument(f"{key}.md", key, 1, load) for key, load in loads.items()])


async def test_error_in_one_document_is_reported_and_the_others_are_read(tmp_path):
    fine = Page("Fine", (Section((), (Block("The vault opens at ten."),)),))
    uncut = Page("Odd", (Section((), (Block(OddText("Lunch is served at noon.")),)),))
    too_deep, too_long = failing(RecursionError("too deep")), failing(ValueError("x" * 500))
    source = loading(a=too_deep, b=too_long, c=lambda: uncut, d=lambda: fine)
    with opened(tmp_path) as store:
        report = await refresh_corpus(source, "handbook", store, progress=lambda _: None)

        reasons = dict(report.failures)
        assert (report.added, list(reasons)) == (1, ["a.md", "b.md", "c.md"])
        assert reasons["a.md"] == "cannot be read: RecursionError: too deep"
        assert len(reasons["b.md"]) == 200
        assert reasons["c.md"] == "cannot be read: ValueError: no one foresaw this text"
        assert await store.manifest.failures("handbook") == report.failures
        assert await found(store, "when does the vault open") == ["The vault opens at ten."]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_process_wide_errors_end_the_run(error):
    with pytest.raises(error):
        BatchReader(loading(a=failing(error())).documents({}), {}).batch()


async def test_unstorable_text_and_dates_are_repaired(tmp_path):
    """For example lone surrogates, NUL, and dates out of range."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.json").write_text('{"name": "lone \\ud800 surrogate and \\u0000 nul"}')
    (folder / "b.md").write_text('---\ntitle: "bad \\ud800 title\\0"\n---\nThe vault opens at ten.')
    (folder / "c.jsonl").write_text('{"name": "lone \\udfff surrogate"}\n')
    cell = '{"cell_type": "markdown", "metadata": {}, "source": ["Lunch \\ud800 at noon."]}'
    (folder / "d.ipynb").write_text(f'{{"cells": [{cell}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}')
    (folder / "e.md").write_text("---\ndate: 0001-01-01T00:00:00+14:00\n---\nText.")
    (folder / "f.md").write_text("---\ndate: 9999-12-31T23:59:59-12:00\n---\nText.")
    with opened(tmp_path) as store:
        report = await refresh_corpus(FolderSource(folder), "handbook", store, progress=lambda _: None)

        documents = {key: await store.manifest.document("handbook", key) for key in ("b.md", "e.md", "f.md")}
        assert (report.added, report.failures) == (6, ())
        assert documents["b.md"].title == "bad \ufffd title"
        assert (documents["e.md"].date, documents["f.md"].date) == (None, None)
