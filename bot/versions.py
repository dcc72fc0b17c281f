"""What runs, as the record and `footnote --version` name it: the version of the code, and digests of its data."""

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.metadata import PackageNotFoundError, version

SHORT = 16
"""Characters of a digest that are kept."""


def _installed() -> str:
    try:
        return version("footnote")
    except PackageNotFoundError:
        return "unknown"


VERSION = _installed()
"""The version of the code that runs."""


@cache
def prompts_digest() -> str:
    """Return a short hash of all that is said to a model besides the facts of a turn: templates and examples."""
    return _digest(_contents("pipeline.prompts", (".j2", ".json")))


@cache
def support_digest() -> str:
    """Return a short hash of the trained part of the local support check."""
    return _digest(_contents("pipeline.support", ("weights.json",)))


def _contents(package: str, endings: tuple[str, ...]) -> Iterator[bytes]:
    files = (file for file in resources.files(package).iterdir() if file.name.endswith(endings))
    for file in sorted(files, key=lambda file: file.name):
        yield file.name.encode()
        yield file.read_bytes()


def _digest(parts: Iterator[bytes]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8))
        whole.update(part)
    return whole.hexdigest()[:SHORT]
