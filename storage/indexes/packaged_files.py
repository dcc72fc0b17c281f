"""Open models whose weights are in installed packages; the packages' code is never imported."""

import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from storage.errors import EmbeddingUnavailable
from storage.indexes.embedders import BERT_TOKENIZER, PackagedFile

MOST_TOKENS = 512  # that the models have positions for


def open_session(
    model: bytes | Path,
    folder: Path | None = None,
    *,
    weights: Mapping[str, NDArray[Any]] = MappingProxyType({}),
    sums_in_16_bits: bool | None = None,
) -> Any:
    """Open a model on one thread, which reports only errors. External weights are in `folder`, or in `weights`.

    `sums_in_16_bits` is whether the processor sums 8-bit products in 16 bits; by default, the processor is asked.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if sums_in_16_bits if sums_in_16_bits is not None else _sums_in_16_bits():
        # Sums of 8-bit products would overflow; exact ones take 1.6 times as long.
        options.add_session_config_entry("session.x64quantprecision", "1")
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    if weights:
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(value) for value in weights.values()]
        options.add_external_initializers(list(weights), values)
    onnxruntime.disable_telemetry_events()
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _sums_in_16_bits() -> bool:
    """Return whether this is an x86 processor without the VNNI instructions, or may be one."""
    if platform.machine().lower() not in {"x86_64", "amd64"}:
        return False
    try:
        return "vnni" not in Path("/proc/cpuinfo").read_text()
    except OSError:
        return True


def open_model(graph: Path, weights: PackagedFile, root: Path | None = None) -> tuple[Any, Any]:
    """Check and open a model from its package, or from a folder `root` instead; return its session and the tokenizer.

    `graph` is a file of ours without weights. Raises `EmbeddingUnavailable`.
    """
    folder, tokenizer = weights.locate(root).parent, load_tokenizer()
    try:
        return open_session(graph.read_bytes(), folder), tokenizer
    except Exception as error:  # onnxruntime raises no common class
        raise EmbeddingUnavailable(f"The model {graph.name} cannot be loaded: {error}") from error


@cache
def load_tokenizer() -> Any:
    """Load the tokenizer, which returns at most `MOST_TOKENS` of a text or a pair. Raises `EmbeddingUnavailable`."""
    tokenizer = Tokenizer.from_file(str(BERT_TOKENIZER.locate()))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MOST_TOKENS)
    return tokenizer


def make_encodable(text: str) -> str:
    """Replace lone surrogates, which Python and JSON have, but not UTF-8, which the tokenizer needs."""
    return text.encode(errors="replace").decode()
