"""The manifest: what it lists after each step of a refresh, and after a refresh that was cut off anywhere."""

import asyncio
import contextlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import StatementError

from storage.manifest import Manifest
from storage.types import CorpusInfo, Document, DocumentChange, Passage, PassageKind, hash_passage, make_passage_id
from tests.storage.stores import listed_passages, open_empty_database
from tests.thorough import EXAMPLES

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def manifest(tmp_path: Path) -> Iterator[Manifest]:
    """An empty manifest."""
    with open_empty_database(tmp_path) as database:
        yield Manifest(database)


def document(key: str, *, corpus: str = "c", title: str = "T", fingerprint: str = "f") -> Document:
    """Make a document's row."""
    return Document(corpus, key, title, fingerprint=fingerprint)


def passage(text: str, position: int = 0, *, key: str = "a", corpus: str = "c", title: str = "T") -> Passage:
    """Make a passage as chunking does."""
    name = make_passage_id(corpus, key, "S", text, 0)
    return Passage(name, corpus, key, "S", text, position, hash_passage(title, "S", text))


def new(*texts: str, key: str = "a", corpus: str = "c", title: str = "T") -> DocumentChange:
    """Make the change that brings a document that was not there."""
    made = tuple(passage(text, at, key=key, corpus=corpus, title=title) for at, text in enumerate(texts))
    return DocumentChange(corpus, key, document(key, corpus=corpus, title=title), add=made)


async def put(manifest: Manifest, *changes: DocumentChange) -> None:
    """Do what a refresh does, without indexes."""
    await manifest.begin(changes)
    await manifest.commit(changes)


async def texts(manifest: Manifest, key: str = "a", corpus: str = "c") -> list[str]:
    """Read the listed texts of a document, in order."""
    return [passage.text for passage in await listed_passages(manifest, corpus, key)]


async def test_what_was_begun_is_not_listed_and_what_was_committed_is(manifest: Manifest) -> None:
    """The commit is the switch."""
    change = new("one", "two")

    await manifest.begin([change])
    assert await listed_passages(manifest, "c", "a") == ()
    assert await manifest.join([it.id for it in change.add], ["c"]) == {}
    assert await manifest.unlisted() == tuple(sorted(("c", it.id) for it in change.add))

    await manifest.commit([change])
    assert await listed_passages(manifest, "c", "a") == change.add
    assert await manifest.document("c", "a") == change.document
    assert await manifest.unlisted() == ()


async def test_all_that_is_known_of_a_passage_and_its_document_comes_back(manifest: Manifest) -> None:
    """The date in UTC, whatever its zone was."""
    date = datetime(2026, 3, 1, 17, tzinfo=timezone(timedelta(hours=5)))
    row = Document("c", "a", "Title", "https://x.example/a", "r7", date, "de", "mark")
    row_passage = replace(passage("| a | b |", title="Title"), kind=PassageKind.TABLE, position=3)
    await put(manifest, DocumentChange("c", "a", row, add=(row_passage,)))

    found, of = (await manifest.join([row_passage.id], ["c"]))[row_passage.id]

    assert (found, of) == (row_passage, row)
    assert of.date is not None
    assert of.date.tzinfo is UTC
    assert await manifest.document("c", "a") == row


async def test_a_document_dated_without_a_zone_is_refused(manifest: Manifest) -> None:
    """And nothing of its batch is written."""
    naive = replace(document("a"), date=datetime(2026, 3, 1))  # noqa: DTZ001 - what must be refused

    with pytest.raises(StatementError, match="no time zone"):
        await put(manifest, new("one", key="b"), DocumentChange("c", "a", naive))

    assert await manifest.fingerprints("c") == {}


async def test_an_edit_changes_exactly_what_it_touched(manifest: Manifest) -> None:
    """One passage goes, one comes, one moves."""
    await put(manifest, new("one", "two", "three"), new("other", key="b"))
    one, two, three = await listed_passages(manifest, "c", "a")
    edit = DocumentChange(
        "c", "a", document("a"), add=(passage("new", 2),), keep=(one, replace(three, position=1)), drop=(two.id,)
    )

    await put(manifest, edit)

    assert await texts(manifest) == ["one", "three", "new"]
    assert [it.position for it in await listed_passages(manifest, "c", "a")] == [0, 1, 2]
    assert await texts(manifest, "b") == ["other"]
    assert await manifest.unlisted("c") == (("c", two.id),)


async def test_a_removed_document_is_found_no_more(manifest: Manifest) -> None:
    """Its passages wait to be taken from the indexes, its neighbours stay."""
    await put(manifest, new("one", "two"), new("other", key="b"), new("one", corpus="d"))
    gone = [it.id for it in await listed_passages(manifest, "c", "a")]

    await put(manifest, DocumentChange("c", "a", None))

    assert await manifest.document("c", "a") is None
    assert await manifest.join(gone, ["c"]) == {}
    assert {name for _, name in await manifest.unlisted("c")} == set(gone)
    assert (await texts(manifest, "b"), await texts(manifest, "a", "d")) == (["other"], ["one"])


