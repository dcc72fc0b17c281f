"""Embedders turn texts into unit vectors: MiniLM on this machine, or any of Chroma's embedding functions by name.

Heavy libraries are imported, and the models of `load_token_states` and `load_cross_encoder` loaded, at first use. An
error of an embedding service may contain the request or a key, and Chroma passes it on. So it is replaced by one line
without secrets.
"""

import hashlib
import inspect
import json
import math
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from storage.database.worker_threads import ThreadPool
from storage.errors import EmbeddingUnavailable
from storage.indexes.embedders import E5, ENGLISH, MINILM, MODELS, find_model
from storage.types import Document, Passage

Vectors: TypeAlias = NDArray[np.float32]
"""One row per text, of length 1; zeros for a text that cannot be embedded."""


class Embedder(Protocol):
    """Turns texts into vectors whose dot product is their similarity. Safe to call from several threads."""

    @property
    def name(self) -> str:
        """The name of the model and its version, with which indexes are stamped; see `embedders.are_comparable`."""

    @property
    def dimensions(self) -> int:
        """The length of each vector."""

    def knows(self, text: str) -> float:
        """Return how well the model knows the script of `text`: 0 not at all, 1 fully."""

    def embed(self, texts: Sequence[str], *, polite: bool = False) -> Vectors:
        """Embed texts in order, including empty ones. A text longer than the model can read is cut. Blocks.

        `polite` leaves one core to others, for bulk work in a process that also answers. Raises `EmbeddingUnavailable`
        if the service fails.
        """


REMEMBERED_VECTORS = 8_192  # of 384 numbers each: 12 MiB


