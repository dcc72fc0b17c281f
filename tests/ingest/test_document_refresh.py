"""One document alone, read or forgotten at once, also in the middle of a refresh."""

import asyncio

import pytest

from ingest.refresh.document_refresh import forget_documents, refresh_document
from ingest.types import DeletedDocument, SingleReadUnsupported
from tests.ingest.sourced import Scripted, found, pages
from tests.ingest.waiting import PATIENCE, WaitingEmbedder, begun, run, texts
from tests.storage.stores import opened


@pytest.fixture
def embedder():
    """An embedder that waits, and lets go of who waits at the end."""
    it = WaitingEmbedder()
    yield it
    it.go_on.set()


@pytest.fixture
def store(tmp_path, embedder):
    """An empty store."""
    with opened(tmp_path, embedder) as it:
        yield it


async def test_a_document_is_forgotten_at_once_in_the_middle_of_a_batch_that_changes_it(store, embedder):
    """The refresh does not bring it back, and neither does the next."""
    await run(store, Scripted(pages("a", "b")))
    task = await begun(store, embedder, Scripted([found("a", "Now wait a bit."), *pages("b", "d")]))

    report = await asyncio.wait_for(forget_documents(store, "c", ["a"]), PATIENCE)
    assert (report.removed, report.passages_removed, embedder.go_on.is_set()) == (1, 1, False)
    assert "a" not in {hit.document.key for hit in await store.search("Page a says a", ["c"], 5)}
    embedder.go_on.set()
    await task

    again = await run(store, Scripted([found("a", "Now wait a bit."), *pages("b", "d")]))
    assert (again.added, again.failures, set(await store.manifest.fingerprints("c"))) == (0, (), {"b", "d"})
    assert set(store.dense.contents("c")) == set(await store.words_held())


async def test_forgetting_that_was_cut_short_is_finished_by_the_next_refresh(store):
    """It was noted, and nothing was removed yet."""
    await run(store, Scripted(pages("a", "b")))
    await store.manifest.forget("c", ["a"])

    report = await run(store, Scripted(pages("a", "b")))

    assert (report.removed, set(await store.manifest.fingerprints("c"))) == (1, {"b"})


async def test_one_document_is_read_at_once_and_a_forgotten_one_comes_back(store):
    """By its address; what is not there is said, and what is gone is removed."""
    await run(store, Scripted(pages("a", "b")))
    singly = {"https://x.example/b": found("b", "Page b is new."), "c": found("c"), "a": DeletedDocument("a")}
    source = Scripted([], singly=singly)
    await forget_documents(store, "c", ["b"])

    back = await refresh_document(source, "c", store, "https://x.example/b")
    same = await refresh_document(source, "c", store, "https://x.example/b")
    assert (back.added, back.passages_added, same.unchanged) == (1, 1, 1)
    assert await texts(store, "b") == ["Page b is new."]
    assert await store.manifest.forgotten("c") == frozenset()

    assert await refresh_document(source, "c", store, "nowhere") is None
    assert (await refresh_document(source, "c", store, "c")).failures == (("c", "the test wants it so"),)
    assert (await refresh_document(source, "c", store, "a")).removed == 1
    assert set(await store.manifest.fingerprints("c")) == {"b"}
    assert len(await store.runs.recent()) == 1


async def test_what_was_forgotten_of_a_source_that_is_read_as_a_whole_comes_back_with_the_next_refresh(store):
    """All is listed then, also by a source that tells what changed; of what was not forgotten nothing is touched."""
    whole = Scripted(pages("a", "b"), marked="day", alone=False)
    await run(store, whole)
    await forget_documents(store, "c", ["b"])

    with pytest.raises(SingleReadUnsupported) as known:
        await refresh_document(whole, "c", store, "a")
    assert (known.value.hint, (await store.manifest.checkpoint("c")).mark) == ("Read all.", "day")
    await run(store, whole)
    with pytest.raises(SingleReadUnsupported) as forgotten:
        await refresh_document(whole, "c", store, "b")
    assert forgotten.value.hint == "It is no longer forgotten: `footnote ingest all` reads it in."

    back = await run(store, whole)
    assert [since for _, since in whole.asked] == ["", "day", ""]
    assert (back.added, back.unchanged, await texts(store, "b")) == (1, 1, ["Page b says b."])


async def test_one_document_is_read_while_its_corpus_is_refreshed(store, embedder):
    """It waits for the batch that is being embedded, and is planned over what that left."""
    task = await begun(store, embedder, Scripted([found("a", "Please wait.")]))
    alone = asyncio.create_task(
        refresh_document(Scripted([], singly={"a": found("a", "The newest.")}), "c", store, "a")
    )
    await asyncio.sleep(0)
    embedder.go_on.set()
    await task
    await alone

    assert await texts(store, "a") == ["The newest."]
    assert set(store.dense.contents("c")) == set(await store.words_held())
