"""Find the numbers of a text with their units, bounds and times of day.

"1.200" is 1200 or 1.2, depending on who wrote it, so a number has several values; two numbers are the same if they
share one. What belongs to a date (`date_parser`) is skipped.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import resources

from pipeline.support.analysis.numerals import (
    Numerals,
    is_han_numeral,
    load_numerals,
    parse_digits_at,
    parse_han,
    parse_roman,
    parse_words_at,
)
from pipeline.support.analysis.tokenizer import Tokens, TokenSpan, is_word
from storage.language.lazy_pattern import lazy_compile

_LONGEST_UNIT = 3
_FEWEST_LETTERS = 4
"""Tokens of a unit: "light", "-", "year"."""
_TOLERANCE = 0.02
"""How far apart, as a share, two quantities may be that are the same in different units."""
_KELVIN, _FAHRENHEIT_ZERO, _FAHRENHEIT_STEP = 273.15, 32.0, 5 / 9


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: what it measures, its name, and how many of the base unit it is (0 where nothing converts it)."""

    measures: str
    name: str
    factor: float


def find_units_at(text: Tokens, first: int, last: int) -> tuple[tuple[Unit, ...], int]:
    """Return what the unit of the number at tokens `first` to `last` may be, and where number and unit end."""
    if first and text.at(first - 1) in _load_currency_signs():
        country = text.at(first - 2) + " " if text.glued(first - 1) else ""
        return _find_units_named(country + text.low[first - 1]) or _find_units_named(text.low[first - 1]), last
    at = last + (text.at(last) == "-")
    for size in range(_LONGEST_UNIT, 0, -1):
        found = _find_units_named(" ".join(text.low[at : at + size])) if at + size <= len(text) else ()
        if found:
            return found, at + size
    return (), last


def is_unit(word: str) -> bool:
    """Whether a word in plain lower case may be a unit."""
    return bool(_find_units_named(word))


def is_same_unit(one: tuple[Unit, ...], other: tuple[Unit, ...]) -> bool:
    """Whether two quantities may be in the same unit."""
    return bool({unit.name for unit in one} & {unit.name for unit in other})


def is_same_dimension(one: tuple[Unit, ...], other: tuple[Unit, ...]) -> bool:
    """Whether two quantities may measure the same thing."""
    return bool({unit.measures for unit in one} & {unit.measures for unit in other})


def is_equal_amount(value: float, units: tuple[Unit, ...], other: float, others: tuple[Unit, ...]) -> bool:
    """Whether two quantities are the same within 2%."""
    return any(_is_close_amount(value, unit, other, second) for unit in units for second in others)


def convert_amount(value: float, units: tuple[Unit, ...], wanted: tuple[Unit, ...]) -> tuple[float, ...]:
    """Return what a value may be in other units of the same kind."""
    return tuple(
        value * unit.factor / other.factor
        for unit in units
        for other in wanted
        if unit.measures == other.measures != "temperature" and unit.factor and other.factor
    )


def _is_close_amount(value: float, unit: Unit, other: float, second: Unit) -> bool:
    if unit.measures != second.measures:
        return False
    if unit.name == second.name:
        return value == other
    one, two = _to_base_unit(value, unit), _to_base_unit(other, second)
    return one is not None and two is not None and abs(one - two) <= _TOLERANCE * max(abs(one), abs(two))


def _to_base_unit(value: float, unit: Unit) -> float | None:
    if unit.measures == "temperature":
        return {
            "c": value + _KELVIN, "k": value, "f": (value - _FAHRENHEIT_ZERO) * _FAHRENHEIT_STEP + _KELVIN
        }[unit.name]  # fmt: skip
    return value * unit.factor if unit.factor else None


def _find_units_named(name: str) -> tuple[Unit, ...]:
    known = _load_units()
    return known.get(name) or (
        known.get(name[:-1], ()) if name.endswith(("s", "n", "e")) and len(name) >= _FEWEST_LETTERS else ()
    )


@cache
def _load_currency_signs() -> frozenset[str]:
    """Currencies that are written before the number."""
    return frozenset(name for name, units in _load_units().items() if units[0].measures == "money" and " " not in name)


@cache
def _load_units() -> Mapping[str, tuple[Unit, ...]]:
    data = json.loads(resources.files(__package__).joinpath("units.json").read_text(encoding="utf-8"))
    found: dict[str, tuple[Unit, ...]] = {}
    for measures, units in data.items():
        for name, (factor, spellings) in units.items():
            for spelling in spellings.split():
                key = spelling.replace("_", " ")
                found[key] = (*found.get(key, ()), Unit(measures, name, factor))
    return found