async def test_purging_forgets_what_is_unlisted_and_never_what_is_listed(manifest: Manifest) -> None:
    """Even if it is told to."""
    await put(manifest, new("one", "two"))
    one, two = await listed_passages(manifest, "c", "a")
    await put(manifest, DocumentChange("c", "a", document("a"), keep=(one,), drop=(two.id,)))

    await manifest.purge([one.id, two.id, "nobody"])

    assert (await texts(manifest), await manifest.unlisted()) == (["one"], ())


async def test_passages_outside_the_scope_are_not_joined(manifest: Manifest) -> None:
    """Whoever asks for them by id."""
    changes = [new("one", corpus=corpus) for corpus in "cde"]
    await put(manifest, *changes)
    ids = [change.add[0].id for change in changes]

    assert set(await manifest.join(ids, ["c", "e"])) == {ids[0], ids[2]}
    assert await manifest.join(ids, []) == {}
    assert await manifest.join([], ["c"]) == {}


async def test_more_ids_than_a_statement_takes_are_joined_all(manifest: Manifest) -> None:
    """In parts."""
    change = new(*(f"text {number}" for number in range(1201)))
    await put(manifest, change)

    assert set(await manifest.join([it.id for it in change.add], ["c"])) == {it.id for it in change.add}
    assert len(await manifest.listed("c", limit=2000)) == 1201


async def test_listed_passages_are_read_page_by_page(manifest: Manifest) -> None:
    """By id, each once, of one corpus."""
    await put(manifest, new(*"abcde"), new("f", key="b"), new("x", corpus="d"))

    pages: list[list[str]] = []
    after = ""
    while page := await manifest.listed("c", after=after, limit=4):
        after = page[-1][0].id
        pages.append([found.text for found, _ in page])

    assert [len(page) for page in pages] == [4, 2]
    assert sorted(itertools.chain(*pages)) == list("abcdef")


async def test_a_passage_being_renamed_is_shown_as_it_was_and_planned_anew(manifest: Manifest) -> None:
    """Between begin and commit the old title is true, but no plan may take index and manifest for equal."""
    await put(manifest, new("one"))
    renamed = new("one", title="New")

    await manifest.begin([renamed])

    (waiting,) = await listed_passages(manifest, "c", "a")
    found, of = (await manifest.join([waiting.id], ["c"]))[waiting.id]
    assert (waiting.hash, await manifest.fingerprints("c")) == ("", {"a": ""})
    assert (found.hash, of.title) == (hash_passage("T", "S", "one"), "T")

    await manifest.commit([renamed])
    assert [it.hash for it in await listed_passages(manifest, "c", "a")] == [hash_passage("New", "S", "one")]
    assert await manifest.fingerprints("c") == {"a": "f"}


