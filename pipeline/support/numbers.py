"""The numbers that a text says, in digits or words, each with its readings, its unit and the bound it gives.

"1.200" is 1200 or 1.2, depending on who wrote it, so a number has readings; two numbers are the same if they share
one. What belongs to a date (`dates`) is skipped.
"""
# ruff: noqa: PLR2004 - the numbers that words stand for

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from pipeline.support.calendar import Date
from pipeline.support.clocks import CLOCK, clock_at, clock_words, full_hour, half_later, hour_meant
from pipeline.support.counting import digits_at, words_at
from pipeline.support.numerals import Numerals, han, is_han_numeral, numerals, roman
from pipeline.support.tokens import Tokens
from pipeline.support.units import Unit, units_at

_ORDINAL_MARKS = frozenset({"st", "nd", "rd", "th", "er", "ere", "eme", "e", "°", "ª"})
_RANGE = frozenset({"-", "to", "or", "and", "bis", "x", "by", "a", "y", "et"})


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
    """A number as it is said, its tokens, and what it may mean. `units` are what its unit may be: mass or money.

    `halves` is what a time of day may mean, too, if the passages tell the half of the day: 9:15 is 9:15 pm there.
    """

    said: str
    first: int
    last: int
    values: tuple[float, ...]
    ordinal: bool = False
    bound: Bound = Bound.EXACTLY
    units: tuple[Unit, ...] = ()
    halves: tuple[float, ...] = ()


def numbers(text: Tokens, taken: Iterable[Date] = (), language: str = "en") -> tuple[Number, ...]:
    """Return the numbers of a text in order, "one" among them, without those of its dates."""
    skipped = {place for date in taken for place in range(date.first, date.last)}
    known = numerals(language)
    leads, words = known.leads | clock_words(), text.words
    places = [
        place
        for place, low in enumerate(text.low)
        if low in leads or low[0].isdecimal() or words[place].isupper() or not low.isascii()
    ]
    found: list[Number] = []
    beyond = 0
    for place in places:
        number = None if place < beyond or place in skipped else _read(text, place, known, language)
        if number:
            found.append(_with_unit(text, number))
            beyond = found[-1].last
    return tuple(_with_shared_unit(text, number, found[at + 1 : at + 2]) for at, number in enumerate(found))


def _read(text: Tokens, place: int, known: Numerals, language: str) -> Number | None:
    """Read the number that begins at a token, if there is one."""
    low = text.low[place]
    clock = clock_at(text, place, known.cardinals, language)
    if clock:
        said, bound = text.said(place, clock.last), _bound(text, place, clock.last)
        return Number(said, place, clock.last, (clock.value,), bound=bound, units=CLOCK, halves=clock.halves)
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
    values, end = digits_at(text, place, language)
    if end == place + 1 and text.glued(end) and text.at(end) in _ORDINAL_MARKS:
        return Number(text.said(place, end + 1), place, end + 1, values, ordinal=True)
    number = Number(text.said(place, end), place, end, values, bound=_bound(text, place, end))
    return _as_fraction(text, number, known)


def _worded(text: Tokens, place: int, known: Numerals) -> Number | None:
    values, end, ordinal = words_at(text, place, known)
    if end == place:
        return _half(text, place, known)
    number = Number(text.said(place, end), place, end, values, ordinal=ordinal, bound=_bound(text, place, end))
    return _as_fraction(text, number, known)


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
    if number.ordinal or number.units:
        return number
    units, last = units_at(text, number.first, number.last)
    if units:
        return replace(number, units=units, said=text.said(number.first, last), last=last)
    meant = hour_meant(text, number.first, number.last, number.values[0])
    return replace(number, values=(*number.values, *meant))


def _with_shared_unit(text: Tokens, number: Number, following: Sequence[Number]) -> Number:
    """Give the first number of a range the unit of the second: "5-6 km"."""
    if number.units or number.ordinal or not following or not following[0].units:
        return number
    joined = following[0].first == number.last + 1 and text.at(number.last) in _RANGE
    if joined and following[0].units == CLOCK:
        meant = full_hour(number.values[0])
        return replace(number, values=(*number.values, *meant, *map(half_later, meant)))
    return replace(number, units=following[0].units) if joined else number
