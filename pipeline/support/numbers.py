"""The numbers that a text says, in digits or words, each with its readings, its unit and the bound it gives.

"1.200" is 1200 or 1.2, depending on who wrote it, so a number has readings; two numbers are the same if they share
one. What belongs to a date (`dates`) is skipped.
"""
# ruff: noqa: PLR2004 - the numbers that words stand for

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from pipeline.support.dates import Date
from pipeline.support.numerals import Numerals, han, is_han_numeral, numerals, roman, scales
from pipeline.support.tokens import Tokens
from pipeline.support.units import Unit, units_at

_GROUPED = re.compile(r"\d{1,3}(?:([.,'])\d{3})(?:\1\d{3})*")
_INDIAN = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}")
_ORDINAL_MARKS = frozenset({"st", "nd", "rd", "th", "er", "ere", "eme", "e", "°", "ª"})
_GROUP = 3
_DECIMAL_POINT = frozenset({"en", "zh", "ja", "ko", "he", "th", "hi", "bn", "ta"})
_DECIMAL_COMMA = frozenset({
    "bg", "ca", "cs", "da", "de", "el", "es", "fi", "fr", "hu", "id", "it", "nb", "nl", "no", "pl", "pt", "ro", "ru",
    "sr", "sv", "tr", "uk", "vi",
})  # fmt: skip
_RANGE = frozenset({"-", "to", "or", "and", "bis", "x", "by", "a", "y", "et"})
_HALF = ("and", "a", "half")


class Bound(StrEnum):
    """What a text says of a number: exactly it, about it, or an end of the range in which it lies."""

    EXACTLY = "exactly"
    ABOUT = "about"
    NEARLY = "nearly"
    OVER = "over"
    UNDER = "under"


_BOUNDS = {
    Bound.OVER: (
        "more than", "over", "above", "at least", "no fewer than", "no less than", "not less than", "upwards of",
        "upward of", "exceeding", "exceeds", "exceeded", "in excess of", "greater than", "larger than", "higher than",
        "longer than", "older than", "minimum of", "just over", "well over", "mehr als", "uber", "mindestens",
        "plus de", "au moins", "mas de", "al menos", "better than", "bigger than", "taller than", ">", "≥",
    ),
    Bound.UNDER: (
        "less than", "fewer than", "under", "below", "at most", "up to", "no more than", "not more than",
        "maximum of", "as many as", "as much as", "lower than", "smaller than", "younger than", "shorter than",
        "weniger als", "unter", "hochstens", "moins de", "au plus", "menos de", "como maximo", "within", "<", "≤",
    ),
    Bound.NEARLY: ("nearly", "almost", "just under", "close to", "fast", "presque", "casi", "approaching", "not quite"),
    Bound.ABOUT: (
        "about", "around", "approximately", "roughly", "some", "circa", "c", "ca", "estimated", "an estimated", "~",
        "≈", "average of", "ungefahr", "rund", "etwa", "environ", "unos", "unas", "alrededor de", "approx",
    ),
}  # fmt: skip
"""The words before a number."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is said, its tokens, and what it may mean. `units` are what its unit may be: mass or money."""

    said: str
    first: int
    last: int
    values: tuple[float, ...]
    ordinal: bool = False
    bound: Bound = Bound.EXACTLY
    units: tuple[Unit, ...] = ()


def numbers(text: Tokens, taken: Iterable[Date] = (), language: str = "en") -> tuple[Number, ...]:
    """Return the numbers of a text in order, "one" among them, without those of its dates."""
    skipped = {place for date in taken for place in range(date.first, date.last)}
    known = numerals(language)
    found: list[Number] = []
    beyond = 0
    for place, low in enumerate(text.low):
        if place < beyond or place in skipped:
            continue
        number = _read(text, place, low, known, language)
        if number:
            found.append(_with_unit(text, number))
            beyond = found[-1].last
    return tuple(_with_shared_unit(text, number, found[at + 1 : at + 2]) for at, number in enumerate(found))


def _read(text: Tokens, place: int, low: str, known: Numerals, language: str) -> Number | None:
    """Read the number that begins at a token, if there is one."""
    if low[0].isdecimal():
        return _digits(text, place, known, language)
    if low in known.cardinals or low in known.ordinals or low in known.fractions:
        return _worded(text, place, known)
    if is_han_numeral(low):
        end = place
        while is_han_numeral(text.at(end)):
            end += 1
        return Number(text.said(place, end), place, end, (float(han(text.low[place:end])),))
    return _roman(text, place)


