"""Tests of the manifest: versions of documents, and consistent views for homes that follow its changes."""

import asyncio
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import StatementError

from storage.database.bodies import (
    BodyDamaged,
    PackedBody,
    PackedVersion,
    VersionMemory,
    pack_passages,
    unpack_passages,
)
from storage.database.document_versions import VersionChange
from storage.database.engine import Database
from storage.database.manifest_tx import Commit, record_follower
from storage.database.refresh_log import Leases
from storage.errors import LeaseLost
from storage.manifest import Manifest
from storage.types import Checkpoint, CorpusInfo, Document, Lease, Passage, PassageKind, hash_passage, make_passage_id
from tests.storage.stores import listed_passages, open_empty_database
from tests.thorough import EXAMPLES

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def manifest(database: Database) -> Manifest:
    return Manifest(database)


def document(key: str, *, corpus: str = "c", title: str = "T", fingerprint: str = "f") -> Document:
    return Document(corpus, key, title, fingerprint=fingerprint)


def cut(of: Document, *texts: str) -> tuple[Passage, ...]:
    return tuple(
        Passage(
            make_passage_id(of.corpus, of.key, "S", text, texts[:position].count(text)),
            of.corpus,
            of.key,
            "S",
            text,
            position,
            hash_passage(of.title, "S", text),
        )
        for position, text in enumerate(texts)
    )


def write(of: Document, *texts: str, over: int | None = None) -> VersionChange:
    return VersionChange(of.corpus, of.key, of, len(texts), pack_passages(cut(of, *texts)), over)


def new(*texts: str, key: str = "a", corpus: str = "c", fingerprint: str = "f") -> VersionChange:
    return write(document(key, corpus=corpus, fingerprint=fingerprint), *texts)


def gone(key: str = "a", corpus: str = "c") -> VersionChange:
    return VersionChange(corpus, key, None)


async def put(manifest: Manifest, *changes: VersionChange) -> Commit:
    """Commit changes, of which none may conflict."""
    commit = await manifest.commit(changes)
    assert commit.conflicts == frozenset()
    return commit


async def texts(manifest: Manifest, key: str = "a", corpus: str = "c") -> list[str]:
    return [passage.text for passage in await listed_passages(manifest, corpus, key)]


def shown(versions: tuple[PackedVersion, ...]) -> Mapping[tuple[str, str], tuple[str, ...]]:
    return {
        (version.document.corpus, version.document.key): tuple(it.text for it in version.body.all())
        for version in versions
    }


async def test_passage_and_document_are_read_with_every_field(manifest: Manifest) -> None:
    date = datetime(2026, 3, 1, 17, tzinfo=timezone(timedelta(hours=5)))
    row = Document("c", "a", "Title", "https://x.example/a", "r7", date, "de", "mark", ("Other", "Name"))
    row = replace(row, disambiguation=True)
    first, second = cut(row, "| a | b |", "\udcff")
    table = replace(first, kind=PassageKind.TABLE)
    await put(manifest, VersionChange("c", "a", row, 2, pack_passages([table, second])))

    (version,) = (await manifest.stored("c", ["a", "b"])).values()

    assert (version.document, version.passages) == (row, (table, second))
    assert version.document.date is not None
    assert version.document.date.tzinfo is UTC
    assert await manifest.document("c", "a") == row


async def test_date_without_a_zone_is_refused(manifest: Manifest) -> None:
    naive = replace(document("a"), date=datetime(2026, 3, 1))  # noqa: DTZ001 - what must be refused

    with pytest.raises(StatementError, match="no time zone"):
        await put(manifest, new("one", key="b"), write(naive))

    assert await manifest.fingerprints("c") == {}


async def test_new_version_replaces_the_old_one(manifest: Manifest) -> None:
    before = await put(manifest, new("one", "two"), new("other", key="b"), new("one", corpus="d"))
    after = await put(manifest, new("two", "three"))

    assert max(before.numbers.values()) < after.numbers["c", "a"]
    assert await texts(manifest) == ["two", "three"]
    assert (await texts(manifest, "b"), await texts(manifest, "a", "d")) == (["other"], ["one"])


