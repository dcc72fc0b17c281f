"""The model is loaded once for all tests of this folder."""

import pytest

from storage.indexes.embedders import MINILM, MODELS
from storage.indexes.packaged_embedder import MiniLM, open_minilm


@pytest.fixture(scope="session")
def minilm() -> MiniLM:
    """The real model from the installed package."""
    if not (weights := MODELS[MINILM].weights).is_installed():
        pytest.skip(f"needs {weights.requirement}")
    return open_minilm()
