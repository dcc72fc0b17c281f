"""Parse the value of digits and of number words in several languages: "1,200", "2.5 million", "two hundred and five"."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from pipeline.support.analysis.tokenizer import Tokens
from storage.language.lazy_pattern import lazy_compile

_ROMAN = lazy_compile(r"(?=[IVXLC])(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_TEN_THOUSAND = 10_000


@dataclass(frozen=True, slots=True)
class Numerals:
    """One language's words for numbers, in plain lower case."""

    cardinals: Mapping[str, int]
    ordinals: Mapping[str, int]
    fractions: Mapping[str, int]
    """Denominators."""
    hints: Mapping[str, int]
    """Words that say a number without being one: "twice", "both"."""
    joints: frozenset[str]
    leads: frozenset[str]
    """Every word at which a number may be read."""


@cache
def load_numerals(language: str) -> Numerals:
    """Return a language's numerals; English ones where it has none."""
    data = _load_numeral_data()
    own = data.get(language) if len(language) == len("en") else None
    own = own or data["en"]
    return Numerals(
        cardinals=own["cardinals"],
        ordinals=own["ordinals"],
        fractions=own["fractions"],
        hints=own["hints"],
        joints=frozenset(own["joints"]),
        leads=frozenset({*own["cardinals"], *own["ordinals"], *own["fractions"]}),
    )


@cache
def load_scales() -> Mapping[str, int]:
    """Words that multiply the digits before them: "million", "bn", "万"."""
    return MappingProxyType(_load_numeral_data()["scales"])


def parse_roman(word: str) -> int | None:
    """Return the value of a Roman numeral in capitals, up to 99."""
    if not _ROMAN.fullmatch(word):
        return None
    values = [_ROMAN_VALUES[char] for char in word]
    return sum(-one if one < two else one for one, two in zip(values, [*values[1:], 0], strict=True))


def is_han_numeral(char: str) -> bool:
    """Whether a character is a Chinese numeral."""
    return char in _load_numeral_data()["han"]


def parse_han(run: Sequence[str]) -> int:
    """Return the value of a run of Chinese numerals: by places ("一九九〇") or with units ("三百二十")."""
    values: list[int] = [_load_numeral_data()["han"][char] for char in run]
    if all(value < len("0123456789") for value in values):
        return int("".join(map(str, values)))
    total = section = digit = 0
    for value in values:
        if value >= _TEN_THOUSAND:
            total += (section + digit or 1) * value
            section = digit = 0
        elif value >= len("0123456789"):
            section += (digit or 1) * value
            digit = 0
        else:
            digit = value
    return total + section + digit


@cache
def _load_numeral_data() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(
        resources.files(__package__).joinpath("numerals.json").read_text(encoding="utf-8")
    )
    return loaded


Values = tuple[float, ...]
"""What a number may mean, the likeliest first."""

_GROUPED = lazy_compile(r"\d{1,3}(?:([.,'])\d{3})(?:\1\d{3})*")
_INDIAN = lazy_compile(r"\d{1,2}(?:,\d{2})+,\d{3}")
_GROUP = 3
_DOZENS = frozenset({"dozen", "dutzend", "douzaine", "docena"})
_VAGUE = frozenset({"millions", "milliards", "millionen", "milliarden", "millones", "cents", "vingts"})
"""They multiply, and begin no number."""
_HALF = ("and", "a", "half")
_DECIMAL_POINT = frozenset({"en", "zh", "ja", "ko", "he", "th", "hi", "bn", "ta"})
_DECIMAL_COMMA = frozenset({
    "bg", "ca", "cs", "da", "de", "el", "es", "fi", "fr", "hu", "id", "it", "nb", "nl", "no", "pl", "pt", "ro", "ru",
    "sr", "sv", "tr", "uk", "vi",
})  # fmt: skip


def parse_digits_at(text: Tokens, place: int, language: str) -> tuple[Values, int]:
    """Read digits with what multiplies them or a fraction behind them, and return where they end."""
    values, end = _parse_readings(text.low[place], language), place + 1
    while _is_digit_group(text, end, place):
        values, end = (values[0] * 1000 + int(text.low[end]),), end + 1
    added, end = _parse_fraction_at(text, end)
    if added:
        values = (values[0] + added,)
    elif text.at(end) == "/" and text.glued(end) and text.glued(end + 1) and _is_denominator(text.at(end + 1)):
        values, end = (values[0] / int(text.low[end + 1]), values[0]), end + 2
    return _parse_and_a_half(text, *_apply_scale(text, values, end))


