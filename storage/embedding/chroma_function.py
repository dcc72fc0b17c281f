"""Any of Chroma's embedding functions as an `Embedder`; unlike `minilm` it may reach a service over the network.

Chroma raises whatever the service's client raises, sometimes with the request in it. What leaves here is one line in
which no key stands.
"""

import hashlib
import inspect
import json
import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches
from typing import Any

import numpy as np

from storage.embedding.secrets import hidden, is_secret, secrets_of
from storage.embedding.types import Vectors
from storage.errors import EmbeddingUnavailable

MOST_CHARACTERS = 8_000  # services refuse what is too long for them instead of cutting it
BATCH = 64  # the least that any of the services takes in one call is 96
POLITE_BATCH = 16
LONGEST_CAUSE = 200
SMALLEST = 1e-12  # keeps a vector of zeros what it is
PROBE = "How long is a vector?"
# These compute in this process, with tokenizers that must not be used by two threads at once.
LOCAL = frozenset({"default", "instructor", "onnx_mini_lm_l6_v2", "open_clip", "sentence_transformer", "text2vec"})

Function = Callable[[list[str]], Sequence[Any]]


def chroma_embedder(
    function: str, options: Mapping[str, Any], *, known: Mapping[str, Callable[..., Function]] | None = None
) -> "ChromaEmbedder":
    """Makes the function called `function` with `options` and asks it once, to learn how long its vectors are.

    Args:
        function: A key of Chroma's `known_embedding_functions`.
        options: The arguments it is made with.
        known: What makes each function, by name; by default all that Chroma has.

    Raises:
        EmbeddingUnavailable: Nothing has that name, it cannot be made with these options, or it fails.
    """
    known = _chroma_functions() if known is None else known
    if function not in known:
        near = ", ".join(get_close_matches(function, ["minilm", *known], cutoff=0.4)) or "minilm"
        raise EmbeddingUnavailable(f'There is no embedding function "{function}".', hint=f"the nearest names: {near}")
    try:
        made = known[function](**options)
    except Exception as error:  # noqa: BLE001  # clients share no error class
        takes = ", ".join(name for name in inspect.signature(known[function]).parameters if name != "self")
        raise _unavailable(function, error, options, hint=f"it takes these options: {takes}") from None
    return ChromaEmbedder(function, options, made)


class ChromaEmbedder:
    """One of Chroma's functions, already made; opened by `chroma_embedder`."""

    def __init__(self, function: str, options: Mapping[str, Any], made: Function) -> None:
        self._function = function
        self._options = options
        self._made = made
        self._alone: AbstractContextManager[object] = threading.Lock() if function in LOCAL else nullcontext()
        self.name = f"{function}/{_digest(options)}"
        self.dimensions = self._call([PROBE]).shape[1]

    def knows(self, text: str) -> float:
        """Wholly: what other models were trained on is not for us to judge."""
        del text
        return 1.0

    def embed(self, texts: Sequence[str], *, polite: bool = False) -> Vectors:
        """Vectors of `texts`, as `Embedder` says; blank texts are not sent, their vectors are zeros."""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        told = [place for place, text in enumerate(texts) if text.strip()]
        size = POLITE_BATCH if polite else BATCH
        for start in range(0, len(told), size):
            places = told[start : start + size]
            vectors[places] = self._checked([texts[place][:MOST_CHARACTERS] for place in places])
        return vectors

    def _checked(self, texts: list[str]) -> Vectors:
        vectors = self._call(texts)
        if vectors.shape != (len(texts), self.dimensions):
            wrong = ValueError(f"it gave vectors of shape {vectors.shape} for {len(texts)} texts")
            raise _unavailable(self._function, wrong, self._options)
        return vectors

    def _call(self, texts: list[str]) -> Vectors:
        try:
            with self._alone:
                vectors: Vectors = np.array(self._made(texts), np.float32)
            lengths: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True)
        except Exception as error:  # noqa: BLE001  # clients share no error class
            raise _unavailable(self._function, error, self._options) from None
        if not math.isfinite(lengths.sum()):
            raise _unavailable(self._function, ValueError("it gave numbers that are not finite"), self._options)
        return (vectors / np.maximum(lengths, SMALLEST)).astype(np.float32)


def _chroma_functions() -> Mapping[str, Callable[..., Function]]:
    from chromadb.utils.embedding_functions import known_embedding_functions  # takes 0.4 s

    known: Mapping[str, Callable[..., Function]] = known_embedding_functions
    return known


def _digest(options: Mapping[str, Any]) -> str:
    """What tells one configuration from another; a new key for the same model is the same configuration."""
    open_ones = {name: value for name, value in options.items() if not is_secret(name)}
    return hashlib.sha256(json.dumps(open_ones, sort_keys=True, default=str).encode()).hexdigest()[:12]


def _unavailable(
    function: str, error: Exception, options: Mapping[str, Any], *, hint: str = "check [embedding] in the settings"
) -> EmbeddingUnavailable:
    said = " ".join(hidden(str(error), secrets_of(options, os.environ)).split()) or type(error).__name__
    return EmbeddingUnavailable(f'The embedding function "{function}" fails: {said[:LONGEST_CAUSE]}', hint=hint)
