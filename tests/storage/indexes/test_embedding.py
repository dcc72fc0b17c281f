"""Settings name an embedder."""

import pytest

from storage.errors import EmbeddingUnavailable
from storage.indexes.embedding import open_embedder


def test_minilm_is_opened_by_its_name() -> None:
    assert open_embedder("minilm", {}).dimensions == 384


def test_minilm_takes_no_options() -> None:
    """An option that would be ignored is an error."""
    with pytest.raises(EmbeddingUnavailable, match="takes no options"):
        open_embedder("minilm", {"device": "cuda"})


def test_any_other_name_is_chromas() -> None:
    with pytest.raises(EmbeddingUnavailable, match="cohere python package is not installed"):
        open_embedder("cohere", {})