async def test_a_passage_whose_text_was_changed_in_the_database_is_found_no_more(
    manifest: Manifest, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged without its text, and written anew when its document is read again."""
    change = new("The bell rings at ten.", "It is old.")
    await put(manifest, change)
    altered = sa.text("UPDATE passages SET text = 'The bell rings at two.' WHERE text LIKE '%ten%'")
    await manifest.database.write(lambda connection: connection.execute(altered))
    found = await manifest.join([it.id for it in change.add], ["c"])

    assert [it.text for it, _ in found.values()] == ["It is old."]
    first, _ = await listed_passages(manifest, "c", "a")
    assert (first.hash, first.text) == ("", "The bell rings at two.")
    assert "footnote ingest --only" in caplog.text
    assert "at two" not in caplog.text
    await put(manifest, replace(change, add=change.add[:1], keep=change.add[1:]))
    assert len(await manifest.join([it.id for it in change.add], ["c"])) == 2


async def test_a_finished_refresh_leaves_its_time_and_what_it_could_not_read(manifest: Manifest) -> None:
    """The failures of the refresh before are forgotten."""
    await put(manifest, new("one", "two"), new("x", corpus="b"))
    await manifest.finish("c", NOON, [("z.pdf", "is empty"), ("y.pdf", "is encrypted"), ("y.pdf", "is encrypted")])
    assert await manifest.failures("c") == (("y.pdf", "is encrypted"), ("z.pdf", "is empty"))

    await manifest.finish("c", NOON, [("y.pdf", "is encrypted")])
    await manifest.finish("empty", NOON)

    assert await manifest.corpora() == (
        CorpusInfo("b", documents=1, passages=1, refreshed=None, failures=0),
        CorpusInfo("c", documents=1, passages=2, refreshed=NOON, failures=1),
        CorpusInfo("empty", documents=0, passages=0, refreshed=NOON, failures=0),
    )


async def test_a_corpus_that_is_not_there_is_empty(manifest: Manifest) -> None:
    """It is the caller who knows whether that is an error."""
    assert (await manifest.fingerprints("no"), await manifest.listed("no")) == ({}, ())
    assert (await manifest.failures("no"), await manifest.unlisted("no")) == ((), ())
    assert await manifest.document("no", "a") is None


async def test_no_change_at_all_changes_nothing(manifest: Manifest) -> None:
    """A statement without rows would apply to all."""
    await put(manifest, new("one"))

    await put(manifest)
    await put(manifest, DocumentChange("c", "b", document("b")))
    await manifest.purge([])

    assert (await texts(manifest), await manifest.fingerprints("c")) == (["one"], {"a": "f", "b": "f"})


# What a source has: each document's key, with its title and the texts of its passages.
Source = Mapping[str, tuple[str, tuple[str, ...]]]
SOURCES = st.dictionaries(
    st.sampled_from("ab"),
    st.tuples(st.sampled_from(["T", "New"]), st.lists(st.sampled_from("uvwx"), unique=True, max_size=3).map(tuple)),
)
STEPS = 5
COMMITTED = 3


class Stopped(Exception):
    """The process ended here."""


class Refresh:
    """A refresh over a made-up index, which can be cut off after any of its steps."""

    def __init__(self, manifest: Manifest, corpus: str, index: dict[str, str]) -> None:
        self.manifest, self.corpus, self.index = manifest, corpus, index

    async def run(self, source: Source, *, steps: int) -> None:
        """Bring index and manifest to what the source has, or raise `Stopped` after so many steps."""
        going = iter(range(steps, -1, -1))
        await self._sweep()
        changes = await self._plan(source)
        await self._step(going)
        await self.manifest.begin(changes)
        await self._step(going)
        self.index.update({it.id: it.hash for change in changes for it in change.add})
        await self._step(going)
        await self.manifest.commit(changes)
        await self._step(going)
        for _, name in await self.manifest.unlisted(self.corpus):
            self.index.pop(name, None)
        await self._step(going)
        await self._sweep()

    async def _step(self, going: Iterator[int]) -> None:
        if next(going) == 0:
            raise Stopped

    async def _sweep(self) -> None:
        gone = [name for _, name in await self.manifest.unlisted(self.corpus)]
        for name in gone:
            self.index.pop(name, None)
        await self.manifest.purge(gone)

    async def _plan(self, source: Source) -> list[DocumentChange]:
        known = await self.manifest.fingerprints(self.corpus)
        changes = [DocumentChange(self.corpus, key, None) for key in known.keys() - source.keys()]
        for key, (title, wanted) in source.items():
            if known.get(key) != repr((title, wanted)):
                changes.append(await self._change(key, title, wanted))
        return changes

    async def _change(self, key: str, title: str, wanted: tuple[str, ...]) -> DocumentChange:
        now = [passage(it, at, key=key, corpus=self.corpus, title=title) for at, it in enumerate(wanted)]
        before = {it.id: it.hash for it in await listed_passages(self.manifest, self.corpus, key)}
        return DocumentChange(
            self.corpus,
            key,
            document(key, corpus=self.corpus, title=title, fingerprint=repr((title, wanted))),
            add=tuple(it for it in now if before.get(it.id) != it.hash),
            keep=tuple(it for it in now if before.get(it.id) == it.hash),
            drop=tuple(before.keys() - {it.id for it in now}),
        )

    async def shown(self) -> Source:
        """Read back what the manifest shows, hashes checked, in the form of a source."""
        listed = await self.manifest.listed(self.corpus)
        assert all(it.hash == hash_passage(of.title, it.section, it.text) for it, of in listed)
        rows = {
            key: await self.manifest.document(self.corpus, key) for key in await self.manifest.fingerprints(self.corpus)
        }
        return {
            key: (row.title, tuple(await texts(self.manifest, key, self.corpus))) for key, row in rows.items() if row
        }


@pytest.fixture(scope="module")
def refreshes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Iterator[Refresh]]:
    """Refreshes of one corpus after the other, all in one database."""
    with open_empty_database(tmp_path_factory.mktemp("home")) as database:
        yield (Refresh(Manifest(database), f"corpus-{number}", {}) for number in itertools.count())


@settings(max_examples=EXAMPLES * 2, deadline=None)
@given(runs=st.lists(st.tuples(SOURCES, st.integers(0, STEPS)), max_size=5), last=SOURCES)
@example(runs=[({"a": ("T", ("u",))}, STEPS), ({"a": ("New", ("u",))}, 2)], last={"a": ("T", ("u",))})
def test_a_refresh_cut_off_anywhere_shows_old_or_new_and_the_next_one_mends_all(
    refreshes: Iterator[Refresh], runs: list[tuple[Source, int]], last: Source
) -> None:
    """However often it was cut off, and whatever became of the source since."""
    asyncio.run(cut_off(next(refreshes), runs, last))


async def cut_off(refresh: Refresh, runs: list[tuple[Source, int]], last: Source) -> None:
    """Run them all, look after each, and run the last to its end."""
    shown: Source = {}
    for source, steps in runs:
        with contextlib.suppress(Stopped):
            await refresh.run(source, steps=steps)
        shown = source if steps >= COMMITTED else shown
        assert await refresh.shown() == shown

    await refresh.run(last, steps=STEPS)

    assert await refresh.shown() == last
    listed = await refresh.manifest.listed(refresh.corpus)
    assert refresh.index == {it.id: it.hash for it, _ in listed}
    assert await refresh.manifest.unlisted() == ()
