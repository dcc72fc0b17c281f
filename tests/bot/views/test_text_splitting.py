"""Splitting texts into pieces that fit, without losing anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.views.message_layout import split_text
from tests.platforms.hostile_text import texts


@given(text=texts | st.text(max_size=200), most=st.integers(1, 30))
def test_pieces_fit_and_join_to_the_text(text: str, most: int) -> None:
    cut = list(split_text(text, lambda piece: len(piece) <= most))

    assert "".join(cut) == text
    assert all(0 < len(piece) <= most for piece in cut)


@pytest.mark.parametrize(("text", "most", "cut"), [
    ("one two three", 9, ["one two ", "three"]),
    ("a = 1\nb = 2 + 2", 9, ["a = 1\n", "b = 2 + 2"]),
    ("abcdefgh", 3, ["abc", "def", "gh"]),
    ("ae\u0301e\u0301", 4, ["ae\u0301", "e\u0301"]),
    ("👍🏽👍🏽", 3, ["👍🏽", "👍🏽"]),
    ("👩\u200d🚒👩\u200d🚒", 5, ["👩\u200d🚒", "👩\u200d🚒"]),
    ("🇩🇪🇫🇷", 3, ["🇩🇪", "🇫🇷"]),
    ("\u1112\u1161\u11ab\u1112", 2, ["\u1112\u1161", "\u11ab\u1112"]),
    ("", 3, []),
])  # fmt: skip
def test_text_is_split_at_lines_words_and_characters(text: str, most: int, cut: list[str]) -> None:
    assert list(split_text(text, lambda piece: len(piece) <= most)) == cut
