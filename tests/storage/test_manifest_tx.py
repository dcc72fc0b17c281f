"""Commits that come too late: what was planned over other passages than there are now is left as it is."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from storage.database.refresh_log import Leases
from storage.errors import LeaseLost
from storage.manifest import Manifest
from storage.types import Checkpoint, Document, DocumentChange, Lease, Passage, hash_passage, make_passage_id
from tests.storage.stores import listed_passages, open_empty_database

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def manifest(tmp_path):
    """An empty manifest."""
    with open_empty_database(tmp_path) as database:
        yield Manifest(database)


def passage(text, position=0, key="a"):
    """Make a passage as chunking does."""
    return Passage(make_passage_id("c", key, "", text, 0), "c", key, "", text, position, hash_passage("T", "", text))


def change(key, fingerprint, *, add=(), keep=(), drop=()):
    """Make a change of one document, by the texts of its passages."""
    document = Document("c", key, "T", fingerprint=fingerprint)
    made = [tuple(passage(text, key=key) for text in texts) for texts in (add, keep, drop)]
    return DocumentChange("c", key, document, add=made[0], keep=made[1], drop=tuple(one.id for one in made[2]))


async def texts(manifest, key="a"):
    """Read what is listed of a document."""
    return {one.text for one in await listed_passages(manifest, "c", key)}


async def test_a_change_planned_over_what_another_has_replaced_is_left_and_read_again(manifest):
    """Never half of one and half of the other; the rest of its batch is written."""
    await manifest.commit([change("a", "1", add=["one", "two"])])
    late = change("a", "2", add=["three"], keep=["one"], drop=["two"])
    await manifest.begin([late])
    await manifest.commit([change("a", "3", add=["four"], drop=["one", "two"])])

    overtaken = await manifest.commit([late, change("b", "2", add=["other"])])

    assert overtaken == (late,)
    assert (await texts(manifest), await texts(manifest, "b")) == ({"four"}, {"other"})
    assert await manifest.fingerprints("c") == {"a": "", "b": "2"}
    assert await manifest.unlisted() == tuple(sorted(("c", passage(text).id) for text in ("one", "two", "three")))


async def test_a_passage_that_came_meanwhile_is_not_left_beside_the_new_version(manifest):
    """The change knows nothing of it, so it would stay."""
    await manifest.commit([change("a", "1", add=["one"])])
    late = change("a", "2", add=["two"], drop=["one"])
    await manifest.commit([change("a", "3", add=["three"], keep=["one"])])

    assert await manifest.commit([late]) == (late,)
    assert await texts(manifest) == {"one", "three"}


async def test_what_was_forgotten_is_not_brought_back_by_a_refresh_under_way(manifest):
    """Nor by any later one, until it is remembered."""
    await manifest.commit([change("a", "1", add=["one"])])
    late = change("a", "2", add=["two"], keep=["one"])
    await manifest.begin([late])
    await manifest.forget("c", ["a", "never seen"])
    await manifest.commit([DocumentChange("c", "a", None)])

    assert await manifest.commit([late]) == (late,)
    assert (await manifest.document("c", "a"), await texts(manifest)) == (None, set())
    assert await manifest.forgotten("c") == {"a", "never seen"}
    assert await manifest.forgotten("d") == frozenset()
    unseen = change("never seen", "2", add=["three"])
    assert await manifest.commit([unseen]) == (unseen,)

    await manifest.forget("c", ["a"])
    assert [one.key for one in await manifest.all_forgotten()] == ["a", "never seen"]
    await manifest.remember("c", ["a", "never seen"])
    assert await manifest.forgotten("c") == frozenset()
    assert await manifest.commit([change("a", "2", add=["two"])]) == ()
    assert await texts(manifest) == {"two"}


async def test_nothing_is_begun_or_committed_under_a_lease_that_is_another_s(manifest):
    """Whoever stood still has lost it, and finds out before it writes."""
    leases, lease = Leases(manifest.database), Lease("refresh:c", "a")
    await leases.take(lease.name, "a", NOON, 60)
    new = change("a", "1", add=["one"])
    await manifest.begin([new], lease)
    await leases.take(lease.name, "b", NOON + timedelta(seconds=61), 60)

    for write in (manifest.begin, manifest.commit):
        with pytest.raises(LeaseLost):
            await write([new], lease)

    assert await texts(manifest) == set()


async def test_each_commit_moves_its_corpus_on(manifest):
    """By that a search notices that what it found may be there no more."""

    async def generations():
        return {corpus.name: corpus.generation for corpus in await manifest.catalogue()}

    await manifest.commit([change("a", "1", add=["one"])])
    before = await generations()
    await manifest.begin([change("b", "1", add=["two"])])
    assert await generations() == before

    await manifest.commit([change("b", "1", add=["two"]), DocumentChange("d", "x", Document("d", "x", "X"))])
    after = await generations()
    assert (after["c"] > before["c"], after["d"]) == (True, 1)


async def test_a_mark_stays_until_another_is_made(manifest):
    """A refresh that came to no end makes none."""
    assert await manifest.checkpoint("c") == Checkpoint()
    await manifest.finish("c", NOON, checkpoint=Checkpoint("m1", "settings", "2026-03-01"))
    await manifest.finish("c", NOON)

    assert await manifest.checkpoint("c") == Checkpoint("m1", "settings", "2026-03-01")
    assert (await manifest.corpora())[0].edition == "2026-03-01"


async def test_several_documents_are_read_with_their_passages(manifest):
    """As they are read one by one; those that are not there are left out."""
    await manifest.commit([change("a", "1", add=["one", "two"]), change("b", "1", add=["three"]), change("e", "1")])
    await manifest.begin([replace(change("b", "2", add=["three"]), document=Document("c", "b", "New"))])

    found = await manifest.stored("c", ["a", "b", "e", "nobody"])

    assert found == {
        key: (await manifest.document("c", key), await listed_passages(manifest, "c", key)) for key in ("a", "b", "e")
    }
