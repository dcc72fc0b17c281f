"""What sources list, and may list wrongly: changes alone, too little, twice, or half before they fail."""

import asyncio
import threading

import pytest

from ingest import page_cleanup
from ingest.refresh import batch_reader
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.types import DeletedDocument, RefreshRefused, SourceUnavailable, Unreadable
from storage.types import RunState
from tests.ingest.sourced import DOWN, Scripted, found, pages
from tests.ingest.waiting import until
from tests.storage.stores import listed_passages, opened

FIFTY = [f"{number:02}" for number in range(50)]


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    with opened(tmp_path) as it:
        yield it


async def run(store, source, **options):
    """Refresh the corpus of these tests."""
    return await refresh_corpus(source, "c", store, progress=lambda _: None, **options)


async def keys(store):
    """Read which documents there are."""
    return set(await store.manifest.fingerprints("c"))


async def last(store):
    """Read the newest run."""
    return (await store.runs.recent(1))[0]


async def test_a_mark_is_handed_in_next_time_and_only_changes_are_listed(store):
    """What is not listed then is not gone."""
    await run(store, Scripted(pages("a", "b", "c"), marked="m1", edition="e1"), source_digest="s")
    changes = Scripted(
        [found("b", "Page b is new."), DeletedDocument("c"), *pages("d")], whole=False, marked="m2", edition="e2"
    )

    report = await run(store, changes, source_digest="s")

    assert changes.asked[0][1] == "m1"
    assert (report.added, report.changed, report.removed, report.edition) == (1, 1, 1, "e2")
    assert report.unchanged == 1  # what the source does not name
    assert await keys(store) == {"a", "b", "d"}
    assert (await store.manifest.checkpoint("c")).mark == "m2"
    assert (await last(store)).edition == "e2"


class Busy(Scripted):
    """A source that lists nothing until somebody has heard what it does."""

    heard: threading.Event
    doing = ""

    def documents(self, known, since=""):
        """Say what takes so long, wait until that was heard, and list."""
        self.doing = "downloads it, 1 of 2 GB"
        assert self.heard.wait(60)
        self.doing = ""
        return super().documents(known, since)


async def test_what_a_source_does_before_it_lists_is_told_and_on_record(store):
    """Until it lists; a run that has ended does nothing any more."""
    source, steps = Busy(pages("a")), []
    source.heard = threading.Event()

    async def noted():
        return any(one.doing == "downloads it, 1 of 2 GB" for one in await store.runs.recent(1))

    async def looked():
        await until(noted)
        source.heard.set()

    looking = asyncio.create_task(looked())
    await refresh_corpus(source, "c", store, progress=steps.append)

    await looking
    assert (steps[0].doing, steps[0].done, steps[-1].doing, steps[-1].done) == ("downloads it, 1 of 2 GB", 0, "", 1)
    assert (await last(store)).doing == ""


async def test_after_a_change_of_its_settings_a_source_lists_all_anew(store):
    """What its mark says holds for the old ones."""
    await run(store, Scripted(pages("a"), marked="m1"), source_digest="old")
    source = Scripted(pages("a"), marked="m2")

    await run(store, source, source_digest="new")

    assert source.asked[0][1] == ""


async def test_a_source_that_fails_on_the_way_leaves_what_was_read_and_removes_nothing(store):
    """Its mark stays, so that the next run lists all of it again."""
    await run(store, Scripted(pages("a", "b"), marked="m1"))

    with pytest.raises(SourceUnavailable):
        await run(store, Scripted([*pages("c"), DOWN, *pages("d")], marked="m2"))

    told = await last(store)
    assert await keys(store) == {"a", "b", "c"}
    assert (await store.manifest.checkpoint("c")).mark == "m1"
    assert (told.state, told.added, told.fault) == (
        RunState.FAILED,
        1,
        "The wiki does not answer. Look whether it runs.",
    )


async def test_an_error_that_nobody_foresaw_is_told_by_its_kind_alone(store):
    """Its words may hold anything, a password too."""
    with pytest.raises(ValueError, match="hunter2"):
        await run(store, Scripted([ValueError("hunter2")]))

    assert (await last(store)).fault == "It failed with an unexpected ValueError; see the log."


async def test_too_many_that_are_gone_are_kept_until_somebody_confirms(store):
    """All else is applied, and the run says what to do."""
    await run(store, Scripted(pages(*FIFTY), marked="m1"))
    tenth = Scripted([*pages(*FIFTY[:5]), *pages("new")], marked="m2")

    report = await run(store, tenth)

    assert (report.added, report.unchanged, report.removed, report.held_back) == (1, 5, 0, 45)
    assert "45 of 50 documents" in report.fault
    assert (await last(store)).fault == report.fault
    assert "--confirm-removal c" in report.fault
    assert (await store.manifest.checkpoint("c")).mark == "m1"
    assert len(await keys(store)) == 51

    confirmed = await run(store, tenth, confirm_removal=True)
    assert (confirmed.removed, confirmed.held_back, confirmed.fault) == (45, 0, "")
    assert await keys(store) == {*FIFTY[:5], "new"}
    assert (await store.manifest.checkpoint("c")).mark == "m2"


