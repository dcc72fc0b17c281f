"""Find the script of a character, and the share of Latin letters in a text."""

import unicodedata
from bisect import bisect_right
from functools import lru_cache

from storage.language.lazy_pattern import lazy_compile

_RANGES: tuple[tuple[int, int, str], ...] = (
    (0x0041, 0x024F, "Latin"),
    (0x0250, 0x02AF, "Latin"),
    (0x0370, 0x03FF, "Greek"),
    (0x0400, 0x052F, "Cyrillic"),
    (0x0530, 0x058F, "Armenian"),
    (0x0590, 0x05FF, "Hebrew"),
    (0x0600, 0x06FF, "Arabic"),
    (0x0700, 0x074F, "Syriac"),
    (0x0750, 0x077F, "Arabic"),
    (0x0780, 0x07BF, "Thaana"),
    (0x0860, 0x08FF, "Arabic"),
    (0x0900, 0x097F, "Devanagari"),
    (0x0980, 0x09FF, "Bengali"),
    (0x0A00, 0x0A7F, "Gurmukhi"),
    (0x0A80, 0x0AFF, "Gujarati"),
    (0x0B00, 0x0B7F, "Oriya"),
    (0x0B80, 0x0BFF, "Tamil"),
    (0x0C00, 0x0C7F, "Telugu"),
    (0x0C80, 0x0CFF, "Kannada"),
    (0x0D00, 0x0D7F, "Malayalam"),
    (0x0D80, 0x0DFF, "Sinhala"),
    (0x0E00, 0x0E7F, "Thai"),
    (0x0E80, 0x0EFF, "Lao"),
    (0x0F00, 0x0FFF, "Tibetan"),
    (0x1000, 0x109F, "Myanmar"),
    (0x10A0, 0x10FF, "Georgian"),
    (0x1100, 0x11FF, "Hangul"),
    (0x1200, 0x139F, "Ethiopic"),
    (0x1780, 0x17FF, "Khmer"),
    (0x1800, 0x18AF, "Mongolian"),
    (0x1C80, 0x1C8F, "Cyrillic"),
    (0x1C90, 0x1CBF, "Georgian"),
    (0x1D00, 0x1D7F, "Latin"),
    (0x1E00, 0x1EFF, "Latin"),
    (0x1F00, 0x1FFF, "Greek"),
    (0x2C60, 0x2C7F, "Latin"),
    (0x2DE0, 0x2DFF, "Cyrillic"),
    (0x3005, 0x3007, "Han"),
    (0x3021, 0x3029, "Han"),
    (0x3040, 0x309F, "Hiragana"),
    (0x30A0, 0x30FF, "Katakana"),
    (0x3100, 0x312F, "Bopomofo"),
    (0x3130, 0x318F, "Hangul"),
    (0x31F0, 0x31FF, "Katakana"),
    (0x3400, 0x4DBF, "Han"),
    (0x4E00, 0x9FFF, "Han"),
    (0xA640, 0xA69F, "Cyrillic"),
    (0xA720, 0xA7FF, "Latin"),
    (0xA960, 0xA97F, "Hangul"),
    (0xAB30, 0xAB6F, "Latin"),
    (0xAC00, 0xD7FF, "Hangul"),
    (0xF900, 0xFAFF, "Han"),
    (0xFB00, 0xFB06, "Latin"),
    (0xFB13, 0xFB17, "Armenian"),
    (0xFB1D, 0xFB4F, "Hebrew"),
    (0xFB50, 0xFDFF, "Arabic"),
    (0xFE70, 0xFEFE, "Arabic"),
    (0xFF21, 0xFF5A, "Latin"),
    (0xFF66, 0xFF9D, "Katakana"),
    (0xFFA0, 0xFFDC, "Hangul"),
    (0x1B000, 0x1B16F, "Hiragana"),
    (0x20000, 0x3FFFF, "Han"),
)
_STARTS = tuple(start for start, _, _ in _RANGES)

UNSPACED_CLASS = (
    "\u3005-\u3007\u3021-\u3029\u3040-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U0001b000-\U0001b16f\U00020000-\U0003ffff"
    "\u0e00-\u0e3a\u0e40-\u0e4e\u0e80-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u1089\u1780-\u17d3"
)  # the inside of a regex character class: letters and marks of the scripts that put no spaces between words

_UNSPACED = lazy_compile(f"[{UNSPACED_CLASS}]")
_LETTERS = lazy_compile(r"[^\W\d_]+")
_LATIN = lazy_compile(
    "[A-Za-zªºÀ-ÖØ-öø-\u02af\u1d00-\u1d7f\u1e00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f\ufb00-\ufb06"
    "\uff21-\uff3a\uff41-\uff5a]+"
)


@lru_cache(maxsize=8192)
def script_of(char: str) -> str:
    """Return the script of one letter or mark; "" for any other character, and for rare scripts."""
    if not (char.isalpha() or unicodedata.category(char) in {"Mn", "Mc", "Nl"}):
        return ""
    place = bisect_right(_STARTS, ord(char)) - 1
    if place < 0 or ord(char) > _RANGES[place][1]:
        return ""
    return _RANGES[place][2]


def is_unspaced(char: str) -> bool:
    """Return whether a character belongs to a script without spaces between words."""
    return _UNSPACED.match(char) is not None


def latin_share(text: str) -> float:
    """Return the share of Latin letters among the letters of `text`, 0 to 1; 1 if it has no letters."""
    if text.isascii():
        return 1.0
    letters = sum(map(len, _LETTERS.findall(text)))
    return sum(map(len, _LATIN.findall(text))) / letters if letters else 1.0
