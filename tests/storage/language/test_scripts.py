"""Tests of the scripts of characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.language.scripts import UNSPACED_CLASS, is_unspaced, latin_share, script_of

SCRIPTS = {
    "aZéßŁ": "Latin",
    "жЯ": "Cyrillic",
    "αΩ": "Greek",
    "漢字々": "Han",
    "ひゞ": "Hiragana",
    "カー": "Katakana",
    "한글": "Hangul",
    "ثپ": "Arabic",
    "אב": "Hebrew",
    "हि": "Devanagari",
    "ไท": "Thai",
    "ລາ": "Lao",
    "ខ្": "Khmer",
    "မြ": "Myanmar",
    "ქა": "Georgian",
    "հա": "Armenian",
    "አማ": "Ethiopic",
    "தமி": "Tamil",
}


@pytest.mark.parametrize(("text", "script"), SCRIPTS.items())
def test_letters_and_marks_are_assigned_to_their_script(text: str, script: str) -> None:
    assert {script} == {script_of(char) for char in text}


@pytest.mark.parametrize("char", list(" 1.,!€。「😀\n_"))
def test_non_letters_have_no_script(char: str) -> None:
    assert script_of(char) == ""


@given(st.characters())
def test_unspaced_letters_are_those_of_the_unspaced_scripts(char: str) -> None:
    unspaced = {"Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar"}
    if char.isalpha():
        assert is_unspaced(char) == (script_of(char) in unspaced)


def test_regex_of_unspaced_letters_can_be_used_in_a_character_class() -> None:
    assert "]" not in UNSPACED_CLASS
    assert "^" not in UNSPACED_CLASS


@pytest.mark.parametrize(
    ("text", "share"),
    [("", 1.0), ("42 €", 1.0), ("abc", 1.0), ("größe", 1.0), ("слово", 0.0), ("ab漢字", 0.5), ("한글 abcdef", 0.75)],
)
def test_share_of_latin_letters_is_computed_over_letters_only(text: str, share: float) -> None:
    """Only letters count; the share is 1 without any."""
    assert latin_share(text) == share


@given(st.text())
def test_share_of_latin_letters_is_between_0_and_1(text: str) -> None:
    assert 0.0 <= latin_share(text) <= 1.0