async def test_too_many_changes_that_remove_are_kept_too_and_listed_again(store):
    """Whether all is listed or only what changed."""
    await run(store, Scripted(pages(*FIFTY), marked="m1"))

    report = await run(store, Scripted([DeletedDocument(key) for key in FIFTY[:30]], whole=False, marked="m2"))

    assert (report.held_back, (await store.manifest.checkpoint("c")).mark) == (30, "m1")
    assert len(await keys(store)) == 50


async def test_a_few_are_removed_unasked(store):
    """Twenty, or a fifth."""
    await run(store, Scripted(pages(*FIFTY)))

    assert (await run(store, Scripted(pages(*FIFTY[:30])))).removed == 20


async def test_what_only_has_another_name_is_not_lost(store):
    """A folder that was renamed: as much came as went."""
    await run(store, Scripted([found(f"old/{key}", f"Page {key}.") for key in FIFTY]))

    report = await run(store, Scripted([found(f"new/{key}", f"Page {key}.") for key in FIFTY]))

    assert (report.added, report.removed, report.held_back) == (50, 50, 0)


async def test_a_source_that_suddenly_lists_nothing_removes_nothing(store):
    """But for whoever confirms it."""
    await run(store, Scripted(pages("a", "b")))

    with pytest.raises(RefreshRefused, match="2 documents of “c” were left"):
        await run(store, Scripted([]))
    assert await keys(store) == {"a", "b"}

    assert (await run(store, Scripted([]), confirm_removal=True)).removed == 2


async def test_a_key_that_comes_twice_is_taken_once_and_told(store):
    """Every night the same, so that nothing flips to and fro."""
    source = Scripted([found("a", "The first."), found("a", "The second."), *pages("b")])

    reports = [await run(store, source) for _ in range(2)]

    assert [report.failures for report in reports] == [(("a", batch_reader.DUPLICATE_REASON),)] * 2
    assert (reports[1].changed, reports[1].unchanged) == (0, 2)
    assert [one.text for one in await listed_passages(store.manifest, "c", "a")] == ["The first."]


async def test_a_fingerprint_that_comes_twice_is_two_documents(store):
    """Equal files under two names."""
    report = await run(store, Scripted([found("a", "The same."), found("b", "The same.")]))

    assert (report.added, await keys(store)) == (2, {"a", "b"})


async def test_of_several_changes_of_one_document_the_last_holds(store):
    """Edited, deleted, restored, and deleted: in the order in which they are listed."""
    await run(store, Scripted(pages("a", "b", "c"), marked="m1"))
    events = [
        *(found("a", "First edit."), found("a", "Second edit.")),
        *(DeletedDocument("b"), found("b", "Page b says b.")),
        *(found("c", "An edit."), DeletedDocument("c")),
        *(found("d", "Short-lived."), DeletedDocument("d")),
    ]

    await run(store, Scripted(events, whole=False))

    assert await keys(store) == {"a", "b"}
    assert [one.text for one in await listed_passages(store.manifest, "c", "a")] == ["Second edit."]


async def test_a_change_that_was_taken_back_is_taken_back(store):
    """The fingerprint is the known one, and not what was read a moment ago."""
    await run(store, Scripted(pages("a"), marked="m1"))

    await run(store, Scripted([found("a", "A slip."), *pages("a")], whole=False))

    assert [one.text for one in await listed_passages(store.manifest, "c", "a")] == ["Page a says a."]


async def test_what_could_not_be_read_is_asked_for_again_though_it_has_not_changed(store):
    """Nobody would list it; what still cannot be read stays on the list, and what is gone leaves it."""
    broken = [found("a"), found("b"), found("c"), *pages("d")]
    await run(store, Scripted(broken, marked="m1"))
    singly = {"a": found("a", "Now it can be read."), "b": found("b"), "c": DeletedDocument("c")}
    source = Scripted(pages("e"), whole=False, marked="m2", singly=singly)

    report = await run(store, source)

    assert (source.asked_one, report.added) == (["a", "b", "c"], 2)
    assert [key for key, _ in await store.manifest.failures("c")] == ["b"]
    assert await keys(store) == {"a", "d", "e"}


async def test_what_is_larger_than_any_document_is_not_loaded(store):
    """However large it says it is; the others are."""

    def explode():
        raise AssertionError("it was loaded")

    vast = found("vast", size=page_cleanup.LARGEST_DOCUMENT + 1)
    report = await run(store, Scripted([type(vast)("vast", "f", vast.size, explode), *pages("a")]))

    assert (report.added, report.failures) == (1, (("vast", "is larger than 512 MB"),))


async def test_a_text_that_no_store_should_hold_is_listed_and_the_others_are_read(store):
    """A page of a hundred megabytes among ordinary ones."""
    long = "word " * (page_cleanup.LONGEST_TEXT // 5 + 1)
    report = await run(store, Scripted([*pages("a"), found("long", long), *pages("b")]))

    reason = dict(report.failures)["long"]
    assert (report.added, "split it" in reason) == (2, True)


async def test_an_unreadable_document_keeps_its_version_over_listings_of_changes(store):
    """It is not gone."""
    await run(store, Scripted(pages("a", "b"), marked="m1"))

    report = await run(store, Scripted([Unreadable("a", "is encrypted")], whole=False))

    assert (report.failures, await keys(store)) == ((("a", "is encrypted"),), {"a", "b"})
