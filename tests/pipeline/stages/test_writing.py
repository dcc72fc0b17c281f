"""A draft as it is shown to whoever refines it."""

import pytest

from pipeline.citing import Marked, sentences
from pipeline.stages.writing import written


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (Marked("It was cast in 1887.", (1, 3), paragraph=False), "It was cast in 1887 [1][3]."),
        (Marked("Really?", (2,), paragraph=False), "Really [2]?"),
        (Marked("鐘は1887年に鋳造された。", (1,), paragraph=False), "鐘は1887年に鋳造された [1]。"),
        (Marked("It was cast in 1887", (1,), paragraph=False), "It was cast in 1887 [1]"),
        (Marked("I wonder...", (), paragraph=False), "I wonder..."),
    ],
)
def test_numbers_stand_before_the_full_stop(sentence: Marked, expected: str) -> None:
    """As models are asked to write them."""
    assert written([sentence]) == expected


def test_what_is_written_is_read_as_it_was() -> None:
    """Nothing is lost between drafting and refining."""
    draft = sentences("The bell was cast in 1887 [1]. It hangs on the quay [2][1]. It rings.", 2)

    assert sentences(written(draft), 2) == draft
