"""Tests of opening the embedder that the settings name."""

import pytest

from storage.errors import EmbeddingUnavailable
from storage.indexes.embedding import open_embedder


def test_minilm_is_opened_by_its_name() -> None:
    assert open_embedder("minilm", {}).dimensions == 384


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("minilm", {"device": "cuda"}, "takes no options"),  # an option that would be ignored is an error
        ("cohere", {}, "cohere python package is not installed"),  # other names are Chroma's
    ],
)
def test_unusable_embedder_is_explained(name: str, options: dict[str, str], reason: str) -> None:
    with pytest.raises(EmbeddingUnavailable, match=reason):
        open_embedder(name, options)
