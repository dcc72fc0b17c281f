"""Listings of sources: changes only, incomplete, repeated, or failing midway."""

import asyncio
import threading

import pytest

from ingest import page_cleanup
from ingest.refresh import batch_reader
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.types import DeletedDocument, RefreshRefused, SourceUnavailable, Unreadable
from storage.types import RunState
from tests.ingest.sourced import DOWN, Scripted, found, pages
from tests.ingest.waiting import run, texts, until

FIFTY = [f"{number:02}" for number in range(50)]


async def keys(store):
    """Return the keys of all documents."""
    return set(await store.manifest.fingerprints("c"))


async def last(store):
    """Return the newest run."""
    return (await store.runs.recent(1))[0]


async def test_mark_is_passed_to_the_next_listing_of_changes(store):
    """Documents that are not listed then are kept."""
    await run(store, Scripted(pages("a", "b", "c"), marked="m1", edition="e1"), source_digest="s")
    changes = Scripted(
        [found("b", "Page b is new."), DeletedDocument("c"), *pages("d")], whole=False, marked="m2", edition="e2"
    )

    report = await run(store, changes, source_digest="s")

    assert changes.asked[0][1] == "m1"
    assert (report.added, report.changed, report.removed, report.edition) == (1, 1, 1, "e2")
    assert report.unchanged == 1  # the source lists no key for it
    assert await keys(store) == {"a", "b", "d"}
    assert (await store.manifest.checkpoint("c")).mark == "m2"
    assert (await last(store)).edition == "e2"


class Busy(Scripted):
    """A source that lists nothing until its activity was reported."""

    noted: threading.Event
    doing = ""

    def documents(self, known, since=""):
        """Report an activity, wait until that was noted, and list."""
        self.doing = "downloads it, 1 of 2 GB"
        assert self.noted.wait(60)
        self.doing = ""
        return super().documents(known, since)


async def test_activity_before_the_listing_is_reported_and_recorded(store):
    source, steps = Busy(pages("a")), []
    source.noted = threading.Event()

    async def is_recorded():
        return any(run.doing == "downloads it, 1 of 2 GB" for run in await store.runs.recent(1))

    async def confirm():
        await until(is_recorded)
        source.noted.set()

    confirming = asyncio.create_task(confirm())
    await refresh_corpus(source, "c", store, progress=steps.append)

    await confirming
    assert (steps[0].doing, steps[0].done, steps[-1].doing, steps[-1].done) == ("downloads it, 1 of 2 GB", 0, "", 1)
    assert (await last(store)).doing == ""


async def test_changed_source_settings_invalidate_the_mark(store):
    await run(store, Scripted(pages("a"), marked="m1"), source_digest="old")
    source = Scripted(pages("a"), marked="m2")

    await run(store, source, source_digest="new")

    assert source.asked[0][1] == ""


async def test_failing_source_keeps_read_documents_and_removes_nothing(store):
    """Its mark stays, so that the next run lists everything again."""
    await run(store, Scripted(pages("a", "b"), marked="m1"))

    with pytest.raises(SourceUnavailable):
        await run(store, Scripted([*pages("c"), DOWN, *pages("d")], marked="m2"))

    failed = await last(store)
    assert await keys(store) == {"a", "b", "c"}
    assert (await store.manifest.checkpoint("c")).mark == "m1"
    assert (failed.state, failed.added) == (RunState.FAILED, 1)
    assert failed.fault == "The wiki does not answer. Look whether it runs."


async def test_unexpected_error_is_recorded_by_its_type_only(store):
    """Its message may contain a password."""
    with pytest.raises(ValueError, match="hunter2"):
        await run(store, Scripted([ValueError("hunter2")]))

    assert (await last(store)).fault == "It failed with an unexpected ValueError; see the log."


async def test_mass_removal_is_held_back_until_confirmed(store):
    """Other changes are applied, and the run's fault says what to do."""
    await run(store, Scripted(pages(*FIFTY), marked="m1"))
    shrunk = Scripted([*pages(*FIFTY[:5]), *pages("new")], marked="m2")

    report = await run(store, shrunk)

    assert (report.added, report.unchanged, report.removed, report.held_back) == (1, 5, 0, 45)
    assert "45 of 50 documents" in report.fault
    assert (await last(store)).fault == report.fault
    assert "--confirm-removal c" in report.fault
    assert (await store.manifest.checkpoint("c")).mark == "m1"
    assert len(await keys(store)) == 51

    confirmed = await run(store, shrunk, confirm_removal=True)
    assert (confirmed.removed, confirmed.held_back, confirmed.fault) == (45, 0, "")
    assert await keys(store) == {*FIFTY[:5], "new"}
    assert (await store.manifest.checkpoint("c")).mark == "m2"


