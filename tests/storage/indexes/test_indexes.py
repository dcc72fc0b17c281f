"""Tests of the two indexes: one contract for both, then what is particular to each."""

import json
from contextlib import closing

import numpy as np
import pytest
from chromadb.errors import InternalError

from storage.database.document_versions import StoredVersion
from storage.errors import IndexStale, Panic
from storage.indexes.dense import DenseIndex, open_dense_index
from storage.indexes.embedding import indexed_text
from storage.indexes.lexical import LexicalIndex, expand_term_forms, index_version
from storage.types import Document, Passage
from tests.fakes import WordEmbedder
from tests.storage.stores import damage_postings


def row(key: str, text: str, *, corpus: str = "handbook", title: str = "", language: str = "en"):
    return Document(corpus, key, title, language=language), Passage(key, corpus, key, "", text, 0, f"hash-{key}")


class Dense:
    """Adapt the dense index to the contract."""

    def __init__(self, folder):
        self.embedder = WordEmbedder()
        self.index = DenseIndex(folder, embedder=self.embedder.name)

    def write(self, rows):
        for document, passage in rows:
            self.index.upsert([passage], self.embedder.embed([indexed_text(document, passage)]))

    def delete(self, ids):
        for corpus in self.index.corpora():
            self.index.delete(corpus, list(ids))

    def search(self, text, corpora, k):
        vector = self.embedder.embed([text])[0]
        scores = {
            ref: score
            for corpus in corpora
            for ref, score in self.index.search(corpus, vector, k, self.embedder.name).items()
        }
        assert all(ref.id == ref.document and ref.corpus in corpora for ref in scores)
        return {ref.id: score for ref, score in scores.items()}

    def contents(self):
        return {key for corpus in self.index.corpora() for key in self.index.contents(corpus)}

    def count(self):
        return sum(self.index.count(corpus) for corpus in self.index.corpora())

    def close(self):
        self.index.close()


class Lexical:
    """Adapt the lexical index to the contract: each write is a change that it follows."""

    def __init__(self, folder):
        self.index = LexicalIndex(folder)
        self.keys = KEYS.setdefault(folder, {})

    def write(self, rows):
        start = self.index.followed
        versions = [
            index_version(StoredVersion(start + at, document, (passage,)))
            for at, (document, passage) in enumerate(rows, 1)
        ]
        before = [number for number, key in self.keys.items() if key in {document.key for document, _ in rows}]
        self.index.follow(versions, before, start + len(rows))
        self._drop(before)
        self.keys.update((start + at, document.key) for at, (document, _) in enumerate(rows, 1))

    def delete(self, ids):
        gone = [number for number, key in self.keys.items() if key in ids]
        self.index.follow([], [*gone, 10_000_000], self.index.followed + 1)
        self._drop(gone)

    def _drop(self, numbers):
        for number in numbers:
            del self.keys[number]

    def search(self, text, corpora, k):
        scores, followed = self.index.search(text, corpora, k)
        assert followed == self.index.followed
        return {self.keys[number]: score for (number, _), score in scores.items()}

    def contents(self):
        return {self.keys[number] for number, _ in self.index.places()}

    def count(self):
        return self.index.count()

    def close(self):
        self.index.close()


KEYS = {}


@pytest.fixture(params=[Dense, Lexical], ids=["dense", "lexical"])
def opened(request, tmp_path):
    """Open the index in the same folder, any number of times."""
    indexes = []

    def open_again():
        while indexes:
            indexes.pop().close()
        indexes.append(request.param(tmp_path / "index"))
        return indexes[0]

    yield open_again
    while indexes:
        indexes.pop().close()


def test_passage_with_most_shared_words_is_first(opened):
    index = opened()
    index.write([row("leave", "Everyone has 30 days of leave."), row("lunch", "Lunch is served at noon.")])

    scores = index.search("days of leave", ["handbook"], 2)

    assert max(scores, key=scores.get) == "leave"


def test_rewritten_passage_is_stored_once_and_an_edit_replaces_it(opened):
    index = opened()
    index.write([row("leave", "Everyone has 30 days of leave.")])
    index.write([row("leave", "Everyone has 30 days of leave.")])
    index.write([row("leave", "Nobody counts the holidays.")])

    assert index.contents() == {"leave"}
    assert set(index.search("holidays", ["handbook"], 5)) == {"leave"}