CLOCK_UNITS = (Unit("time of day", "clock", 0.0),)
"""What stands for a unit of a time of day."""
_NOON, _DAY, _HOUR = 12, 24, 60
_TIME = lazy_compile(r"(\d{1,2})([:.])([0-5]\d)")
_APART = 0.00001
"""What is added to the hours, so that 12:00 is no 12."""
_NAMED = {"noon": 12, "midday": 12, "midnight": 0}
_PARTS = {"half": 30, "quarter": 15}
_MORNING, _EVENING = frozenset({"am", "a.m.", "a.m"}), frozenset({"pm", "p.m.", "p.m"})
_AFTER_HOUR = frozenset({"o'clock", "uhr"})
_CLOCK_LEADS = frozenset(
    {"at", "from", "until", "till", "by", "before", "after", "to", "um", "ab", "bis", "and", "between"}
)
_FOLLOWS = frozenset({"on", "and", "to", "or", "until", "till", "in", "every", "each"})


@dataclass(frozen=True, slots=True)
class ClockTime:
    """A time of day: its value, the other halves of the day that it may mean, and where it ends."""

    value: float
    halves: tuple[float, ...]
    last: int


def parse_clock_at(text: Tokens, place: int, cardinals: Mapping[str, int], language: str) -> ClockTime | None:
    """Read the time of day that begins at a token, if there is one."""
    low = text.low[place]
    if low in _NAMED:
        return ClockTime(_encode_time(_NAMED[low], 0), (), place + 1) if text.words[place].islower() else None
    if low in _PARTS:
        return _parse_past_hour(text, place, cardinals)
    written = _TIME.fullmatch(low)
    hour = int(written[1]) if written else int(low) if low.isdecimal() else cardinals.get(low, _DAY + 1)
    if hour > _DAY:
        return None
    marked = _parse_marked_hour(text, place + 1, hour, int(written[3]) if written else 0, language)
    if marked or not written or written[2] != ":":
        return marked
    read = _build_unmarked_clock(hour, int(written[3]), place + 1)
    return ClockTime(read.value, (), read.last) if low[0] == "0" else read


def _parse_marked_hour(text: Tokens, at: int, hour: int, minute: int, language: str) -> ClockTime | None:
    """Read what stands behind an hour, if it makes it one of the day."""
    behind = text.at(at)
    if behind in _AFTER_HOUR:
        return _build_unmarked_clock(hour, minute, at + 1)
    if behind not in _MORNING | _EVENING or hour > _NOON or (behind == "am" and language == "de"):
        return None
    return ClockTime(_encode_time(hour % _NOON + _NOON * (behind in _EVENING), minute), (), at + 1)


def infer_hours(text: Tokens, first: int, last: int, value: float) -> tuple[float, ...]:
    """Return the time of day that a bare number may mean where it stands: "open from 8 to 12"."""
    behind = text.at(last)
    ends = not is_word(behind) or behind in _FOLLOWS
    return find_hours(value) if text.at(first - 1) in _CLOCK_LEADS and ends else ()


def find_hours(value: float) -> tuple[float, ...]:
    """Return a number of hours as a time of day; nothing where the day has no such hour."""
    return (_encode_time(int(value), 0),) if value <= _DAY and value == int(value) else ()


def add_half_day(value: float) -> float:
    """Return the time of day twelve hours later."""
    return round((value + _NOON) % _DAY, 6)


@cache
def load_clock_words() -> frozenset[str]:
    """Return the words by which a time of day begins."""
    return frozenset(_NAMED) | frozenset(_PARTS)


def _parse_past_hour(text: Tokens, place: int, cardinals: Mapping[str, int]) -> ClockTime | None:
    """Read "half past seven", "quarter to two"."""
    low, side, hour = text.low[place], text.at(place + 1), text.at(place + 2)
    number = int(hour) if hour.isdecimal() else cardinals.get(hour, _DAY)
    if number > _NOON or side not in {"past", "to"} or (side == "to" and low == "half"):
        return None
    minutes = _PARTS[low] if side == "past" else _HOUR - _PARTS[low]
    hours = (number - (side == "to")) % _DAY
    return _parse_marked_hour(text, place + 3, hours, minutes, "en") or _build_unmarked_clock(hours, minutes, place + 3)


def _build_unmarked_clock(hour: int, minute: int, last: int) -> ClockTime:
    """Return a time that may be one of the evening where the hour allows it."""
    value = _encode_time(hour, minute)
    return ClockTime(value, (add_half_day(value),) if 0 < hour <= _NOON else (), last)


def _encode_time(hour: int, minute: int) -> float:
    """Return hours of the day and a share for the minutes so small that it is no other number."""
    return round(hour % _DAY + minute / 6000 + _APART, 6)


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


