"""Pure: which texts go through the model together."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]


def batches(lengths: Sequence[int], tokens: int) -> list[Indices]:
    """Positions of texts, grouped so that texts of like length share a batch, the longest batch first.

    Args:
        lengths: Tokens of each text, at least 1 each.
        tokens: How many tokens a batch holds with its padding. A text longer than that goes alone.
    """
    order = np.argsort(np.negative(lengths), kind="stable")
    found: list[Indices] = []
    start = 0
    while start < len(order):
        size = max(1, tokens // lengths[order[start]])
        found.append(order[start : start + size])
        start += size
    return found


def padded(rows: Sequence[Sequence[int]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Rows of token ids as one array, short rows filled with 0, and the length of each row."""
    lengths = np.array([len(row) for row in rows], np.int32)
    ids = np.zeros((len(rows), int(lengths.max())), np.int32)
    for line, row in zip(ids, rows, strict=True):
        line[: len(row)] = row
    return ids, lengths