async def test_removed_document_is_not_found(manifest: Manifest) -> None:
    await put(manifest, new("one", "two"), new("other", key="b"))
    await put(manifest, gone())
    await put(manifest, gone())

    assert await manifest.document("c", "a") is None
    assert await manifest.recall([it.id for it in cut(document("a"), "one")], [("c", "a"), ("c", "b")]) == {}
    assert await manifest.fingerprints("c") == {"b": "f"}


async def test_passages_are_recalled_only_if_their_documents_are_named(manifest: Manifest) -> None:
    many = [new("same", key=f"{number}") for number in range(1201)]
    await put(manifest, *many)
    ids = {cut(document(f"{number}"), "same")[0].id for number in range(1201)}

    assert set(await manifest.recall(ids, [("c", f"{number}") for number in range(1201)])) == ids
    assert await manifest.recall(ids, [("d", "1"), ("c", "nobody")]) == {}
    assert await manifest.recall([], [("c", "1")]) == {}


async def test_documents_are_listed_in_pages(manifest: Manifest) -> None:
    await put(manifest, *(new(key, key=key) for key in "abcdef"), new("x", corpus="d"))
    await put(manifest, new("again", key="a"))

    pages: list[list[str]] = []
    after = 0
    while page := await manifest.listed("c", after=after, limit=4):
        after = page[-1].number
        pages.append([version.document.key for version in page])

    assert pages == [["b", "c", "d", "e"], ["f", "a"]]


@pytest.mark.parametrize(
    "altered",
    [
        "UPDATE documents SET title = 'Another'",
        "UPDATE bodies SET body = zeroblob(9)",
        "UPDATE bodies SET body = (SELECT body FROM bodies AS other WHERE other.number <> bodies.number LIMIT 1)",
    ],
)
async def test_document_tampered_in_the_database_is_no_longer_quoted(
    manifest: Manifest, caplog: pytest.LogCaptureFixture, altered: str
) -> None:
    """It is logged without its text, and can be ingested again."""
    await put(manifest, new("The bell rings at ten.", "It is old."), new("other", key="b"))
    assert await texts(manifest) == ["The bell rings at ten.", "It is old."]
    await manifest.database.write(lambda connection: connection.execute(sa.text(altered)))

    assert await texts(manifest) == []
    assert "footnote ingest --only" in caplog.text
    assert "bell" not in caplog.text
    await put(manifest, new("The bell rings at ten."))
    assert await texts(manifest) == ["The bell rings at ten."]


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=40), st.sampled_from(PassageKind)), max_size=6))
def test_packed_passages_are_restored(rows: list[tuple[str, str, PassageKind]]) -> None:
    of = document("a")
    made = [
        replace(one, text=text, section=path, kind=kind)
        for one, (path, text, kind) in zip(cut(of, *(text for _, text, _ in rows)), rows, strict=True)
    ]

    unpacked = unpack_passages(of, pack_passages(made))

    assert [(it.section, it.text, it.kind, it.position) for it in unpacked] == [
        (*row, at) for at, row in enumerate(rows)
    ]
    assert len({it.id for it in unpacked}) == len(rows)


@pytest.mark.parametrize("body", [b"", b"x", pack_passages([])[:-1]])
def test_truncated_body_is_reported(body: bytes) -> None:
    with pytest.raises(BodyDamaged):
        unpack_passages(document("a"), body)


async def test_finished_refresh_stores_its_time_and_failures(manifest: Manifest) -> None:
    await put(manifest, new("one", "two"), new("x", corpus="b"), new("y", key="z"))
    await put(manifest, new("one", "two", "three"), gone("z"))
    await manifest.finish("c", NOON, [("z.pdf", "is empty"), ("y.pdf", "is encrypted"), ("y.pdf", "is encrypted")])
    assert await manifest.failures("c") == (("y.pdf", "is encrypted"), ("z.pdf", "is empty"))

    await manifest.finish("c", NOON, [("y.pdf", "is encrypted")])
    await manifest.finish("empty", NOON)

    assert await manifest.corpora() == (
        CorpusInfo("b", documents=1, passages=1, refreshed=None, failures=0),
        CorpusInfo("c", documents=1, passages=3, refreshed=NOON, failures=1),
        CorpusInfo("empty", documents=0, passages=0, refreshed=NOON, failures=0),
    )


