"""Tests that texts are embedded once and remembered vectors equal new ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from storage.indexes.embedding import VectorMemory

MOST = 4


class Counting:
    """Embed a text as its length and first letter; record the texts."""

    def __init__(self) -> None:
        self.asked = list[str]()

    def embed(self, texts: Sequence[str], *, polite: bool = False) -> Any:
        assert texts
        assert not polite
        self.asked += texts
        return np.array([[len(text), ord(text[0])] for text in texts], np.float32)


@given(st.lists(st.lists(st.sampled_from(["a", "b", "cc", "dd", "eee", "gggg"]), min_size=1, max_size=6), max_size=8))
def test_vectors_are_those_of_the_embedder(rounds: list[list[str]]) -> None:
    counting = Counting()
    memory: Any = VectorMemory(counting, MOST)  # type: ignore[arg-type]
    for texts in rounds:
        counting.asked.clear()
        vectors = memory.embed(texts)
        assert vectors.tolist() == [[len(text), ord(text[0])] for text in texts]
        assert len(counting.asked) == len(set(counting.asked))
        assert len(memory._vectors) <= MOST


def test_repeated_text_is_embedded_once() -> None:
    counting = Counting()
    memory = VectorMemory(counting, MOST)  # type: ignore[arg-type]
    for texts in (["a", "b"], ["b", "a", "c"], ["d", "e"], ["a"], ["b"]):
        memory.embed(texts)
    assert counting.asked == ["a", "b", "c", "d", "e", "b"]