def _digits(text: Tokens, place: int, known: Numerals, language: str) -> Number:
    """Read digits with what multiplies them, a fraction behind them, or an ordinal mark."""
    values, end = _readings(text.low[place], language), place + 1
    while _is_group(text, end, place):
        values, end = (values[0] * 1000 + int(text.low[end]),), end + 1
    added, end = _fraction_behind(text, end)
    if added:
        values = (values[0] + added,)
    elif text.at(end) == "/" and text.glued(end) and text.glued(end + 1) and _is_denominator(text.at(end + 1)):
        values, end = (values[0] / int(text.low[end + 1]), values[0]), end + 2
    ordinal = text.glued(end) and text.at(end) in _ORDINAL_MARKS
    if ordinal:
        return Number(text.said(place, end + 1), place, end + 1, values, ordinal=True)
    values, end = _scaled(text, values, end)
    if text.low[end : end + 3] == _HALF:
        values, end = tuple(value + 0.5 for value in values), end + 3
    number = Number(text.said(place, end), place, end, values, bound=_bound(text, place, end))
    return _as_fraction(text, number, known)


def _readings(digits: str, language: str) -> tuple[float, ...]:
    """Return what digits with separators may mean; of a time of day, hours and a small share for its minutes."""
    if digits.isdecimal():
        return (float(digits),)
    if ":" in digits:
        hours, minutes = digits.split(":")[:2]
        return (float(hours) + float(_only_digits(minutes)) / 6000,)
    whole, _, part = digits.rpartition(next(char for char in reversed(digits) if not char.isdecimal()))
    grouped, decimal = float(_only_digits(digits)), float(f"{_only_digits(whole)}.{_only_digits(part)}")
    if "." in digits and "," in digits:
        return (decimal,)
    if _INDIAN.fullmatch(digits) or digits.count(".") > 1 or digits.count(",") > 1:
        return (grouped,)
    mark = _GROUPED.fullmatch(digits)
    if not mark or mark[1] == _decimal_mark(language):
        return (decimal,)
    return (grouped,) if mark[1] == "'" or _decimal_mark(language) else (grouped, decimal)


def _only_digits(text: str) -> str:
    return "".join(filter(str.isdecimal, text))


def _decimal_mark(language: str) -> str:
    """Return what a language writes before decimals; empty where that is not known."""
    if language in _DECIMAL_POINT:
        return "."
    return "," if language in _DECIMAL_COMMA else ""


def _is_group(text: Tokens, at: int, first: int) -> bool:
    """Whether three digits behind a space belong to the number before: 10 000."""
    low = text.at(at)
    if len(low) != _GROUP or not low.isdecimal() or text.glued(at) or len(text.low[first]) > _GROUP:
        return False
    return text.low[first].isdecimal() and text.starts[at] == text.starts[at - 1] + len(text.low[at - 1]) + 1


def _fraction_behind(text: Tokens, at: int) -> tuple[float, int]:
    """Read the 1/2 of 3 1/2."""
    if text.at(at).isdecimal() and text.at(at + 1) == "/" and text.glued(at + 1) and _is_denominator(text.at(at + 2)):
        return int(text.low[at]) / int(text.low[at + 2]), at + 3
    return 0.0, at


def _is_denominator(low: str) -> bool:
    return low in {"2", "3", "4", "5", "6", "8", "10", "16"}


def _scaled(text: Tokens, values: tuple[float, ...], end: int) -> tuple[tuple[float, ...], int]:
    """Multiply by what follows: "million", "k", "万"."""
    while True:
        at = end + (text.at(end) == "-")
        low = text.at(at)
        if low == "m" and text.glued(at) and at == end:
            return (*values, *(_rounded(value * 1_000_000) for value in values)), end
        if low in {"b", "t"} and text.glued(at) and at == end:
            return tuple(_rounded(value * (1e9 if low == "b" else 1e12)) for value in values), end + 1
        if low not in scales() or (low == "k" and not text.glued(at)):
            return values, end
        values, end = tuple(_rounded(value * scales()[low]) for value in values), at + 1


def _rounded(value: float) -> float:
    """Drop what binary fractions add: 1.1 million is 1100000."""
    return float(f"{value:.12g}")


