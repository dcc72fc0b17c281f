"""Where a text that is too long is cut: at a line's end, a word's, or between two characters as people see them; pure.

Nothing is lost: the blank or line break where it is cut stays at the end of the first piece.
"""

import unicodedata
from collections.abc import Callable, Iterator

_REGIONAL = range(0x1F1E6, 0x1F200)
_TONES = range(0x1F3FB, 0x1F400)
_JAMO = range(0x1160, 0x1200)
"""Vowels and finals of Korean, where they are written one by one."""
_JOINER = "\u200d"
_FIRST = 64
"""How many characters are tried first."""


def pieces(text: str, fits: Callable[[str], bool]) -> Iterator[str]:
    """Yield the text in pieces that fit, each as long as it can be without ending within a word.

    Args:
        text: What is cut.
        fits: Whether a piece is short enough; a single character is taken to be.
    """
    start = 0
    while start < len(text):
        end = start + _longest(text[start:], fits)
        end = end if end == len(text) else start + _end(text[start:], end - start, fits)
        yield text[start:end]
        start = end


def _end(text: str, longest: int, fits: Callable[[str], bool]) -> int:
    """Return where the longest piece that fits may end."""
    for mark in ("\n", " "):
        place = text.rfind(mark, longest // 2, longest) + 1
        if place and fits(text[:place]):
            return place
    return next((end for end in range(longest, 0, -1) if _between(text, end) and fits(text[:end])), longest)


def _longest(text: str, fits: Callable[[str], bool]) -> int:
    """Return how many characters fit: what a piece takes need not grow with each, so that the end is tried again."""
    high = _FIRST
    while high < len(text) and fits(text[:high]):
        high *= 2
    low, high = 1, min(high, len(text))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(text[:middle]) else (low, middle - 1)
    return next((end for end in range(low, 1, -1) if fits(text[:end])), 1)


def _between(text: str, end: int) -> bool:
    """Return whether two characters, as people see them, meet here. Tells marks, emoji and flags; no full UAX 29."""
    before, after = text[end - 1], text[end]
    if ord(after) in _REGIONAL:
        return _flags_before(text, end) % 2 == 0
    joined = _JOINER in {before, after} or ord(after) in _TONES or ord(after) in _JAMO
    return not joined and unicodedata.category(after)[0] != "M"


def _flags_before(text: str, end: int) -> int:
    start = end
    while start and ord(text[start - 1]) in _REGIONAL:
        start -= 1
    return end - start