class VectorMemory:
    """A cache of vectors for texts that recur, such as sentences of a popular page. Safe for several threads."""

    def __init__(self, embedder: Embedder, most: int = REMEMBERED_VECTORS) -> None:
        self._embedder, self._most = embedder, most
        self._vectors = OrderedDict[str, Vectors]()
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], *, polite: bool = False) -> Vectors:
        """Embed texts, calling the embedder only for new ones. Raises `EmbeddingUnavailable`."""
        with self._lock:
            known = {text: self._vectors[text] for text in texts if text in self._vectors}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known |= zip(new, (row.copy() for row in self._embedder.embed(new, polite=polite)), strict=True)
        self._keep({text: known[text] for text in texts})
        return (
            np.stack([known[text] for text in texts]) if texts else np.zeros((0, self._embedder.dimensions), np.float32)
        )

    def remember(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Cache vectors that were made elsewhere."""
        self._keep(dict(zip(texts, vectors, strict=True)))

    def _keep(self, known: Mapping[str, Vectors]) -> None:
        with self._lock:
            for text, vector in known.items():
                self._vectors[text] = vector
                self._vectors.move_to_end(text)
            while len(self._vectors) > self._most:
                self._vectors.popitem(last=False)


class RememberingEmbedder:
    """An embedder that first looks in its cache, to which `remember` adds vectors made elsewhere."""

    def __init__(self, embedder: Embedder, most: int = 2 * REMEMBERED_VECTORS) -> None:
        """Wrap an embedder, with a cache of at most `most` vectors."""
        self._embedder, self._memory = embedder, VectorMemory(embedder, most)
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self.remember = self._memory.remember

    def knows(self, text: str) -> float:
        return self._embedder.knows(text)

    def embed(self, texts: Sequence[str], *, polite: bool = False) -> Vectors:
        return self._memory.embed(texts, polite=polite)


SECRET_WORDS = frozenset({"authorization", "credentials", "headers", "key", "password", "secret", "token"})
SHORTEST_SECRET = 6  # shorter values are not keys, and hiding them would hide parts of words
HIDDEN = "[hidden]"


def is_secret(name: str) -> bool:
    """Return whether an option or environment variable of this name contains a secret."""
    return not SECRET_WORDS.isdisjoint(re.split(r"[^a-z]+", name.lower()))


def collect_secrets(options: Mapping[str, Any], environment: Mapping[str, str]) -> frozenset[str]:
    """Return the secret values in `options` and in `environment`, which Chroma's functions read."""
    secret_options = {
        name: value for name, value in options.items() if is_secret(name) and not name.endswith("_env_var")
    }
    around = {name: value for name, value in environment.items() if is_secret(name)}
    return frozenset(value for value in _iterate_strings([secret_options, around]) if len(value) >= SHORTEST_SECRET)


def hide_secrets(text: str, secrets: Iterable[str]) -> str:
    """Replace secrets by `[hidden]`: those given, user and password in addresses, and keys that begin with `sk-`.

    These keys are found even if a service has masked part of them.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = re.sub(r"(?<=://)[^/@\s]+@", f"{HIDDEN}@", text)
    return re.sub(r"\bsk-[\w*-]{6,}", HIDDEN, text)


def _iterate_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _iterate_strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _iterate_strings(inner)


MOST_CHARACTERS_SENT = 8_000  # services refuse longer texts instead of cutting them
SERVICE_BATCH = 64  # every service accepts at least 96 per call
POLITE_BATCH = 16
LONGEST_CAUSE = 200
SMALLEST_LENGTH = 1e-12  # avoids dividing a vector of zeros by zero
PROBE = "How long is a vector?"
# These compute in this process, with tokenizers that are not thread-safe.
LOCAL_FUNCTIONS = frozenset(
    {"default", "instructor", "onnx_mini_lm_l6_v2", "open_clip", "sentence_transformer", "text2vec"}
)

EmbeddingFunction = Callable[[list[str]], Sequence[Any]]


def open_chroma_embedder(
    function: str, options: Mapping[str, Any], *, known: Mapping[str, Callable[..., EmbeddingFunction]] | None = None
) -> "ChromaEmbedder":
    """Open one of Chroma's embedding functions, and embed a text to try it. Raises `EmbeddingUnavailable`."""
    known = _load_chroma_functions() if known is None else known
    if function not in known:
        near = ", ".join(get_close_matches(function, [*MODELS, *known], cutoff=0.4)) or "minilm"
        raise EmbeddingUnavailable(f'There is no embedding function "{function}".', hint=f"the nearest names: {near}")
    try:
        opened = known[function](**options)
    except Exception as error:  # noqa: BLE001  # clients share no error class
        takes = ", ".join(name for name in inspect.signature(known[function]).parameters if name != "self")
        raise _embedding_error(function, error, options, hint=f"it takes these options: {takes}") from None
    return ChromaEmbedder(function, options, opened)


class ChromaEmbedder:
    """One of Chroma's embedding functions; opened by `open_chroma_embedder`."""

    def __init__(self, function: str, options: Mapping[str, Any], made: EmbeddingFunction) -> None:
        self._function = function
        self._options = options
        self._made = made
        self._alone: AbstractContextManager[object] = threading.Lock() if function in LOCAL_FUNCTIONS else nullcontext()
        self.name = f"{function}/{_digest_options(options)}"
        self.dimensions = self._call([PROBE]).shape[1]

    def knows(self, text: str) -> float:
        """Return 1 for every text, as the training of these models is unknown."""
        del text
        return 1.0

    def embed(self, texts: Sequence[str], *, polite: bool = False) -> Vectors:
        """Embed texts as `Embedder.embed` does. Blank texts are not sent to the function, and get zeros."""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        filled = [place for place, text in enumerate(texts) if text.strip()]
        size = POLITE_BATCH if polite else SERVICE_BATCH
        for start in range(0, len(filled), size):
            places = filled[start : start + size]
            returned = self._call([texts[place][:MOST_CHARACTERS_SENT] for place in places])
            if returned.shape != (len(places), self.dimensions):
                wrong = ValueError(f"it gave vectors of shape {returned.shape} for {len(places)} texts")
                raise _embedding_error(self._function, wrong, self._options)
            vectors[places] = returned
        return vectors

    def _call(self, texts: list[str]) -> Vectors:
        try:
            with self._alone:
                vectors: Vectors = np.array(self._made(texts), np.float32)
            lengths: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True)
        except Exception as error:  # noqa: BLE001  # clients share no error class
            raise _embedding_error(self._function, error, self._options) from None
        if not math.isfinite(lengths.sum()):
            raise _embedding_error(self._function, ValueError("it gave numbers that are not finite"), self._options)
        return (vectors / np.maximum(lengths, SMALLEST_LENGTH)).astype(np.float32)


def _load_chroma_functions() -> Mapping[str, Callable[..., EmbeddingFunction]]:
    from chromadb.utils.embedding_functions import known_embedding_functions  # takes 0.4 s

    known: Mapping[str, Callable[..., EmbeddingFunction]] = known_embedding_functions
    return known


