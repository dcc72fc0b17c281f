"""Models from packages on this machine's processor: the vectors of whole texts, and MiniLM's states of single tokens.

Chroma's own function for MiniLM tokenizes one text at a time and pads each to 256 tokens. Here, each text runs by
itself on one core without onnxruntime's thread pool: several texts run at once, a query takes one core, and no thread
waits actively. Weights and the inputs of products have eight bits; as inputs are scaled by their largest number, a
vector may depend on its text alone. Token states of several short texts are read in one row, so they differ slightly.

The graphs have no weights: `tools.training.bert_graphs` makes them, and the package's file is mapped.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.indexes.embedders import BGE, MINILM, MODELS, EmbeddingModel, locate_graph
from storage.indexes.embedding import TokenStates, Vectors
from storage.indexes.packaged_files import make_encodable, open_model
from storage.language.detection import detect_language
from storage.language.scripts import latin_share

LAYERS = (0, 6)  # the word table and the top: a word alone, and its meaning in context
CHARACTERS = 40  # for each token: later text is never read, so it is not tokenized either
MOST_SENTENCE_TOKENS = 56  # of a text whose token states are read, including the two special tokens: a long sentence
FEW_TOKENS = 512  # for so many, separate threads would cost an eighth more, as each starts with cold caches
FOREIGN_WEIGHT = 0.2  # on XQuAD, German gains by it and Spanish loses nothing; 1 costs both .02 to .03 of R@1
UNSEEN = -1e9  # added to the score of tokens of other texts, so that attention ignores them

Floats = NDArray[np.float32]


def open_minilm(root: Path | None = None, threads: int = 0) -> "MiniLM":
    """Check and load the model from its package, or from a folder `root` instead, in 0.1 s.

    It computes in this many threads, 0 for one per core; few texts are computed in the caller's thread. Raises
    `EmbeddingUnavailable`.
    """
    model = MODELS[MINILM]
    return MiniLM(model, *open_model(locate_graph(model), model.weights, root), threads)


def open_bge(root: Path | None = None, threads: int = 0) -> "PackagedEmbedder":
    """Open bge as `open_minilm` opens MiniLM."""
    model = MODELS[BGE]
    return PackagedEmbedder(model, *open_model(locate_graph(model), model.weights, root), threads)


class PackagedEmbedder:
    """A loaded model; opened by `open_minilm` and `open_bge`. Safe to call from several threads."""

    def __init__(self, model: EmbeddingModel, session: Any, tokenizer: Any, threads: int = 0) -> None:
        self._model = model
        self._session = session
        self._tokenizer = tokenizer
        self._threads = threads
        self.name, self.dimensions = model.name, model.dimensions
        *_, self._top = (output.name for output in session.get_outputs())

    def knows(self, text: str) -> float:
        """Return 1 for English and short texts, little for other languages in Latin letters, otherwise 0."""
        return latin_share(text) * (1.0 if detect_language(text) in {"", "en"} else FOREIGN_WEIGHT)

    def embed(self, texts: Sequence[str], *, polite: bool = False) -> Vectors:
        rows = self._tokens(texts, self._model.length)
        threads = self._threads or max(1, _count_cores() - polite)
        if threads == 1 or sum(map(len, rows)) <= FEW_TOKENS:
            return np.array([self._embed(row) for row in rows], np.float32).reshape(len(rows), self.dimensions)
        vectors = np.empty((len(rows), self.dimensions), np.float32)
        longest_first = sorted(range(len(rows)), key=lambda place: len(rows[place]), reverse=True)
        with ThreadPoolExecutor(threads, "embed") as pool:
            vectors[longest_first] = list(pool.map(self._embed, [rows[place] for place in longest_first]))
        return vectors

    def _tokens(self, texts: Sequence[str], most: int) -> list[list[int]]:
        """Return the tokens of each text, at most so many with the two special ones at its ends."""
        short = [make_encodable(text[: self._model.length * CHARACTERS]) for text in texts]
        rows = [encoding.ids for encoding in self._tokenizer.encode_batch_fast(short)]
        return [row[: most - 1] + row[most - 1 :][-1:] for row in rows]

    def _embed(self, row: list[int]) -> Floats:
        states = self._read_top(row)
        return _normalize(states[0] if self._model.pooling == "first" else states.mean(axis=0))

    def _read_top(self, row: list[int]) -> Floats:
        """Return the states of a text's tokens after the last layer."""
        return self._run([row], [self._top])[-1]

    def _run(self, rows: Sequence[list[int]], outputs: Sequence[str] | None = None) -> list[Floats]:
        """Return the states of all tokens, by default of all layers."""
        lengths = [len(row) for row in rows]
        of_text = np.repeat(np.arange(len(rows)), lengths)
        inputs = {
            "ids": np.array([token for row in rows for token in row], np.int32),
            "positions": np.concatenate([np.arange(length, dtype=np.int32) for length in lengths]),
            "unseen": np.where(of_text[:, np.newaxis] == of_text, 0, UNSEEN).astype(np.float32),
        }
        states: list[Floats] = self._session.run(outputs, inputs)
        return states


class MiniLM(PackagedEmbedder):
    """MiniLM, which can also return the states of single tokens."""

    def read(self, texts: Sequence[str]) -> tuple[TokenStates, ...]:
        """Return the token states of each text, in order, after each of `LAYERS`. Blocks, on one core."""
        rows = self._tokens(texts, MOST_SENTENCE_TOKENS)
        layers = self._run(rows)
        ends = np.cumsum([len(row) for row in rows])
        return tuple(
            _build_states(row, [layer[end - len(row) : end] for layer in layers])
            for end, row in zip(ends, rows, strict=True)
        )


def _count_cores() -> int:
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _build_states(row: Sequence[int], layers: Sequence[Floats]) -> TokenStates:
    inner = tuple(_normalize(states[1:-1]) for states in layers)
    return TokenStates(np.array(row[1:-1], np.int32), inner, _normalize(layers[-1].mean(axis=0)))


def _normalize(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    unit: Floats = (rows / np.maximum(lengths, 1e-12)).astype(np.float32)
    return unit
