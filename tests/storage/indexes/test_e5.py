"""Tests of multilingual-e5-small, and of cutting texts into pieces of its vocabulary."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import EmbeddingUnavailable
from storage.indexes.e5 import E5Embedder, Pieces, open_e5
from storage.indexes.embedders import E5, MODELS

MODEL = MODELS[E5]
VOCABULARY = {"▁": -2.0, "a": -3.0, "b": -3.5, "ab": -4.0, "▁a": -3.2, "ba": -5.0, "abb": -4.5, "▁ab": -8.0}
UNKNOWN = 99
PIECES = Pieces({piece: n for n, piece in enumerate(VOCABULARY)}, [*VOCABULARY.values()], {ord("A"): "a"}, UNKNOWN)


@pytest.fixture(scope="module")
def e5() -> E5Embedder:
    """The real model from the extra's package."""
    if not MODEL.weights.is_installed():
        pytest.skip(f"needs {MODEL.weights.requirement}")
    return open_e5()


@given(st.text("ab", min_size=1, max_size=7))
def test_text_is_cut_into_its_most_probable_pieces(text: str) -> None:
    whole, names = f"▁{text}", [*VOCABULARY]
    ways = [
        [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        for count in range(len(whole))
        for cuts in combinations(range(1, len(whole)), count)
    ]
    best = max(sum(VOCABULARY[piece] for piece in way) for way in ways if VOCABULARY.keys() >= set(way))

    cut = [names[number] for number in PIECES.cut(text)]

    assert ("".join(cut), sum(map(VOCABULARY.__getitem__, cut))) == (whole, pytest.approx(best))


def test_spaces_capitals_and_unknown_characters_are_handled() -> None:
    assert list(PIECES.cut("  A\n\tb ")) == list(PIECES.cut("a b"))
    assert list(PIECES.cut("b?")) == [*PIECES.cut("b"), UNKNOWN]
    assert list(PIECES.cut(" ")) == []


def test_question_is_near_its_answer_in_another_language(e5: E5Embedder) -> None:
    asked = f"{MODEL.question}Wie viele Urlaubstage habe ich im Jahr?"
    texts = ["Everyone has 28 days of paid leave a year.", "The printer is on the second floor.", "猫在垫子上。"]

    question, right, *others = e5.embed([asked, *(MODEL.passage + text for text in texts)])

    scaled = [MODEL.scale(float(question @ vector)) for vector in (right, *others)]
    assert scaled[0] > max(scaled[1:]) + 0.1
    assert (e5.name, e5.dimensions, e5.knows("كم")) == (MODEL.name, len(right), 1)


@pytest.mark.parametrize("text", ["", "\ud83d?", "長" * 100_000, "x" * 100_000, "word " * 5_000])
def test_vector_has_length_one_and_depends_on_its_text_alone(e5: E5Embedder, text: str) -> None:
    alone = e5.embed([text])

    assert np.linalg.norm(alone) == pytest.approx(1, abs=1e-5)
    np.testing.assert_array_equal(e5.embed(["other", text])[1:], alone)


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / MODEL.weights.path).write_bytes(b"no weights")

    with pytest.raises(EmbeddingUnavailable, match="damaged") as caught:
        open_e5(tmp_path)
    assert "make multilingual" in caught.value.hint
