"""Compute the states of single tokens by MiniLM with eight-bit weights; `minilm` gives a whole text's vector.

The support check compares sentences word by word, in a few milliseconds. Eight bits a weight are 2.7 times as fast as
32, and leave a state's cosine with the original at .99.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.errors import EmbeddingUnavailable
from storage.indexes.minilm import (
    TOKENIZER,
    WEIGHTS,
    check_model,
    find_model_folder,
    largest_weight,
    open_session,
    open_tokenizer,
)
from storage.indexes.minilm_graph import UNSEEN, build_states_graph

LAYERS = (0, 3, 6)  # the table of words, half way up, and the top: from what a word is to what it means where it stands
MOST_TOKENS = 56  # what is read of each text: a long sentence, its two special tokens included

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class TokenStates:
    """A text's tokens, without the special ones at its ends: their ids, and their states after each of `LAYERS`.

    `layers` are float32 (tokens, WIDTH), each row of length 1; `mean` (WIDTH,) is of length 1 too, the text's vector.
    """

    ids: NDArray[np.int32]
    layers: tuple[Floats, ...]
    mean: Floats


def open_token_states(folder: Path | None = None) -> "TokenStateReader":
    """Check and load the model with eight bits. Raises `EmbeddingUnavailable`."""
    folder = folder or find_model_folder()
    check_model(folder)
    try:
        session = open_session(build_states_graph(folder / WEIGHTS, LAYERS, largest_weight(8)), folder)
        return TokenStateReader(session, open_tokenizer(folder / TOKENIZER, MOST_TOKENS))
    except Exception as error:  # onnxruntime and tokenizers raise no common class
        raise EmbeddingUnavailable(f"The MiniLM model cannot be loaded: {error}") from error


class TokenStateReader:
    """The loaded model; opened by `open_token_states`. Safe to call from several threads."""

    def __init__(self, session: Any, tokenizer: Any) -> None:
        self._session = session
        self._tokenizer = tokenizer

    def read(self, texts: Sequence[str]) -> tuple[TokenStates, ...]:
        """Return the states of each text, in order. Blocks, on one core."""
        rows = [self._tokenizer.encode(text.encode(errors="replace").decode()).ids for text in texts]  # UTF-8 it wants
        lengths = [len(row) for row in rows]
        ids = np.array([[token for row in rows for token in row]], np.int32)
        positions = np.concatenate([np.arange(length, dtype=np.int32) for length in lengths])
        of_text = np.repeat(np.arange(len(rows)), lengths)
        unseen = np.where(of_text[:, np.newaxis] == of_text, 0, UNSEEN).astype(np.float32)[np.newaxis, np.newaxis]
        layers = self._session.run(None, {"ids": ids, "positions": positions, "unseen": unseen})
        ends = np.cumsum(lengths)
        return tuple(
            _build_states(ids[0, end - length : end], [layer[end - length : end] for layer in layers])
            for end, length in zip(ends, lengths, strict=True)
        )


def _build_states(ids: NDArray[np.int32], layers: Sequence[Floats]) -> TokenStates:
    inner = tuple(_normalize(states[1:-1]) for states in layers)
    return TokenStates(ids[1:-1], inner, _normalize(layers[-1].mean(axis=0)))


def _normalize(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    unit: Floats = (rows / np.maximum(lengths, 1e-12)).astype(np.float32)
    return unit