async def test_unknown_corpus_is_empty(manifest: Manifest) -> None:
    assert (await manifest.fingerprints("no"), await manifest.listed("no")) == ({}, ())
    assert (await manifest.failures("no"), await manifest.unsettled("home")) == ((), ())
    assert await manifest.document("no", "a") is None


async def test_empty_commit_changes_nothing(manifest: Manifest) -> None:
    """A statement without rows would apply to all rows."""
    await put(manifest, new("one"))
    await put(manifest)
    await put(manifest, new(key="b"))

    assert (await texts(manifest), await manifest.fingerprints("c")) == (["one"], {"a": "f", "b": "f"})


async def test_change_of_a_replaced_version_conflicts_and_is_read_again(manifest: Manifest) -> None:
    first = await put(manifest, new("one", "two"))
    late = write(document("a", fingerprint="2"), "three", over=first.numbers["c", "a"])
    await put(manifest, new("four", fingerprint="3"))

    commit = await manifest.commit([late, new("other", key="b"), write(document("d"), "new", over=0)])

    assert commit.conflicts == {("c", "a")}
    assert (await texts(manifest), await texts(manifest, "b"), await texts(manifest, "d")) == (
        ["four"],
        ["other"],
        ["new"],
    )
    assert await manifest.fingerprints("c") == {"a": "", "b": "f", "d": "f"}
    assert (await manifest.commit([write(document("d"), "newer", over=0)])).conflicts == {("c", "d")}


async def test_running_refresh_does_not_restore_a_forgotten_document(manifest: Manifest) -> None:
    await put(manifest, new("one"))
    await manifest.forget("c", ["a", "never seen"])
    await manifest.commit([gone()], erasing=True)

    assert (await manifest.commit([new("two"), new("x", key="never seen")])).conflicts == {
        ("c", "a"),
        ("c", "never seen"),
    }
    assert (await manifest.document("c", "a"), await texts(manifest)) == (None, [])
    assert await manifest.forgotten("c") == {"a", "never seen"}
    assert await manifest.forgotten("d") == frozenset()

    await manifest.remember("c", ["a"])
    await put(manifest, new("two"))
    assert await texts(manifest) == ["two"]


async def test_erased_document_is_hidden_from_lagging_homes(manifest: Manifest) -> None:
    old = await put(manifest, new("one"))
    await put(manifest, new("two"))
    await manifest.commit([gone()], erasing=True)

    numbers = list(old.numbers.values())
    assert await manifest.visible(numbers[0], numbers, [("c", "a")], ["c"]) == ()
    assert await manifest.versions(range(9)) == ()


async def test_cached_versions_are_reused_until_a_write(manifest: Manifest) -> None:
    made = await put(manifest, new("one"), new("two", key="b"))
    head, names = max(made.numbers.values()), [("c", "a"), ("c", "b")]
    seen = await manifest.visible(head, list(made.numbers.values()), [], ["c"])
    read = list[str]()
    sa.event.listen(sa.Engine, "before_cursor_execute", note := lambda *given: read.append(given[2]))
    try:
        again = await manifest.visible(head, [made.numbers["c", "a"]], names, ["c"])
        row = await manifest.document("c", "a")
        assert read == []
        later = await put(manifest, new("three"))
        read.clear()
        assert shown(await manifest.visible(head, [], names, ["c"])) == shown(seen)
        assert len(read) == 2  # the transaction's start, and the versions under both names
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)

    assert (shown(again), row) == (shown(seen), seen[0].document)
    assert shown(await manifest.visible(later.numbers["c", "a"], [], [("c", "a")], ["c"])) == {("c", "a"): ("three",)}


