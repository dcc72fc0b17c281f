"""Compute the states of single tokens by MiniLM with eight-bit weights; `minilm` gives a whole text's vector.

The support check compares sentences word by word, in a few milliseconds. Eight bits a weight are 2.7 times as fast as
32, and leave a state's cosine with the original at .99, one scale for each row of a weight. They are made from the
packaged weights once, in a second or two, and kept in the home as 24 MB.
"""

import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.errors import EmbeddingUnavailable
from storage.indexes.minilm import (
    SHA256,
    TOKENIZER,
    WEIGHTS,
    check_model,
    find_model_folder,
    open_session,
    open_tokenizer,
)
from storage.indexes.minilm_graph import UNSEEN, build_states_model

LAYERS = (0, 3, 6)  # the table of words, half way up, and the top: from what a word is to what it means where it stands
MOST_TOKENS = 56  # what is read of each text: a long sentence, its two special tokens included
STATES_FILE = f"minilm-states-int8-{SHA256[WEIGHTS][:12]}-{'-'.join(map(str, LAYERS))}-packed.onnx"

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class TokenStates:
    """A text's tokens, without the special ones at its ends: their ids, and their states after each of `LAYERS`.

    `layers` are float32 (tokens, WIDTH), each row of length 1; `mean` (WIDTH,) is of length 1 too, the text's vector.
    """

    ids: NDArray[np.int32]
    layers: tuple[Floats, ...]
    mean: Floats


def open_token_states(home: Path, folder: Path | None = None) -> "TokenStateReader":
    """Load the eight-bit model from `home`/models, and make it first where it is missing or damaged.

    Raises `EmbeddingUnavailable`.
    """
    folder = folder or find_model_folder()
    kept = home / "models" / STATES_FILE
    try:
        session = _open_kept(kept) or open_session(_make_model(folder, kept))
        return TokenStateReader(session, open_tokenizer(folder / TOKENIZER, MOST_TOKENS))
    except EmbeddingUnavailable:
        raise
    except Exception as error:  # onnx, onnxruntime and tokenizers raise no common class
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


def _open_kept(path: Path) -> Any | None:
    try:
        return open_session(path.read_bytes(), log_level=4)  # a damaged file is told by what it raises
    except Exception:  # noqa: BLE001  # onnxruntime raises no common class: what is missing or damaged is made again
        return None


def _make_model(folder: Path, path: Path) -> bytes:
    check_model(folder)
    with tempfile.TemporaryDirectory() as work:
        model = quantize(build_states_model(folder / WEIGHTS, LAYERS), folder, Path(work))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{os.getpid()}")
        beside.write_bytes(model)
        beside.replace(path)  # whoever opens it meanwhile finds all or nothing of it
    except OSError as error:
        logging.getLogger(__name__).warning("the support model could not be kept: %s", error.strerror)
    return model


def quantize(model: Any, folder: Path, work: Path) -> bytes:
    """Return a model with eight-bit weights, one scale for each row; `folder` holds the weights that it points to."""
    import onnx

    onnx.external_data_helper.load_external_data_for_model(model, str(folder))
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            tensor.data_location = onnx.TensorProto.DEFAULT
            del tensor.external_data[:]
    onnx.save(model, work / "float32.onnx")
    with _root_logger_unchanged():
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantize_dynamic(work / "float32.onnx", work / "int8.onnx", weight_type=QuantType.QInt8, per_channel=True)
    return (work / "int8.onnx").read_bytes()


@contextmanager
def _root_logger_unchanged() -> Iterator[None]:
    """Keep the library from setting up the root logger when it is imported, and from giving advice."""
    root, nothing = logging.getLogger(), logging.NullHandler()
    level = root.level
    root.addHandler(nothing)  # `logging.basicConfig` leaves a logger alone that has a handler
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(nothing)
