"""Tests of how texts are grouped into batches for the model."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from storage.indexes.minilm import batch_by_length, pad_rows


@given(st.lists(st.integers(1, 256)), st.integers(1, 2048))
def test_every_text_is_in_one_batch(lengths: list[int], tokens: int) -> None:
    places = [int(place) for batch in batch_by_length(lengths, tokens) for place in batch]

    assert sorted(places) == list(range(len(lengths)))


@given(st.lists(st.integers(1, 256)), st.integers(1, 2048))
def test_batches_stay_within_the_token_limit(lengths: list[int], tokens: int) -> None:
    for batch in batch_by_length(lengths, tokens):
        assert len(batch) == 1 or max(lengths[place] for place in batch) * len(batch) <= tokens


def test_similar_lengths_share_a_batch_longest_first() -> None:
    """This gives two batches of similar lengths instead of two that are mostly padding."""
    batches = [batch.tolist() for batch in batch_by_length([10, 100, 12, 90], 200)]

    assert batches == [[1, 3], [2, 0]]


def test_short_rows_are_padded_with_zeros() -> None:
    ids, lengths = pad_rows([[5, 6, 7], [8]])

    assert ids.tolist() == [[5, 6, 7], [8, 0, 0]]
    assert lengths.tolist() == [3, 1]
    assert ids.dtype == np.int32
