"""The local support check in its first form: verbatim, and whole sentences only."""

from collections.abc import Sequence

import pytest

from pipeline.supporting import stands_verbatim
from storage.types import Kind, Passage
from tests.pipeline.world import hit

OFFICE = hit("The office opens at nine. Nobody knows\nwhether it closes at six.\n\nDogs:\n- Rex\n- Bello").passage
TABLE = hit("Grade: 8; Leave: 25 days\nGrade: 9; Leave: 28 days", key="t", kind=Kind.TABLE).passage


@pytest.mark.parametrize(
    "sentence",
    [
        "The office opens at nine.",
        "Nobody knows whether it closes at six.",
        "The office opens at nine. Nobody knows whether it closes at six.",
        "Dogs:\n- Rex\n- Bello",
        "Bello",
        "Grade: 9; Leave: 28 days",
    ],
)
async def test_whole_sentences_are_supported(sentence: str) -> None:
    """One or more neighbouring sentences, items or rows of one passage hold, however their lines are broken."""
    support = await stands_verbatim(sentence, [OFFICE, TABLE])

    assert (support.holds, support.score) == (True, 1.0)
    assert "verbatim" in support.reasons[0]


@pytest.mark.parametrize(
    ("sentence", "passages", "reason"),
    [
        ("whether it closes at six.", [OFFICE], "only a part"),
        ("Leave: 25 days", [TABLE], "only a part"),
        ("The office opens at ten.", [OFFICE], "does not stand"),
        ("the office opens at nine.", [OFFICE], "does not stand"),
        ("The office opens at nine.", [TABLE], "does not stand"),
        ("The office opens at nine.", [], "does not stand"),
        ("Nobody knows whether it closes at six. Grade: 8; Leave: 25 days", [OFFICE, TABLE], "does not stand"),
        (" ", [OFFICE], "no text"),
    ],
)
async def test_anything_else_is_not(sentence: str, passages: Sequence[Passage], reason: str) -> None:
    """A changed word, a cut sentence, or a mixture of passages does not hold, and the reason says so."""
    support = await stands_verbatim(sentence, passages)

    assert not support.holds
    assert reason in support.reasons[0]