def _worded(text: Tokens, place: int, known: Numerals) -> Number | None:
    """Read "two hundred and five", "twenty-first", "a dozen", "half"."""
    total, current, end, ordinal = 0, 0, place, False
    at = place
    while not ordinal:
        low = text.at(at)
        value = known.cardinals.get(low)
        if value is None and low in known.ordinals:
            value, ordinal = known.ordinals[low], True
        if value is None or not _fits(total, current, value, begun=end > place):
            ordinal = False
            if end == place or at > end or not _joins(text, at, known, large=bool(total) or current >= 100):
                break
            at += 1
            continue
        total, current = _added(total, current, value)
        at = end = at + 1
    if end == place:
        return _half(text, place, known)
    values = (float(total + current),)
    if text.low[end : end + 3] == _HALF:
        values, end = (values[0] + 0.5,), end + 3
    number = Number(text.said(place, end), place, end, values, ordinal=ordinal, bound=_bound(text, place, end))
    return _as_fraction(text, number, known)


def _fits(total: int, current: int, value: int, *, begun: bool) -> bool:
    """Whether a numeral's word goes on with the number so far."""
    if not begun:
        return True
    if value >= 1000 or value == 12 == current:
        return bool(current) or (total > 0 and value < total)
    if value == 100:
        return 0 < current < 100
    if (current, value) == (4, 20):
        return True
    room = current % 100
    return room == 0 or (room % 10 == 0 and room >= 20 and value < (20 if room in {60, 80} else 10))


def _added(total: int, current: int, value: int) -> tuple[int, int]:
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


def _half(text: Tokens, place: int, known: Numerals) -> Number | None:
    """Read "half" where it is no part of another word."""
    if known.fractions.get(text.low[place]) != 2 or text.at(place + 1) == "-":
        return None
    many = known.cardinals.get(text.at(place + 2), 0) if text.at(place + 1) == "a" else 0
    last = place + 3 if many else place + 1
    return Number(text.said(place, last), place, last, (0.5 * (many or 1),))


def _as_fraction(text: Tokens, number: Number, known: Numerals) -> Number:
    """Read on: "two thirds", "three-quarters"; "a third of" is a fraction, too."""
    at = number.last + (text.at(number.last) == "-")
    parts = known.fractions.get(text.at(at), 0)
    one = number.values == (1.0,)
    if parts and not number.ordinal and (one or text.low[at].endswith("s")):
        return replace(
            number, said=text.said(number.first, at + 1), last=at + 1, values=tuple(v / parts for v in number.values)
        )
    word = text.low[number.last - 1]
    if number.ordinal and word in known.fractions and text.at(number.last) == "of" and text.at(number.first - 1) == "a":
        return replace(number, values=(1 / known.fractions[word],), ordinal=False)
    return number


def _roman(text: Tokens, place: int) -> Number | None:
    """Read the number of a king, a pope or a war: a Roman numeral behind a capitalised word."""
    word, before = text.words[place], text.words[place - 1] if place else ""
    if not word.isupper() or not (len(word) > 1 or word in "IVX") or not before[:1].isupper() or len(before) == 1:
        return None
    value = roman(word)
    return Number(word, place, place + 1, (float(value),), ordinal=True) if value else None


def _bound(text: Tokens, first: int, last: int) -> Bound:
    """Return what the words before a number, or a plus behind it, make of it."""
    if text.at(last) == "+" and text.glued(last):
        return Bound.OVER
    while first and (text.at(first - 1) in {"$", "€", "£", "¥", "us", "the"} or text.at(first - 1) == "."):
        first -= 1
    for size in (3, 2, 1):
        bound = _by_words().get(" ".join(text.low[max(0, first - size) : first]))
        if bound:
            return bound
    return Bound.EXACTLY


@cache
def _by_words() -> dict[str, Bound]:
    return {words: bound for bound, listed in _BOUNDS.items() for words in listed}


def _with_unit(text: Tokens, number: Number) -> Number:
    if number.ordinal:
        return number
    units, last = units_at(text, number.first, number.last)
    return replace(number, units=units, said=text.said(number.first, last), last=last) if units else number


def _with_shared_unit(text: Tokens, number: Number, following: Sequence[Number]) -> Number:
    """Give the first number of a range the unit of the second: "5-6 km"."""
    if number.units or number.ordinal or not following or not following[0].units:
        return number
    joined = following[0].first == number.last + 1 and text.at(number.last) in _RANGE
    return replace(number, units=following[0].units) if joined else number