def find_numbers(text: Tokens, taken: Iterable[TokenSpan] = (), language: str = "en") -> tuple[Number, ...]:
    """Return the numbers of a text in order, "one" among them, without those of its dates."""
    skipped = {place for date in taken for place in range(date.first, date.last)}
    known = load_numerals(language)
    leads, words = known.leads | load_clock_words(), text.words
    places = [
        place
        for place, low in enumerate(text.low)
        if low in leads or low[0].isdecimal() or words[place].isupper() or not low.isascii()
    ]
    found: list[Number] = []
    beyond = 0
    for place in places:
        number = None if place < beyond or place in skipped else _parse_number_at(text, place, known, language)
        if number:
            found.append(_add_unit(text, number))
            beyond = found[-1].last
    return tuple(_add_shared_unit(text, number, found[at + 1 : at + 2]) for at, number in enumerate(found))


def _parse_number_at(text: Tokens, place: int, known: Numerals, language: str) -> Number | None:
    """Read the number that begins at a token, if there is one."""
    low = text.low[place]
    clock = parse_clock_at(text, place, known.cardinals, language)
    if clock:
        said, bound = text.said(place, clock.last), _find_bound(text, place, clock.last)
        return Number(said, place, clock.last, (clock.value,), bound=bound, units=CLOCK_UNITS, halves=clock.halves)
    if low[0].isdecimal():
        return _parse_digit_number(text, place, known, language)
    if low in known.cardinals or low in known.ordinals or low in known.fractions:
        return _parse_word_number(text, place, known)
    if is_han_numeral(low):
        end = place
        while is_han_numeral(text.at(end)):
            end += 1
        return Number(text.said(place, end), place, end, (float(parse_han(text.low[place:end])),))
    return _parse_roman_number(text, place)


def _parse_digit_number(text: Tokens, place: int, known: Numerals, language: str) -> Number:
    values, end = parse_digits_at(text, place, language)
    if end == place + 1 and text.glued(end) and text.at(end) in _ORDINAL_MARKS:
        return Number(text.said(place, end + 1), place, end + 1, values, ordinal=True)
    number = Number(text.said(place, end), place, end, values, bound=_find_bound(text, place, end))
    return _apply_fraction(text, number, known)


def _parse_word_number(text: Tokens, place: int, known: Numerals) -> Number | None:
    values, end, ordinal = parse_words_at(text, place, known)
    if end == place:
        return _parse_half(text, place, known)
    number = Number(text.said(place, end), place, end, values, ordinal=ordinal, bound=_find_bound(text, place, end))
    return _apply_fraction(text, number, known)


def _parse_half(text: Tokens, place: int, known: Numerals) -> Number | None:
    """Read "half" where it is no part of another word."""
    if known.fractions.get(text.low[place]) != 2 or text.at(place + 1) == "-":
        return None
    many = known.cardinals.get(text.at(place + 2), 0) if text.at(place + 1) == "a" else 0
    last = place + 3 if many else place + 1
    return Number(text.said(place, last), place, last, (0.5 * (many or 1),))


def _apply_fraction(text: Tokens, number: Number, known: Numerals) -> Number:
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


def _parse_roman_number(text: Tokens, place: int) -> Number | None:
    """Read the number of a king, a pope or a war: a Roman numeral behind a capitalised word."""
    word, before = text.words[place], text.words[place - 1] if place else ""
    if not word.isupper() or not (len(word) > 1 or word in "IVX") or not before[:1].isupper() or len(before) == 1:
        return None
    value = parse_roman(word)
    return Number(word, place, place + 1, (float(value),), ordinal=True) if value else None


def _find_bound(text: Tokens, first: int, last: int) -> Bound:
    """Return what the words before a number, or a plus behind it, make of it."""
    if text.at(last) == "+" and text.glued(last):
        return Bound.OVER
    while first and (text.at(first - 1) in {"$", "€", "£", "¥", "us", "the"} or text.at(first - 1) == "."):
        first -= 1
    for size in (3, 2, 1):
        bound = _load_bounds().get(" ".join(text.low[max(0, first - size) : first]))
        if bound:
            return bound
    return Bound.EXACTLY


@cache
def _load_bounds() -> dict[str, Bound]:
    return {words: bound for bound, listed in _BOUNDS.items() for words in listed}


def _add_unit(text: Tokens, number: Number) -> Number:
    if number.ordinal or number.units:
        return number
    units, last = find_units_at(text, number.first, number.last)
    if units:
        return replace(number, units=units, said=text.said(number.first, last), last=last)
    meant = infer_hours(text, number.first, number.last, number.values[0])
    return replace(number, values=(*number.values, *meant))


def _add_shared_unit(text: Tokens, number: Number, following: Sequence[Number]) -> Number:
    """Give the first number of a range the unit of the second: "5-6 km"."""
    if number.units or number.ordinal or not following or not following[0].units:
        return number
    joined = following[0].first == number.last + 1 and text.at(number.last) in _RANGE
    if joined and following[0].units == CLOCK_UNITS:
        meant = find_hours(number.values[0])
        return replace(number, values=(*number.values, *meant, *map(add_half_day, meant)))
    return replace(number, units=following[0].units) if joined else number
