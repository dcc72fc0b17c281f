"""Tests that each corpus is embedded and searched by its own embedder, and that their vectors are never compared."""

from dataclasses import dataclass, field, replace

import pytest

from ingest.refresh.corpus_refresh import refresh_corpus
from storage.errors import EmbeddingUnavailable
from storage.indexes.embedders import BGE, E5, MODELS
from storage.indexes.index_state import find_foreign
from storage.passages import PassageStore
from storage.types import DenseMode
from tests.fakes import PageSource, WordEmbedder
from tests.storage.stores import opened

QUESTION = MODELS[BGE].question


@dataclass
class NamedEmbedder(WordEmbedder):
    """Has the name of a model of the table, and records its texts."""

    name: str = MODELS[BGE].name
    texts: list[str] = field(default_factory=list)

    def embed(self, texts, *, polite=False):
        self.texts.extend(texts)
        return super().embed(texts, polite=polite)


async def fill(store: PassageStore, corpus: str, text: str, dense: DenseMode = DenseMode.EAGER) -> None:
    await refresh_corpus(PageSource({"a.md": {"": text}}), corpus, store, progress=lambda _: None, dense=dense)


def with_bge(store: PassageStore, *corpora: str) -> tuple[PassageStore, NamedEmbedder]:
    """Return the store in which these corpora get the second embedder."""
    other = NamedEmbedder()
    chosen = replace(
        store, choose=lambda corpus, _: BGE if corpus in corpora else "", open_model={BGE: other}.__getitem__
    )
    return chosen, other


@pytest.mark.parametrize("dense", [DenseMode.EAGER, DenseMode.LAZY])
async def test_question_is_embedded_once_by_each_embedder_in_use(tmp_path, dense):
    with opened(tmp_path) as plain:
        store, other = with_bge(plain, "b", "c")
        for corpus in "abc":
            await fill(store, corpus, f"The vault {corpus} opens at noon.", dense)
        plain.embedder.calls.clear()
        other.texts.clear()

        hits = await store.search("vault opens", ["a", "b", "c"], 9)
        await store.flush()

        asked = [text for text in other.texts if text.startswith(QUESTION)]
        assert (asked, {hit.passage.corpus for hit in hits}) == ([f"{QUESTION}vault opens"], {"a", "b", "c"})
        assert plain.embedder.calls.count(1) == (1 if dense is DenseMode.EAGER else 2)
        assert all(hit.dense for hit in hits)


async def test_vectors_of_two_embedders_are_never_compared(tmp_path):
    with opened(tmp_path) as plain:
        store, other = with_bge(plain, "b")
        await fill(store, "b", "The vault opens at noon.")
        vector = plain.embedder.embed(["vault"])[0]

        assert store.dense.search("b", vector, 1, plain.embedder.name) == {}
        assert store.dense.search("b", vector, 1, other.name)


async def test_corpus_with_vectors_keeps_its_embedder_until_it_is_reindexed(tmp_path):
    with opened(tmp_path) as plain:
        await fill(plain, "a", "The vault opens at noon.")
        store, other = with_bge(plain, "a")

        await fill(store, "a", "The vault opens at night.")
        assert (store.dense.embedder("a"), other.texts) == (plain.embedder.name, [])

        await store.reindex(lambda *_: None)
        assert (store.dense.embedder("a"), len(other.texts)) == (other.name, 1)
        await store.check()


async def test_embedder_is_chosen_by_the_language_of_the_documents(tmp_path):
    with opened(tmp_path) as plain:
        asked = []
        store = replace(plain, choose=lambda *about: asked.append(about) or "")
        await fill(store, "a", "Der Tresor wird um zwölf Uhr geöffnet, und er bleibt bis zum Abend offen.")
        await fill(store, "a", "The vault opens at noon, and it stays open until the evening.")

        assert asked == [("a", "de")]


async def test_cosines_of_e5_are_on_the_scale_of_minilm(tmp_path):
    e5 = NamedEmbedder(MODELS[E5].name)
    with opened(tmp_path) as plain:
        store = replace(plain, choose=lambda *_: E5, open_model=lambda _: e5)
        await fill(store, "a", "The vault opens at noon.")

        (hit,) = await store.search("vault", ["a"], 1)
        question, passage = e5.embed([f"query: {'vault'}", e5.texts[0]])
        assert e5.texts[0].startswith("passage: ")
        assert hit.dense == pytest.approx(4.4 * (question @ passage - 0.738), abs=1e-4)


async def test_foreign_corpora_are_found(tmp_path):
    with opened(tmp_path) as store:
        await fill(store, "a", "Der Tresor wird um zwölf Uhr geöffnet, und er bleibt bis zum Abend offen.")
        await fill(store, "b", "The vault opens at noon, and it stays open until the evening.")

        assert await find_foreign(store.manifest) == ("a",)


async def test_embedder_that_is_not_installed_stops_only_questions_to_its_corpora(tmp_path):
    with opened(tmp_path) as plain:
        store, _ = with_bge(plain, "b")
        for corpus in "ab":
            await fill(store, corpus, "The vault opens at noon.")

        def refuse(key: str) -> WordEmbedder:
            raise EmbeddingUnavailable(f"{key} is not installed.")

        lacking = replace(store, open_model=refuse)
        await lacking.check()
        assert await lacking.search("vault", ["a"], 1)
        with pytest.raises(EmbeddingUnavailable, match=r"“b” lacks its embedder\. bge is not installed"):
            await lacking.search("vault", ["a", "b"], 1)