def _digest_options(options: Mapping[str, Any]) -> str:
    """Hash the options without their secrets, so that a new key for the same model does not change the hash."""
    open_ones = {name: value for name, value in options.items() if not is_secret(name)}
    return hashlib.sha256(json.dumps(open_ones, sort_keys=True, default=str).encode()).hexdigest()[:12]


def _embedding_error(
    function: str, error: Exception, options: Mapping[str, Any], *, hint: str = "check [embedding] in the settings"
) -> EmbeddingUnavailable:
    cause = " ".join(hide_secrets(str(error), collect_secrets(options, os.environ)).split()) or type(error).__name__
    return EmbeddingUnavailable(f'The embedding function "{function}" fails: {cause[:LONGEST_CAUSE]}', hint=hint)


def open_embedder(function: str, options: Mapping[str, Any], *, threads: int = 0) -> Embedder:
    """Open the embedder that the settings name: one of `embedders.MODELS`, or one of Chroma's functions.

    An empty name means the embedder for English. Models of packages have no options, compute in this many `threads`,
    where 0 means one for each core, and stay loaded, as do the other models below.

    Raises `EmbeddingUnavailable` if the name is unknown, the embedder cannot be opened, or its service does not answer.
    """
    function = function or ENGLISH
    if function not in MODELS:
        return open_chroma_embedder(function, options)
    if options:
        raise EmbeddingUnavailable(f'The embedding function "{function}" takes no options.', hint="remove them")
    return _open_model(function, threads)


def open_model(key: str) -> Embedder:
    """Open one of `embedders.MODELS`."""
    return _open_model(key, 0)


@cache
def _open_model(key: str, threads: int) -> Embedder:
    if key == E5:
        from storage.indexes.e5 import open_e5  # this and the next import onnxruntime

        return open_e5(threads=threads)
    from storage.indexes.packaged_embedder import open_bge, open_minilm

    return (open_minilm if key == MINILM else open_bge)(threads=threads)


CROSS_ENCODER_SHA256 = "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1"
"""The digest of the cross-encoder's weights."""


INDEX_SCHEMA = 2  # incremented with every change of the index contents; indexes with another number are rebuilt


def aliases_text(document: Document, passage: Passage) -> str:
    """Return a document's other titles for its first passage, or an empty text for its other passages.

    Only the lexical index contains these titles.
    """
    return "\n".join(document.aliases) if passage.position == 0 else ""


def indexed_text(document: Document, passage: Passage) -> str:
    """Return title, section and text of a passage on separate lines, so that it is also found by its headings."""
    return "\n".join(part for part in (document.title, passage.section, passage.text) if part)


def embedded_text(embedder: str, document: Document, passage: Passage) -> str:
    """Return the text of a passage as the embedder of this name expects it."""
    return find_model(embedder).passage + indexed_text(document, passage)


@dataclass(frozen=True, slots=True, eq=False)
class TokenStates:
    """A text's tokens, except the special ones at its ends: their ids, and their states after each of `LAYERS`.

    Each of `layers` is float32 (tokens, dimensions), with rows of length 1. `mean` is the text's vector, of length
    1.
    """

    ids: NDArray[np.int32]
    layers: tuple[Vectors, ...]
    mean: Vectors


Found = TypeVar("Found")


class LazyFunction(Generic[Found]):
    """A model that `load` loads at the first call, and that runs in the threads of `worker`: `await read(...)`."""

    def __init__(self, load: Callable[[], Callable[..., Found]], worker: ThreadPool) -> None:
        self._load = load
        self._worker = worker
        self._loading = threading.Lock()
        self._ask: Callable[..., Found] | None = None

    async def __call__(self, *asked: Any) -> Found:
        """Return the model's result. Raises `EmbeddingUnavailable` if it cannot be loaded."""
        return await self._worker.run(self._call, *asked)

    def _call(self, *asked: Any) -> Found:
        with self._loading:
            self._ask = self._ask or self._load()
        return self._ask(*asked)


def load_token_states() -> Callable[[Sequence[str]], tuple[TokenStates, ...]]:
    minilm: Any = _open_model(MINILM, 0)
    read: Callable[[Sequence[str]], tuple[TokenStates, ...]] = minilm.read
    return read


@cache
def load_cross_encoder() -> Callable[[str, Sequence[str]], list[float]]:
    from storage.indexes.cross_encoder import open_cross_encoder  # imports onnxruntime

    return open_cross_encoder().score