async def test_mass_removal_in_a_listing_of_changes_is_held_back_and_listed_again(store):
    await run(store, Scripted(pages(*FIFTY), marked="m1"))

    report = await run(store, Scripted([DeletedDocument(key) for key in FIFTY[:30]], whole=False, marked="m2"))

    assert (report.held_back, (await store.manifest.checkpoint("c")).mark) == (30, "m1")
    assert len(await keys(store)) == 50


async def test_few_removals_need_no_confirmation(store):
    """Up to twenty documents, or a fifth of them."""
    await run(store, Scripted(pages(*FIFTY)))

    assert (await run(store, Scripted(pages(*FIFTY[:30])))).removed == 20


async def test_renamed_documents_do_not_count_as_removed(store):
    await run(store, Scripted([found(f"old/{key}", f"Page {key}.") for key in FIFTY]))

    report = await run(store, Scripted([found(f"new/{key}", f"Page {key}.") for key in FIFTY]))

    assert (report.added, report.removed, report.held_back) == (50, 50, 0)


async def test_empty_listing_removes_nothing_unless_confirmed(store):
    await run(store, Scripted(pages("a", "b")))

    with pytest.raises(RefreshRefused, match="2 documents of “c” are unchanged"):
        await run(store, Scripted([]))
    assert await keys(store) == {"a", "b"}

    assert (await run(store, Scripted([]), confirm_removal=True)).removed == 2


async def test_duplicate_key_is_read_once_and_reported(store):
    source = Scripted([found("a", "The first."), found("a", "The second."), *pages("b")])

    reports = [await run(store, source) for _ in range(2)]

    assert [report.failures for report in reports] == [(("a", batch_reader.DUPLICATE_REASON),)] * 2
    assert (reports[1].changed, reports[1].unchanged) == (0, 2)
    assert await texts(store, "a") == ["The first."]


async def test_equal_fingerprints_under_two_keys_are_two_documents(store):
    report = await run(store, Scripted([found("a", "The same."), found("b", "The same.")]))

    assert (report.added, await keys(store)) == (2, {"a", "b"})


async def test_last_of_several_listed_changes_of_a_document_is_applied(store):
    """Edited, deleted, restored and deleted, in listing order."""
    await run(store, Scripted(pages("a", "b", "c"), marked="m1"))
    events = [
        *(found("a", "First edit."), found("a", "Second edit.")),
        *(DeletedDocument("b"), found("b", "Page b says b.")),
        *(found("c", "An edit."), DeletedDocument("c")),
        *(found("d", "Short-lived."), DeletedDocument("d")),
    ]

    await run(store, Scripted(events, whole=False))

    assert await keys(store) == {"a", "b"}
    assert await texts(store, "a") == ["Second edit."]


async def test_reverted_change_restores_the_known_version(store):
    await run(store, Scripted(pages("a"), marked="m1"))

    await run(store, Scripted([found("a", "A slip."), *pages("a")], whole=False))

    assert await texts(store, "a") == ["Page a says a."]


async def test_failed_documents_are_retried_although_unchanged(store):
    """Documents that fail again stay listed as failures; deleted ones leave the list."""
    broken = [found("a"), found("b"), found("c"), *pages("d")]
    await run(store, Scripted(broken, marked="m1"))
    singly = {"a": found("a", "Now it can be read."), "b": found("b"), "c": DeletedDocument("c")}
    source = Scripted(pages("e"), whole=False, marked="m2", singly=singly)

    report = await run(store, source)

    assert (source.asked_one, report.added) == (["a", "b", "c"], 2)
    assert [key for key, _ in await store.manifest.failures("c")] == ["b"]
    assert await keys(store) == {"a", "d", "e"}


async def test_document_above_the_size_limit_is_not_loaded(store):
    def explode():
        raise AssertionError("it was loaded")

    vast = found("vast", size=page_cleanup.LARGEST_DOCUMENT + 1)
    report = await run(store, Scripted([type(vast)("vast", "f", vast.size, explode), *pages("a")]))

    assert (report.added, report.failures) == (1, (("vast", "is larger than 512 MB"),))


async def test_text_above_the_length_limit_is_reported_and_the_others_are_read(store):
    long = "word " * (page_cleanup.LONGEST_TEXT // 5 + 1)
    report = await run(store, Scripted([*pages("a"), found("long", long), *pages("b")]))

    reason = dict(report.failures)["long"]
    assert (report.added, "split it" in reason) == (2, True)


async def test_unreadable_document_keeps_its_version_over_listings_of_changes(store):
    await run(store, Scripted(pages("a", "b"), marked="m1"))

    report = await run(store, Scripted([Unreadable("a", "is encrypted")], whole=False))

    assert (report.failures, await keys(store)) == ((("a", "is encrypted"),), {"a", "b"})
