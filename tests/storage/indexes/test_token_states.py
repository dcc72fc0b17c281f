"""Tests of the states of single tokens from the packaged 8-bit model."""

import numpy as np
import pytest

from storage.indexes.minilm import LAYERS, MOST_SENTENCE_TOKENS, TokenStateReader, open_minilm, open_token_states

SENTENCES = [
    "The harbour master closed the gate.",
    "Ein Hund bellte.",
    "猫はマットの上に座った。",
    "",
    "word " * 500,
    "\ud800",
]


@pytest.fixture(scope="module")
def reader() -> TokenStateReader:
    return open_token_states()


def test_every_token_has_a_state_per_layer(reader: TokenStateReader) -> None:
    """Longer texts are truncated; rows have length 1."""
    for found in reader.read(SENTENCES):
        tokens = len(found.ids)
        assert tokens <= MOST_SENTENCE_TOKENS - 2
        assert [layer.shape for layer in found.layers] == [(tokens, 384)] * len(LAYERS)
        assert np.allclose(np.linalg.norm(found.layers[-1], axis=1), 1, atol=1e-5)


def test_token_states_are_close_to_32_bit_vectors(reader: TokenStateReader) -> None:
    exact = open_minilm().embed(SENTENCES[:2])
    means = [found.mean for found in reader.read(SENTENCES[:2])]

    assert all(float(one @ other) > 0.98 for one, other in zip(exact, means, strict=True))


def test_states_do_not_depend_on_other_texts(reader: TokenStateReader) -> None:
    (alone,) = reader.read(["The gate is closed."])
    together = reader.read(["The harbour master went home early.", "The gate is closed.", "Ein Hund bellte."])[1]

    assert np.array_equal(alone.ids, together.ids)
    assert float((alone.layers[-1] * together.layers[-1]).sum(axis=1).min()) > 0.97