def parse_words_at(text: Tokens, place: int, known: Numerals) -> tuple[Values, int, bool]:
    """Read "two hundred and five", "twenty-first", "a dozen": the value, where it ends, and whether it is ordinal.

    It ends where it begins if there is no numeral.
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
    if text.low[end : end + 3] == _HALF:
        return tuple(value + 0.5 for value in values), end + 3
    return values, end


def _parse_readings(digits: str, language: str) -> Values:
    """Return what digits with separators may mean, the likeliest first."""
    if digits.isdecimal():
        return (float(digits),)
    if ":" in digits:
        return (_parse_time(digits),)
    whole, _, part = digits.rpartition(next(char for char in reversed(digits) if not char.isdecimal()))
    grouped, decimal = float(_only_digits(digits)), float(f"{_only_digits(whole)}.{_only_digits(part)}")
    mark = _GROUPED.fullmatch(digits)
    if not mark:
        return (grouped if _INDIAN.fullmatch(digits) else decimal,)
    if mark[1] == "'" or digits.count(mark[1]) > 1:
        return (grouped,)
    return (decimal, grouped) if mark[1] == _decimal_mark(language) else (grouped, decimal)


def _parse_time(digits: str) -> float:
    """Return a time of day as hours and a share for its minutes so small that it is no other number."""
    hours, *rest = (float(_only_digits(part) or 0) for part in digits.split(":"))
    return hours + sum(part / 6000.0**place for place, part in enumerate(rest, start=1))


def _only_digits(text: str) -> str:
    return "".join(filter(str.isdecimal, text))


def _decimal_mark(language: str) -> str:
    """Return what a language writes before decimals; empty where that is not known."""
    if language in _DECIMAL_POINT:
        return "."
    return "," if language in _DECIMAL_COMMA else ""


def _is_digit_group(text: Tokens, at: int, first: int) -> bool:
    """Whether three digits behind a space belong to the number before: 10 000."""
    low = text.at(at)
    if len(low) != _GROUP or not low.isdecimal() or text.glued(at) or len(text.low[first]) > _GROUP:
        return False
    return text.low[first].isdecimal() and text.starts[at] == text.starts[at - 1] + len(text.low[at - 1]) + 1


def _parse_fraction_at(text: Tokens, at: int) -> tuple[float, int]:
    """Read the 1/2 of 3 1/2."""
    if text.at(at).isdecimal() and text.at(at + 1) == "/" and text.glued(at + 1) and _is_denominator(text.at(at + 2)):
        return int(text.low[at]) / int(text.low[at + 2]), at + 3
    return 0.0, at


def _is_denominator(low: str) -> bool:
    return low in {"2", "3", "4", "5", "6", "8", "10", "16"}


def _apply_scale(text: Tokens, values: Values, end: int) -> tuple[Values, int]:
    """Multiply by what follows: "million", "k", "万"."""
    while True:
        at = end + (text.at(end) == "-")
        low = text.at(at)
        if low == "m" and text.glued(at) and at == end:
            return (*values, *(_round_value(value * 1_000_000) for value in values)), end
        if low in {"b", "t"} and text.glued(at) and at == end:
            return tuple(_round_value(value * (1e9 if low == "b" else 1e12)) for value in values), end + 1
        if low not in load_scales() or (low == "k" and not text.glued(at)):
            return values, end
        values, end = (_round_value(values[0] * load_scales()[low]),), at + 1


def _round_value(value: float) -> float:
    """Drop what binary fractions add: 1.1 million is 1100000."""
    return float(f"{value:.12g}")


def _fits(total: int, current: int, value: int) -> bool:
    """Whether a numeral's word goes on with the number so far."""
    if value >= 1000:
        return bool(current) or (total > 0 and value < total)
    if value == 100:
        return 0 < current < 100
    if (current, value) == (4, 20):
        return True
    room = current % 100
    return room == 0 or (room % 10 == 0 and room >= 20 and value < (20 if room in {60, 80} else 10))


def _add_word(total: int, current: int, value: int, *, dozens: bool) -> tuple[int, int]:
    if dozens:
        return total, (current or 1) * value
    if value >= 1000:
        return (total + (current or 1) * value, 0) if current or not total else (total * value, 0)
    if value == 100 or (current, value) == (4, 20):
        return total, (current or 1) * value
    return total, current + value


def _joins(text: Tokens, at: int, known: Numerals, *, large: bool) -> bool:
    """Whether a word only joins two parts of a number: "twenty-five", "two hundred and five"."""
    low = text.at(at)
    if low not in known.joints or (low == "and" and not large):
        return False
    following = text.at(at + 1)
    return following in known.cardinals or following in known.ordinals
