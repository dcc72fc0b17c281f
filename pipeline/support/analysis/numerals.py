"""Parse the value of digits and number words in several languages: "1,200", "2.5 million", "two hundred and five"."""
# ruff: noqa: PLR2004 - the numbers that words mean

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pipeline.support.analysis.tokenizer import Tokens, load_table
from storage.language.lazy_pattern import lazy_compile

Values = tuple[float, ...]  # the possible values of a number, the likeliest first

_ROMAN = lazy_compile(r"(?=[IVXLC])(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_GROUPED = lazy_compile(r"\d{1,3}(?:([.,'])\d{3})(?:\1\d{3})*")
_INDIAN = lazy_compile(r"\d{1,2}(?:,\d{2})+,\d{3}")
_DENOMINATORS = frozenset({"2", "3", "4", "5", "6", "8", "10", "16"})
_DOZENS = frozenset({"dozen", "dutzend", "douzaine", "docena"})
_VAGUE = frozenset({"millions", "milliards", "millionen", "milliarden", "millones", "cents", "vingts"})
"""Multipliers that cannot begin a number."""
_DECIMAL_MARKS = {
    ".": ("en", "zh", "ja", "ko", "he", "th", "hi", "bn", "ta"),
    ",": ("bg", "ca", "cs", "da", "de", "el", "es", "fi", "fr", "hu", "id", "it", "nb", "nl", "no", "pl", "pt", "ro",
          "ru", "sr", "sv", "tr", "uk", "vi"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Numerals:
    """One language's number words, in plain lower case."""

    cardinals: Mapping[str, int]
    ordinals: Mapping[str, int]
    fractions: Mapping[str, int]  # denominators
    hints: Mapping[str, int]  # words that imply a number: "twice", "both"
    joints: frozenset[str]
    leads: frozenset[str]  # every word at which a number may begin


@cache
def _load_numeral_data() -> dict[str, Any]:
    loaded: dict[str, Any] = load_table("numerals.json")
    return loaded


@cache
def load_numerals(language: str) -> Numerals:
    """Return a language's numerals; English ones if it has none."""
    data = _load_numeral_data()
    own = (data.get(language) if len(language) == 2 else None) or data["en"]
    leads = frozenset({*own["cardinals"], *own["ordinals"], *own["fractions"]})
    return Numerals(own["cardinals"], own["ordinals"], own["fractions"], own["hints"], frozenset(own["joints"]), leads)


def load_scales() -> Mapping[str, int]:
    """Return the words that multiply the digits before them: "million", "bn", "万"."""
    scales: Mapping[str, int] = _load_numeral_data()["scales"]
    return scales


def parse_roman(word: str) -> int | None:
    """Return the value of a Roman numeral in capitals, up to 99."""
    if not _ROMAN.fullmatch(word):
        return None
    values = [_ROMAN_VALUES[char] for char in word]
    return sum(-one if one < two else one for one, two in zip(values, [*values[1:], 0], strict=True))


def is_han_numeral(char: str) -> bool:
    return char in _load_numeral_data()["han"]


def parse_han(run: Sequence[str]) -> int:
    """Return the value of a run of Chinese numerals: by places ("一九九〇") or with units ("三百二十")."""
    values: list[int] = [_load_numeral_data()["han"][char] for char in run]
    if all(value < 10 for value in values):
        return int("".join(map(str, values)))
    total = section = digit = 0
    for value in values:
        if value >= 10_000:
            total += (section + digit or 1) * value
            section = digit = 0
        elif value >= 10:
            section += (digit or 1) * value
            digit = 0
        else:
            digit = value
    return total + section + digit


def parse_digits_at(text: Tokens, place: int, language: str) -> tuple[Values, int]:
    """Parse digits with a multiplier or fraction after them; return the possible values and where they end."""
    values, end = _parse_readings(text.low[place], language), place + 1
    while _is_digit_group(text, end, place):
        values, end = (values[0] * 1000 + int(text.low[end]),), end + 1
    one, slash, two = text.at(end), text.at(end + 1), text.at(end + 2)
    if one.isdecimal() and slash == "/" and text.glued(end + 1) and two in _DENOMINATORS:  # 3 1/2
        values, end = (values[0] + int(one) / int(two),), end + 3
    elif one == "/" and text.glued(end) and text.glued(end + 1) and slash in _DENOMINATORS:
        values, end = (values[0] / int(slash), values[0]), end + 2
    return _parse_and_a_half(text, *_apply_scale(text, values, end))


def parse_words_at(text: Tokens, place: int, known: Numerals) -> tuple[Values, int, bool]:
    """Parse "two hundred and five", "twenty-first", "a dozen"; return values, end, and whether it is ordinal.

    If there is no number word, the end is `place`.
    """
    total, current, end = 0, 0, place
    at = place
    while True:
        low = text.at(at)
        value = known.cardinals.get(low)
        ordinal = value is None and low in known.ordinals
        value = known.ordinals[low] if ordinal else value
        if value is not None and end == place and low in _VAGUE:
            break
        if value is not None and (end == place or low in _DOZENS or _fits(total, current, value)):
            total, current = _add_word(total, current, value, dozens=low in _DOZENS)
            at = end = at + 1
            if ordinal:
                return (float(total + current),), end, True
        elif end == at > place and _joins(text, at, known, large=bool(total) or current >= 100):
            at += 1
        else:
            break
    values, end = _parse_and_a_half(text, (float(total + current),), end) if end > place else ((), end)
    return values, end, False


def _parse_and_a_half(text: Tokens, values: Values, end: int) -> tuple[Values, int]:
    if text.low[end : end + 3] == ("and", "a", "half"):
        return tuple(value + 0.5 for value in values), end + 3
    return values, end


def _parse_readings(digits: str, language: str) -> Values:
    """Return the possible values of digits with separators, the likeliest first."""
    if digits.isdecimal():
        return (float(digits),)
    if ":" in digits:  # hours, and a share for the minutes that is too small to equal another number
        hours, *rest = (float(_only_digits(part) or 0) for part in digits.split(":"))
        return (hours + sum(part / 6000.0**place for place, part in enumerate(rest, start=1)),)
    whole, _, part = digits.rpartition(next(char for char in reversed(digits) if not char.isdecimal()))
    grouped, decimal = float(_only_digits(digits)), float(f"{_only_digits(whole)}.{_only_digits(part)}")
    mark = _GROUPED.fullmatch(digits)
    if not mark:
        return (grouped if _INDIAN.fullmatch(digits) else decimal,)
    if mark[1] == "'" or digits.count(mark[1]) > 1:
        return (grouped,)
    return (decimal, grouped) if language in _DECIMAL_MARKS[mark[1]] else (grouped, decimal)


def _only_digits(text: str) -> str:
    return "".join(filter(str.isdecimal, text))


def _is_digit_group(text: Tokens, at: int, first: int) -> bool:
    """Return whether three digits after a space continue the number before: 10 000."""
    low = text.at(at)
    if len(low) != 3 or not low.isdecimal() or text.glued(at) or len(text.low[first]) > 3:
        return False
    return text.low[first].isdecimal() and text.starts[at] == text.starts[at - 1] + len(text.low[at - 1]) + 1


def _apply_scale(text: Tokens, values: Values, end: int) -> tuple[Values, int]:
    """Multiply by the words that follow, such as "million", "k", "万"; rounded: 1.1 million is 1100000."""
    while True:
        at = end + (text.at(end) == "-")
        low, touches = text.at(at), text.glued(at)
        if low in {"m", "b", "t"} and touches and at == end:
            scaled = tuple(float(f"{value * {'m': 1e6, 'b': 1e9, 't': 1e12}[low]:.12g}") for value in values)
            return ((*values, *scaled), end) if low == "m" else (scaled, end + 1)
        if low not in load_scales() or (low == "k" and not touches):
            return values, end
        values, end = (float(f"{values[0] * load_scales()[low]:.12g}"),), at + 1


def _fits(total: int, current: int, value: int) -> bool:
    """Return whether a number word continues the number parsed so far."""
    if value >= 1000:
        return bool(current) or (total > 0 and value < total)
    if value == 100:
        return 0 < current < 100
    if (current, value) == (4, 20):
        return True
    room = current % 100
    return room == 0 or (room % 10 == 0 and room >= 20 and value < (20 if room in {60, 80} else 10))


def _add_word(total: int, current: int, value: int, *, dozens: bool) -> tuple[int, int]:
    if value >= 1000 and not dozens:
        return (total + (current or 1) * value, 0) if current or not total else (total * value, 0)
    if dozens or value == 100 or (current, value) == (4, 20):
        return total, (current or 1) * value
    return total, current + value


def _joins(text: Tokens, at: int, known: Numerals, *, large: bool) -> bool:
    """Return whether a word only joins two parts of a number: "twenty-five", "two hundred and five"."""
    low, following = text.at(at), text.at(at + 1)
    if low not in known.joints or (low == "and" and not large):
        return False
    return following in known.cardinals or following in known.ordinals
