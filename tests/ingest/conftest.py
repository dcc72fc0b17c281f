"""Fixtures of the tests of refreshes."""

import pytest

from tests.ingest.waiting import WaitingEmbedder
from tests.storage.stores import opened


@pytest.fixture
def embedder():
    """Return an embedder that waits, and that is released at the end."""
    embedder = WaitingEmbedder()
    yield embedder
    embedder.go_on.set()


@pytest.fixture
def store(tmp_path, embedder):
    """Return an empty store."""
    with opened(tmp_path, embedder) as store:
        yield store
