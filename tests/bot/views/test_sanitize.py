"""Text from elsewhere cannot command the terminal."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.views.sanitize import replace_unencodable, sanitize_line, sanitize_link, sanitize_text


@given(st.text())
def test_control_characters_are_removed(text: str) -> None:
    left = {char for char in sanitize_text(text) if unicodedata.category(char) in {"Cc", "Cs"}}
    assert left <= {"\n", "\t"}


@given(st.text())
def test_sanitized_line_has_no_breaks(text: str) -> None:
    assert len(sanitize_line(text).splitlines()) <= 1


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Zl", "Zp"])))
def test_plain_text_is_unchanged(text: str) -> None:
    assert sanitize_text(text) == text


@pytest.mark.parametrize(("text", "expected"), [
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b]0;a title\x07after", "after"),
    ("\x1b]8;;https://evil.example\x1b\\here\x1b]8;;\x1b\\", "here"),
    ("\x9b2Jgone", "gone"),
    ("\x1bPdevice\x1b\\x", "x"),
    ("a\x08\x7fb", "ab"),
    ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour"),
    ("user\u202egnp.exe", "usergnp.exe"),
    ("👩‍👩‍👧 \u200fשלום", "👩‍👩‍👧 \u200fשלום"),
])  # fmt: skip
def test_escape_sequences_are_removed_completely(text: str, expected: str) -> None:
    assert sanitize_text(text) == expected


@pytest.mark.parametrize(("url", "linked"), [
    ("https://example.com/a?b=c#d", True),
    ("mailto:a@example.com", True),
    ("javascript:alert(1)", False),
    ("file:///etc/passwd", False),
    ("https://example.com/\x1b\\", False),
    ("https://example.com/ b", False),
    ("", False),
])  # fmt: skip
def test_only_web_addresses_become_links(url: str, *, linked: bool) -> None:
    assert sanitize_link(url) == (url if linked else "")


@given(st.text(alphabet=st.characters()))
def test_unencodable_characters_are_replaced(text: str) -> None:
    assert re.fullmatch(r"[^\ud800-\udfff]*", replace_unencodable(text))
