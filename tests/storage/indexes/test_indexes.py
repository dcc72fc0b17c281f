"""The two indexes: one contract for both, then what each has of its own."""

from contextlib import closing

import numpy as np
import pytest

from storage.errors import IndexStale, Panic
from storage.indexes.dense import DenseIndex
from storage.indexes.embedding import indexed_text
from storage.indexes.lexical import LexicalIndex, expand_term_forms
from storage.types import Document, Passage
from tests.fakes import WordEmbedder
from tests.storage.stores import damage_postings


def row(key: str, text: str, *, corpus: str = "handbook", title: str = "", language: str = "en"):
    """Return a document with one passage, named alike."""
    return Document(corpus, key, title, language=language), Passage(key, corpus, key, "", text, 0, f"hash-{key}")


class Dense:
    """The dense index with the lexical one's face, so that both keep one contract."""

    def __init__(self, folder):
        self.embedder = WordEmbedder()
        self.index = DenseIndex(folder, embedder=self.embedder.name)

    def write(self, rows):
        for document, passage in rows:
            vector = self.embedder.embed([indexed_text(document, passage)])
            self.index.upsert(passage.corpus, [passage.id], [passage.hash], vector)

    def delete(self, ids):
        for corpus in self.index.corpora():
            self.index.delete(corpus, list(ids))

    def search(self, text, corpora, k):
        vector = self.embedder.embed([text])[0]
        return {key: score for corpus in corpora for key, score in self.index.search(corpus, vector, k).items()}

    def contents(self):
        return {key: value for corpus in self.index.corpora() for key, value in self.index.contents(corpus).items()}

    def count(self):
        return sum(self.index.count(corpus) for corpus in self.index.corpora())

    def close(self):
        self.index.close()


@pytest.fixture(params=[Dense, LexicalIndex], ids=["dense", "lexical"])
def opened(request, tmp_path):
    """Open the index in the same folder as often as the test likes."""
    indexes = []

    def open_again():
        while indexes:
            indexes.pop().close()
        indexes.append(request.param(tmp_path / "index"))
        return indexes[0]

    yield open_again
    while indexes:
        indexes.pop().close()


def test_the_passage_that_shares_most_words_is_found_first(opened):
    """Both indexes rank by likeness."""
    index = opened()
    index.write([row("leave", "Everyone has 30 days of leave."), row("lunch", "Lunch is served at noon.")])

    found = index.search("days of leave", ["handbook"], 2)

    assert max(found, key=found.get) == "leave"


def test_writing_twice_changes_nothing_and_an_edit_replaces(opened):
    """A passage stands under its id once."""
    index = opened()
    index.write([row("leave", "Everyone has 30 days of leave.")])
    index.write([row("leave", "Everyone has 30 days of leave.")])
    index.write([row("leave", "Nobody counts the holidays.")])

    assert index.contents() == {"leave": "hash-leave"}
    assert set(index.search("holidays", ["handbook"], 5)) == {"leave"}


def test_what_was_deleted_is_not_found(opened):
    """Deleting an unknown id is no error."""
    index = opened()
    index.write([row("leave", "Everyone has 30 days of leave."), row("lunch", "Lunch is served at noon.")])
    index.delete(["leave", "never-there"])

    assert "leave" not in index.search("days of leave", ["handbook"], 5)
    assert index.count() == 1


def test_only_the_corpora_asked_for_are_searched(opened):
    """Scope is part of the query."""
    index = opened()
    index.write([row("ours", "The vault opens at nine."), row("theirs", "The vault opens at ten.", corpus="secret")])

    assert set(index.search("vault opens", ["handbook"], 5)) == {"ours"}
    assert set(index.search("vault opens", ["handbook", "secret"], 5)) == {"ours", "theirs"}
    assert index.search("vault opens", [], 5) == {}


def test_an_index_that_is_opened_again_holds_what_it_held(opened):
    """Nothing waits in memory."""
    opened().write([row("leave", "Everyone has 30 days of leave.")])

    assert opened().contents() == {"leave": "hash-leave"}


def test_a_corpus_of_thousands_is_listed_whole(opened):
    """Listing pages through."""
    index = opened()
    if isinstance(index, Dense):
        vectors = np.eye(64, dtype=np.float32)[np.arange(5_001) % 64]
        ids = [str(n) for n in range(5_001)]
        index.index.upsert("handbook", ids, ids, vectors)
    else:
        index.write([row(str(n), f"Number {n}") for n in range(5_001)])

    assert len(index.contents()) == 5_001


def test_a_lexical_index_of_another_version_says_so(tmp_path):
    """It is never searched by mistake."""
    LexicalIndex(tmp_path).close()
    (tmp_path / "stamp.json").write_text('{"schema": -1, "languages": []}')

    with pytest.raises(IndexStale, match="another version"):
        LexicalIndex(tmp_path)


def test_a_damaged_lexical_index_says_so(tmp_path):
    """The hint names the command that makes it again."""
    LexicalIndex(tmp_path).close()
    (tmp_path / "meta.json").write_text("{")

    with pytest.raises(IndexStale) as raised:
        LexicalIndex(tmp_path)

    assert "footnote reindex" in raised.value.hint


def test_a_lexical_index_over_which_tantivy_panics_says_so(tmp_path):
    """It can be opened and counted all the same."""
    damage_postings(tmp_path, "handbook", "the bell rings")
    with closing(LexicalIndex(tmp_path)) as index:
        assert index.count() == 300
        with pytest.raises(IndexStale, match="cannot be used") as caught:
            index.search("bell", ["handbook"], 50)

    assert "reindex" in caught.value.hint
    assert isinstance(caught.value.__cause__, Panic)


def test_a_lexical_index_notices_a_file_that_is_not_as_it_was_written(tmp_path):
    """Whichever it is, and wherever it was changed; what is too much to read is not read."""
    index, unharmed = LexicalIndex(tmp_path), []
    index.write([row(f"{number}", f"The bell {number} rings.") for number in range(50)])
    index.delete(["7"])
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


def test_a_word_is_sought_in_the_form_of_every_language_indexed(tmp_path):
    """A question too short to tell its language still meets German stems."""
    index = LexicalIndex(tmp_path)
    index.write([row("urlaub", "Die Versicherungen zahlen jedes Jahr.", language="de")])

    assert set(index.search("Versicherung", ["handbook"], 5)) == {"urlaub"}
    index.close()


def test_where_languages_cut_a_word_differently_the_first_decides():
    """One group a term."""
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
def test_a_dense_index_knows_whether_it_serves(tmp_path, expected, embedder, reason):
    """Missing vectors and other embedders are noticed before anything is searched."""
    first = Dense(tmp_path)
    first.write([row("leave", "Everyone has 30 days of leave.")])
    first.close()

    index = DenseIndex(tmp_path, embedder=embedder)

    assert reason in index.stale("handbook", expected)
    assert bool(index.stale("handbook", expected)) == bool(reason)
    assert "missing" in index.stale("other", 1)
    assert not index.stale("other", 0)
    index.close()
