"""The model is loaded once for all tests of this folder."""

from importlib.util import find_spec

import pytest

from storage.indexes.minilm import WEIGHTS, MiniLM, open_minilm


@pytest.fixture(scope="session")
def minilm() -> MiniLM:
    """The real model from the installed package."""
    if find_spec(WEIGHTS.package) is None:
        pytest.skip(f"needs {WEIGHTS.requirement}")
    return open_minilm()
