"""Single documents are read or forgotten at once, also during a refresh."""

import asyncio

import pytest

from ingest.refresh.document_refresh import forget_documents, refresh_document
from ingest.types import DeletedDocument, SingleReadUnsupported
from tests.ingest.sourced import Scripted, found, pages
from tests.ingest.waiting import PATIENCE, begun, run, texts


async def test_document_is_forgotten_at_once_during_a_batch_that_changes_it(store, embedder):
    """Neither this refresh nor the next brings it back."""
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


async def test_interrupted_forgetting_is_finished_by_the_next_refresh(store):
    await run(store, Scripted(pages("a", "b")))
    await store.manifest.forget("c", ["a"])

    report = await run(store, Scripted(pages("a", "b")))

    assert (report.removed, set(await store.manifest.fingerprints("c"))) == (1, {"b"})


async def test_single_document_is_read_and_a_forgotten_one_restored(store):
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


async def test_forgotten_document_of_a_whole_source_returns_with_the_next_refresh(store):
    """The next refresh lists everything, even if the source could list only changes."""
    whole = Scripted(pages("a", "b"), marked="day", alone=False)
    await run(store, whole)
    await forget_documents(store, "c", ["b"])

    with pytest.raises(SingleReadUnsupported) as known:
        await refresh_document(whole, "c", store, "a")
    assert (known.value.hint, (await store.manifest.checkpoint("c")).mark) == ("Read all.", "day")
    await run(store, whole)
    with pytest.raises(SingleReadUnsupported) as forgotten:
        await refresh_document(whole, "c", store, "b")
    assert forgotten.value.hint == "The document is no longer forgotten: `footnote ingest all` reads it."

    back = await run(store, whole)
    assert [since for _, since in whole.asked] == ["", "day", ""]
    assert (back.added, back.unchanged, await texts(store, "b")) == (1, 1, ["Page b says b."])


async def test_single_document_is_read_during_a_refresh(store, embedder):
    """It waits for the running batch, and is planned after it."""
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
