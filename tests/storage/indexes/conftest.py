"""The model is loaded once for all tests of this folder."""

import pytest

from storage.indexes.minilm import MiniLM, open_minilm


@pytest.fixture(scope="session")
def minilm() -> MiniLM:
    """The real model from the installed package."""
    return open_minilm()


@pytest.fixture(scope="session")
def rounded() -> MiniLM:
    """The same model with 8-bit weights."""
    return open_minilm(bits=8)
