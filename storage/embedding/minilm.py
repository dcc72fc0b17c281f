"""all-MiniLM-L6-v2 on this machine's processor; unlike `chroma_function` it needs no network and no service.

Chroma's own function for the same model tokenizes one text at a time and pads each to 256 tokens. Here texts of like
length share small batches that fit the processor's cache, and each batch runs on one core with no thread pool of
onnxruntime's: cores are filled by running several batches at once, a query costs one core, and nothing spins.
"""

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from storage.embedding.batching import batches, padded
from storage.embedding.minilm_graph import UNSEEN, WIDTH, minilm_graph
from storage.embedding.types import Vectors
from storage.embedding.weights import SHA256, TOKENIZER, WEIGHTS, check_model, packaged_model
from storage.errors import EmbeddingUnavailable
from storage.language.detect import detect
from storage.language.scripts import latin_share

MOST_TOKENS = 256  # as Chroma reads of each text
MOST_CHARACTERS = 10_000  # 40 for each token: what stands further on is never read, so it is not tokenized either
FOREIGN = 0.2  # over XQuAD, German gains with it and Spanish loses nothing; 1 costs both .02 to .03 of R@1
BATCH_TOKENS = 512  # what a layer makes of them fits the second-level cache


def open_minilm(folder: Path | None = None) -> "MiniLM":
    """Checks and loads the model, in 0.1 s where the processor knows SHA-256; imports take another 0.2 s.

    Args:
        folder: Where the model's files lie; by default in the installed package.

    Raises:
        EmbeddingUnavailable: The files are missing or damaged, or onnxruntime refuses them.
    """
    folder = folder or packaged_model()
    check_model(folder)
    try:
        return MiniLM(_session(minilm_graph(folder / WEIGHTS), folder), open_tokenizer(folder / TOKENIZER))
    except Exception as error:  # onnxruntime and tokenizers raise no common class
        raise EmbeddingUnavailable(f"The MiniLM model cannot be loaded: {error}") from error


class MiniLM:
    """The loaded model; opened by `open_minilm`."""

    name = f"all-MiniLM-L6-v2/{SHA256[WEIGHTS][:12]}"
    dimensions = WIDTH

    def __init__(self, session: Any, tokenizer: Any) -> None:
        self._session = session
        self._tokenizer = tokenizer

    def knows(self, text: str) -> float:
        """1 for English, little for other languages in Latin letters, nothing for other scripts.

        It was trained on English. What is too short to tell is taken for English.
        """
        return latin_share(text) * (1.0 if detect(text[:MOST_CHARACTERS]) in {"", "en"} else FOREIGN)

    def embed(self, texts: Sequence[str], *, polite: bool = False) -> Vectors:
        """Vectors of `texts`, as `Embedder` says."""
        threads = max(1, _cores() - polite)
        rows = self._tokens(texts)
        lengths = [len(row) for row in rows]
        groups = batches(lengths, min(BATCH_TOKENS, math.ceil(sum(lengths) / threads)))
        parts = self._run_all([[rows[place] for place in group] for group in groups], threads)
        vectors = np.empty((len(texts), WIDTH), np.float32)
        for group, part in zip(groups, parts, strict=True):
            vectors[group] = part
        return vectors

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        # A lone surrogate is a string in Python and in JSON, but not in UTF-8, which the tokenizer wants.
        short = [text[:MOST_CHARACTERS].encode(errors="replace").decode() for text in texts]
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(short)]

    def _run_all(self, parts: list[list[list[int]]], threads: int) -> list[Vectors]:
        if min(len(parts), threads) <= 1:
            return [self._run(part) for part in parts]
        with ThreadPoolExecutor(threads, "embed") as pool:
            return list(pool.map(self._run, parts))

    def _run(self, rows: list[list[int]]) -> Vectors:
        ids, lengths = padded(rows)
        here = np.arange(ids.shape[1]) < lengths[:, np.newaxis]
        unseen = np.where(here, 0, UNSEEN).astype(np.float32)[:, np.newaxis, np.newaxis]
        shares = (here / lengths[:, np.newaxis]).astype(np.float32)[:, np.newaxis]
        (found,) = self._session.run(None, {"ids": ids, "unseen": unseen, "shares": shares})
        vectors: Vectors = found[:, 0] / np.linalg.norm(found[:, 0], axis=1, keepdims=True)
        return vectors


def _session(graph: bytes, folder: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    onnxruntime.disable_telemetry_events()
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def open_tokenizer(path: Path, most: int = MOST_TOKENS) -> Any:
    """Load the model's tokenizer; of each text it gives at most so many tokens."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(most)
    return tokenizer


def _cores() -> int:
    """How many cores this process may use; not every system can say it of a process."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1