def test_cache_is_limited_by_passages() -> None:
    memory, state = VersionMemory(most=2), (1,)
    versions = [
        PackedVersion(number, row, PackedBody(row, pack_passages(cut(row, "x"))), "", is_current=True)
        for number, row in enumerate(map(document, "abc"))
    ]
    memory.keep(state, versions[:2])
    assert memory.recall(state, [0], []).keys() == {0}
    memory.keep(state, versions[2:])

    assert memory.recall(state, [0, 1, 2], [("c", "b"), ("c", "c")]).keys() == {0, 2}
    assert memory.recall((2,), [0, 2], []) == memory.recall(None, [0, 2], []) == {}


async def test_another_owners_lease_blocks_begin_and_commit(manifest: Manifest) -> None:
    mine, theirs = Lease("refresh:c", "me"), Lease("refresh:c", "you")
    assert await Leases(manifest.database).take(mine.name, theirs.owner, NOON, 60.0)

    with pytest.raises(LeaseLost):
        await manifest.begin([("c", "a")], "home", mine)
    with pytest.raises(LeaseLost):
        await manifest.commit([new("one")], mine)

    assert (await manifest.unsettled("home"), await manifest.fingerprints("c")) == ((), {})
    await manifest.commit([new("one")], theirs)
    assert await texts(manifest) == ["one"]


async def test_commit_raises_the_generation_of_its_corpora(manifest: Manifest) -> None:
    await put(manifest, new("one"), new("x", corpus="d"))
    await put(manifest, new("two"), gone("nobody", "d"))

    assert {corpus.name: corpus.generation for corpus in await manifest.catalogue()} == {"c": 2, "d": 1}


async def test_changes_begun_by_a_home_are_unsettled_until_it_settles_them(manifest: Manifest) -> None:
    await manifest.begin([("c", "a"), ("d", "b")], "home")
    await manifest.begin([("c", "a")], "home")
    assert set(await manifest.unsettled("home")) == {("c", "a"), ("d", "b")}

    await manifest.settle([("c", "a")], "home", 0)

    assert await manifest.unsettled("home") == (("d", "b"),)


async def test_changes_of_a_dead_home_are_finished_by_others(manifest: Manifest) -> None:
    for name in ("alive", "home"):
        await manifest.settle([], name, 0)
    await manifest.begin([("c", "a"), ("c", "b")], "alive")
    await manifest.begin([("c", "b"), ("c", "d")], "gone")

    assert await manifest.unsettled("home") == (("c", "b"), ("c", "d"))
    assert await manifest.unsettled("alive") == (("c", "a"), ("c", "b"))


async def test_checkpoint_is_kept_until_the_next(manifest: Manifest) -> None:
    assert await manifest.checkpoint("c") == Checkpoint()
    checkpoint = Checkpoint("mark", "digest", "2026-03-01")
    await manifest.finish("c", NOON, (), checkpoint)
    await manifest.finish("c", NOON)

    assert await manifest.checkpoint("c") == checkpoint


KEYS = "abc"


@dataclass
class Home:
    """A home that follows the manifest; `held` are the numbers in its lexical index."""

    name: str
    followed: int = 0
    held: set[int] = field(default_factory=set)

    async def follow(self, manifest: Manifest, most: int, at: datetime) -> None:
        if not await self._tell(manifest, at):
            self.followed, self.held = 0, set()
            assert await self._tell(manifest, at)
        lag = await manifest.lag(self.followed, most)
        self.held = (self.held | set(lag.added)) - set(lag.retired)
        self.followed = lag.upto
        assert await self._tell(manifest, at)

    async def _tell(self, manifest: Manifest, at: datetime) -> bool:
        return await manifest.database.write(lambda it: record_follower(it, self.name, self.followed, at))

    async def sees(self, manifest: Manifest) -> Mapping[tuple[str, str], tuple[str, ...]]:
        worded = await manifest.visible(self.followed, self.held, [], ["c"])
        named = await manifest.visible(self.followed, [], [("c", key) for key in KEYS], ["c"])
        assert shown(worded) == shown(named)
        return shown(worded)


