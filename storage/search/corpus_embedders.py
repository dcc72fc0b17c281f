"""The embedder of each corpus, by the stamp of its vectors; a question is embedded once by each embedder in use."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice

from storage.errors import REINDEX_HINT, EmbeddingUnavailable, IndexStale
from storage.indexes.dense import DenseIndex
from storage.indexes.embedders import E5, MINILM, MODELS, are_comparable, find_key, find_model
from storage.indexes.embedding import Embedder, VectorMemory, Vectors, embedded_text
from storage.language.detection import detect_language
from storage.manifest import Manifest
from storage.types import Document, Passage

SAMPLED_DOCUMENTS, FIRST_PASSAGES = 50, 4  # whose language decides which embedder a corpus gets


def choose_default(_corpus: str, _language: str) -> str:
    """Choose no model of the table for a corpus."""
    return ""


def choose_by_language(_corpus: str, language: str) -> str:
    """Choose E5 for a corpus that is not in English, if it is installed."""
    return E5 if language not in {"", "en"} and MODELS[E5].weights.is_installed() else ""


def find_language(passages: Iterable[Passage]) -> str:
    """Return the most frequent language of some passages; empty if all are unknown."""
    languages = Counter(
        detect_language(passage.text) for passage in islice(passages, SAMPLED_DOCUMENTS * FIRST_PASSAGES)
    )
    del languages[""]
    return max(languages, key=languages.__getitem__, default="")


async def sample_passages(manifest: Manifest, corpus: str) -> list[Passage]:
    """Return passages of a corpus from which its language is found."""
    versions = await manifest.sample(corpus, SAMPLED_DOCUMENTS)
    return [passage for version in versions for passage in version.passages[:FIRST_PASSAGES]]


@dataclass(frozen=True)
class CorpusEmbedders:
    """The embedders in use. Every method blocks, and raises `EmbeddingUnavailable` if an embedder cannot be opened."""

    dense: DenseIndex
    default: Embedder  # of corpora for which no other is chosen
    choose_key: Callable[[str, str], str]
    """Returns, for a corpus and the language of its passages, a key of `embedders.MODELS`; empty: the default."""
    open_model: Callable[[str], Embedder]  # by that key
    _memories: dict[str, VectorMemory] = field(default_factory=dict)

    def find(self, corpus: str) -> Embedder:
        """Return the embedder of a corpus's vectors."""
        try:
            return self._open(self.dense.embedder(corpus))
        except EmbeddingUnavailable as error:
            raise EmbeddingUnavailable(f"“{corpus}” lacks its embedder. {error}", hint=error.hint) from error

    def choose(self, corpus: str, passages: Iterable[Passage]) -> Embedder:
        """Return the embedder that a corpus should have, by its settings and the language of some passages."""
        key = self.choose_key(corpus, find_language(passages))
        return self._open(MODELS[key].name) if key else self.default

    def embed_question(self, embedder: Embedder, text: str) -> Vectors:
        row: Vectors = self._remember(embedder).embed([find_model(embedder.name).question + text])[0]
        return row

    def compare(self, text: str, others: Sequence[str]) -> tuple[float, ...]:
        """Return the cosines of a text with others; by MiniLM, unless the default is no model of the table."""
        name = MODELS[MINILM].name if find_key(self.default.name) else self.default.name
        vectors = self._remember(self._open(name)).embed([text, *others])
        return tuple(float(cosine) for cosine in vectors[1:] @ vectors[0])

    def embed(
        self, rows: Sequence[tuple[Document, Passage]], *, polite: bool, by: Embedder | None = None
    ) -> list[Vectors]:
        """Embed passages in order, by default as their corpora are."""
        vectors: list[Vectors] = []
        for corpus, group in groupby(rows, key=lambda row: row[1].corpus):
            embedder = by or self.find(corpus)
            vectors.extend(embedder.embed([embedded_text(embedder.name, *row) for row in group], polite=polite))
        return vectors

    def _remember(self, embedder: Embedder) -> VectorMemory:
        return self._memories.setdefault(embedder.name, VectorMemory(embedder))

    def _open(self, name: str) -> Embedder:
        if are_comparable(name, self.default.name):
            return self.default
        if not (key := find_key(name)):
            raise IndexStale(f"The embedding function of some vectors is unknown: {name}.", hint=REINDEX_HINT)
        return self.open_model(key)
