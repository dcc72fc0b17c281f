"""Lists of words kept as data beside this module, and the plain spelling in which they are compared.

A list is a text file of lines `kind: word word ...`; a kind may have several lines, `#` opens a comment.
"""

import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType

_SIMPLER = str.maketrans({
    "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ħ": "h", "ŋ": "n",
    "\N{LATIN SMALL LETTER DOTLESS I}": "i", "\u2019": "'", "\u02bc": "'",
    # Arabic: alef with hamza, madda or wasla; alef maksura, Persian yeh and kaf; tatweel; number separators.
    "\u0623": "\u0627", "\u0625": "\u0627", "\u0622": "\u0627", "\u0671": "\u0627", "\u0649": "\u064a",
    "\u06cc": "\u064a", "\u06a9": "\u0643", "\u0640": None, "\u066b": ".", "\u066c": ",",
})  # fmt: skip
_ACCENTS = ((0x0300, 0x036F), (0x0483, 0x0487), (0x0591, 0x05C7), (0x064B, 0x065F), (0x0670, 0x0670), (0x20D0, 0x20FF))
"""Marks that a person may leave out: accents, Hebrew points, Arabic vowels; not Indian vowels."""


def plain(word: str) -> str:
    """Return `word` casefolded, with plain apostrophes and digits, and without accents or vowel points."""
    folded = unicodedata.normalize("NFKC", word).casefold()
    if folded.isascii():
        return folded
    simpler = unicodedata.normalize("NFKD", folded).translate(_dropped_accents()).translate(_SIMPLER)
    digits = (str(unicodedata.decimal(char)) if char.isdecimal() else char for char in simpler)
    return unicodedata.normalize("NFC", "".join(digits))


@lru_cache(maxsize=8)
def lists(name: str) -> Mapping[str, frozenset[str]]:
    """Return the kinds of the list `name` and the words of each, as they are written."""
    lines = files(__package__).joinpath(f"{name}.txt").read_text(encoding="utf-8").splitlines()
    found: dict[str, set[str]] = {}
    for line in lines:
        kind, colon, listed = line.partition(":")
        if colon and not line.startswith("#"):
            found.setdefault(kind, set()).update(listed.split())
    return MappingProxyType({kind: frozenset(listed) for kind, listed in found.items()})


@lru_cache(maxsize=1)
def _dropped_accents() -> dict[int, None]:
    return {code: None for first, last in _ACCENTS for code in range(first, last + 1)}