def test_deleted_passages_are_not_found(opened):
    index = opened()
    index.write([row("leave", "Everyone has 30 days of leave."), row("lunch", "Lunch is served at noon.")])
    index.delete(["leave", "never-there"])

    assert "leave" not in index.search("days of leave", ["handbook"], 5)
    assert index.count() == 1


def test_search_is_limited_to_the_given_corpora(opened):
    index = opened()
    index.write([row("ours", "The vault opens at nine."), row("theirs", "The vault opens at ten.", corpus="secret")])

    assert set(index.search("vault opens", ["handbook"], 5)) == {"ours"}
    assert set(index.search("vault opens", ["handbook", "secret"], 5)) == {"ours", "theirs"}
    assert index.search("vault opens", [], 5) == {}


def test_reopened_index_keeps_its_contents(opened):
    opened().write([row("leave", "Everyone has 30 days of leave.")])

    assert opened().contents() == {"leave"}


def test_thousands_of_passages_are_all_listed(opened):
    index = opened()
    if isinstance(index, Dense):
        passages = [row(str(n), "")[1] for n in range(5_001)]
        index.index.upsert(passages, np.eye(64, dtype=np.float32)[np.arange(5_001) % 64])
    else:
        index.write([row(str(n), f"Number {n}") for n in range(5_001)])

    assert len(index.contents()) == 5_001


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [("stamp.json", '{"schema": -1, "languages": []}', "another version"), ("meta.json", "{", "cannot be used")],
)
def test_unreadable_lexical_index_is_reported(tmp_path, file, content, reason):
    LexicalIndex(tmp_path).close()
    (tmp_path / file).write_text(content)

    with pytest.raises(IndexStale, match=reason) as raised:
        LexicalIndex(tmp_path)

    assert "footnote reindex" in raised.value.hint


def test_tantivy_panic_is_reported_as_a_stale_index(tmp_path):
    damage_postings(tmp_path, "handbook", "the bell rings")
    with closing(LexicalIndex(tmp_path)) as index:
        assert index.count() == 300
        with pytest.raises(IndexStale, match="cannot be used") as caught:
            index.search("bell", ["handbook"], 50)

    assert "reindex" in caught.value.hint
    assert isinstance(caught.value.__cause__, Panic)


def test_lexical_index_detects_damaged_files(tmp_path):
    face, unharmed = Lexical(tmp_path), []
    index = face.index
    face.write([row(f"{number}", f"The bell {number} rings.") for number in range(50)])
    face.delete(["7"])
    with closing(index):
        assert index.stale(49) == ""
        for file in tmp_path.glob("?" * 32 + ".*"):
            content = file.read_bytes()
            for damaged in (b"", content[:5], bytes([content[0] ^ 1]) + content[1:], content[:-9] + content[-8:]):
                file.unlink()
                file.write_bytes(damaged)
                unharmed += [file.name] * (file.name not in index.stale(49))
            assert index.stale(49, most=0) == ""
            file.write_bytes(content)

    assert unharmed == []


def test_word_is_searched_in_its_form_in_every_indexed_language(tmp_path):
    index = Lexical(tmp_path)
    index.write([row("urlaub", "Die Versicherungen zahlen jedes Jahr.", language="de")])

    assert set(index.search("Versicherung", ["handbook"], 5)) == {"urlaub"}
    index.close()


def test_first_language_decides_a_words_stem():
    assert all(isinstance(group, tuple) for group in expand_term_forms("houses", ["en", "de"]))
    assert expand_term_forms("houses", ["en"])[0][0] == expand_term_forms("house", ["en"])[0][0]


@pytest.mark.parametrize(
    ("expected", "embedder", "reason"),
    [
        (1, "words@1", ""),
        (1, "words-int8@1", ""),
        (2, "words@1", "1 of 2"),
        (1, "words@2", "another embedding function"),
    ],
)
def test_dense_index_reports_why_it_is_stale(tmp_path, expected, embedder, reason):
    first = Dense(tmp_path)
    first.write([row("leave", "Everyone has 30 days of leave.")])
    first.close()

    index = DenseIndex(tmp_path, embedder=embedder)

    assert reason in index.stale("handbook", expected)
    assert bool(index.stale("handbook", expected)) == bool(reason)
    assert "missing" in index.stale("other", 1)
    assert not index.stale("other", 0)
    index.close()