STEP = st.one_of(
    st.tuples(
        st.just("write"),
        st.lists(
            st.tuples(st.sampled_from(KEYS), st.lists(st.sampled_from("xyz"), max_size=3)),
            min_size=1,
            max_size=3,
            unique_by=lambda it: it[0],
        ),
    ),
    st.tuples(st.just("remove"), st.sampled_from(KEYS)),
    st.tuples(st.just("follow"), st.tuples(st.integers(0, 2), st.integers(1, 4))),
    st.tuples(st.just("wait"), st.sampled_from([timedelta(minutes=6), timedelta(days=31)])),
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    return (tmp_path_factory.mktemp("home") for _ in itertools.count())


@settings(max_examples=EXAMPLES, deadline=None)
@given(steps=st.lists(STEP, max_size=20))
def test_home_sees_the_manifest_as_of_the_last_change_it_followed(folders: Iterator[Path], steps: list) -> None:
    asyncio.run(follow_all(next(folders), steps))


async def follow_all(folder: Path, steps: list) -> None:
    homes, at = [Home(f"home {number}") for number in range(3)], NOON
    with open_empty_database(folder) as database:
        history = RecordedManifest(Manifest(database))
        for what, of in steps:
            if what == "write":
                await history.commit([new(*words, key=key) for key, words in of])
            elif what == "remove":
                await history.commit([gone(of)])
            elif what == "follow":
                await homes[of[0]].follow(history.manifest, of[1], at)
            else:
                at += of
            oldest = await oldest_kept(history.manifest)
            for home in homes:
                assert home.followed < oldest or await home.sees(history.manifest) == history.states[home.followed]
        for home in homes:
            while home.followed < max(history.states):
                await home.follow(history.manifest, 3, at)
            assert await home.sees(history.manifest) == history.states[max(history.states)]
        live = {version.number for version in await history.manifest.listed("c")}
        assert all(home.held == live for home in homes)


@dataclass
class RecordedManifest:
    """A manifest with its documents after each change, by number."""

    manifest: Manifest
    states: dict[int, dict[tuple[str, str], tuple[str, ...]]] = field(default_factory=lambda: {0: {}})

    async def commit(self, changes: list[VersionChange]) -> None:
        """Commit changes of distinct documents; each takes the next number."""
        for change in changes:
            state, last = dict(self.states[max(self.states)]), max(self.states)
            before = state.pop((change.corpus, change.key), None)
            if change.document:
                state[change.corpus, change.key] = tuple(
                    it.text for it in unpack_passages(change.document, change.body)
                )
            elif before is None:
                continue
            self.states[last + 1] = state
        await self.manifest.commit(changes)
        assert (await self.manifest.lag(0, 1)).head == max(self.states)


async def oldest_kept(manifest: Manifest) -> int:
    """Return the newest change whose replaced versions have lost their texts."""
    query = sa.text(
        "SELECT coalesce(max(retired), 0) FROM documents"
        " WHERE retired > 0 AND number NOT IN (SELECT number FROM bodies)"
    )
    purged = sa.text("SELECT purged FROM sequence")
    return await manifest.database.read(lambda it: max(it.execute(query).scalar_one(), it.execute(purged).scalar_one()))


async def test_sample_is_spread_over_the_corpus(manifest: Manifest) -> None:
    keys = (document(f"{number:03}") for number in range(100))
    await put(manifest, *(write(row, "text") for row in (*keys, document("x", corpus="other"))))
    sampled = [row.document.key for row in await manifest.sample("c", 4)]

    assert len(sampled) == 4
    assert sampled == sorted(sampled)
    assert sampled[0] < "030"
    assert sampled[-1] > "070"
    assert len(await manifest.sample("c", 500)) == 100
    assert await manifest.sample("none", 4) == ()