class DeletingCollection:
    """A Chroma collection from which another thread is deleting: its reads fail twice, and one hit is half deleted."""

    def __init__(self, collection):
        self.collection, self.faults = collection, [InternalError("Error finding id"), ValueError("zip() argument 2")]
        self.metadata = collection.metadata

    def query(self, **options):
        if self.faults:
            raise self.faults.pop()
        result = self.collection.query(**options)
        result["metadatas"][0][0] = None
        return result


def test_dense_search_succeeds_while_passages_are_deleted(tmp_path):
    with closing(Dense(tmp_path)) as dense:
        dense.write([row("leave", "Everyone has 30 days of leave."), row("lunch", "Lunch is served at noon.")])
        dense.index._collections["handbook"] = DeletingCollection(dense.index._collection("handbook"))

        assert set(dense.search("days of leave", ["handbook"], 2)) == {"lunch"}


def test_damaged_dense_index_is_reported_and_rebuilt_in_the_same_process(tmp_path):
    """Chroma caches a client that failed to open, and would return it for the same folder."""
    with closing(DenseIndex(tmp_path, embedder="e")):
        pass
    (tmp_path / "chroma.sqlite3").write_bytes(b"no database at all " * 500)

    for _ in range(2):
        with pytest.raises(IndexStale, match="cannot be used"):
            open_dense_index(tmp_path, "e")
    with closing(open_dense_index(tmp_path, "e", rebuilding=True)) as index:
        assert not index.corpora()


def test_interrupted_write_can_be_repeated(tmp_path):
    versions = [index_version(StoredVersion(n, *_only(row(f"{n}", f"The bell {n} rings.")))) for n in (1, 2, 3)]
    with closing(LexicalIndex(tmp_path)) as index:
        index.follow(versions, [], 3)
    stamp = json.loads((tmp_path / "stamp.json").read_text())
    (tmp_path / "stamp.json").write_text(json.dumps(stamp | {"followed": 0}))

    with closing(LexicalIndex(tmp_path)) as index:
        index.follow(versions[:2], [], 2)
        assert (index.count(), index.search("bell", ["handbook"], 9)[1]) == (3, 2)
        index.follow(versions[2:], [], 3)
        assert index.places() == {(1, 0), (2, 0), (3, 0)}


def _only(of):
    document, passage = of
    return document, (passage,)


def test_rebuilt_index_replaces_the_old_one_once_complete(tmp_path):
    folder = tmp_path / "lexical"
    with closing(LexicalIndex(folder)) as index:
        index.follow([index_version(StoredVersion(1, *_only(row("old", "Old bell."))))], [], 1)
        name = index.name
    with closing(LexicalIndex(folder, rebuilding=True)) as index:
        index.begin_again()
        index.follow([index_version(StoredVersion(1, *_only(row("new", "New bell."))))], [], 1)
    with closing(LexicalIndex(folder)) as index:
        assert (index.name, len(index.search("old", ["handbook"], 9)[0])) == (name, 1)
    with closing(LexicalIndex(folder, rebuilding=True)) as index:
        index.begin_again()
        assert index.followed == 1
        index.switch()
        assert len(index.search("new", ["handbook"], 9)[0]) == 1
        index.follow([index_version(StoredVersion(2, *_only(row("more", "More bells."))))], [], 2)

    assert [path.name for path in tmp_path.iterdir()] == ["lexical"]
    with closing(LexicalIndex(folder)) as index:
        assert (index.count(), index.followed) == (2, 2)


@pytest.mark.parametrize(("large", "small"), [(60, 5), (60, 59), (60, 0), (3, 200)])
def test_broad_scope_finds_the_same(tmp_path, large, small):
    texts = [f"The bell {'rings ' * (n % 7)} at {n}." for n in range(large)]
    others = ["The bell rings rings rings rings rings rings rings."] * small
    with closing(LexicalIndex(tmp_path)) as index:
        rows = [*((text, "large") for text in texts), *((text, "small") for text in others)]
        index.follow(
            [
                index_version(StoredVersion(n, *_only(row(f"{n}", text, corpus=corpus))))
                for n, (text, corpus) in enumerate(rows, 1)
            ],
            [],
            len(rows),
        )
        found, _ = index.search("bell rings", ["large"], 9)
        groups = index._expand("bell rings")
        expected = index._find_scoped(index._index.searcher(), groups, ["large"], 9)

    assert sorted(found.values()) == pytest.approx(sorted(expected.values()))
    assert {number for number, _ in found} <= set(range(1, large + 1))
