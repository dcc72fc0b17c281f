"""Find the numbers of a text with their units, bounds and times of day.

"1.200" is 1200 or 1.2, depending on the writer, so a number has several values; two numbers are the same if they share
one. Tokens of dates (`date_parser`) are skipped.
"""
# ruff: noqa: PLR2004 - the numbers that words mean

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import product
from typing import NamedTuple

from pipeline.support.analysis.numerals import (
    Numerals,
    is_han_numeral,
    load_numerals,
    parse_digits_at,
    parse_han,
    parse_roman,
    parse_words_at,
)
from pipeline.support.analysis.tokenizer import Tokens, TokenSpan, is_word, load_table
from storage.language.lazy_pattern import lazy_compile

_LONGEST_UNIT = 3  # tokens of a unit: "light", "-", "year"
_LEAST_NAME = 4  # letters behind the digits of a name
_TOLERANCE = 0.02  # how far apart, as a share, two quantities may be that are the same in different units
_KELVIN, _FAHRENHEIT_ZERO, _FAHRENHEIT_STEP = 273.15, 32.0, 5 / 9
_ORDINAL_MARKS = frozenset({"st", "nd", "rd", "th", "er", "ere", "eme", "e", "°", "ª"})
_RANGE = frozenset({"-", "to", "or", "and", "bis", "x", "by", "a", "y", "et"})
_NOON, _DAY, _HOUR = 12, 24, 60
_TIME = lazy_compile(r"(\d{1,2})([:.])([0-5]\d)")
_APART = 0.00001  # added to the hours, so that 12:00 differs from 12
_NAMED_HOURS = {"noon": 12, "midday": 12, "midnight": 0}
_PARTS = {"half": 30, "quarter": 15}
_HALVES = {**dict.fromkeys(("am", "a.m.", "a.m"), 0), **dict.fromkeys(("pm", "p.m.", "p.m"), _NOON)}
_CLOCK_LEADS = frozenset({
    "at", "from", "until", "till", "by", "before", "after", "to", "um", "ab", "bis", "and", "between",
})  # fmt: skip
_REFERENCES = frozenset({
    "appendix", "article", "chapter", "clause", "figure", "item", "page", "paragraph", "room", "section", "step",
    "table", "version", "absatz", "abschnitt", "artikel", "kapitel", "raum", "seite", "tabelle", "zimmer",
    "chapitre", "paragraphe", "salle", "capitulo", "pagina", "parrafo", "sala", "seccion", "tabla",
})  # fmt: skip
_CLOCK_FOLLOWS = frozenset({"on", "and", "to", "or", "until", "till", "in", "every", "each"})


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: its dimension, its name, and how many base units it is (0 if it cannot be converted)."""

    measures: str
    name: str
    factor: float

    def to_base(self, value: float) -> float | None:
        if self.measures == "temperature":
            fahrenheit = (value - _FAHRENHEIT_ZERO) * _FAHRENHEIT_STEP + _KELVIN
            return {"c": value + _KELVIN, "k": value, "f": fahrenheit}[self.name]
        return value * self.factor if self.factor else None


Units = tuple[Unit, ...]  # the possible units of one number: a pound is mass or money
CLOCK_UNITS: Units = (Unit("time of day", "clock", 0.0),)


class Bound(StrEnum):
    """How a text bounds a number: exactly, roughly, or as one end of a range."""

    EXACTLY = "exactly"
    ABOUT = "about"
    NEARLY = "nearly"
    OVER = "over"
    UNDER = "under"


_BEHIND = {
    **dict.fromkeys(("more", "longer", "over", "above", "older"), Bound.OVER),
    **dict.fromkeys(("less", "fewer", "under", "below", "shorter", "younger"), Bound.UNDER),
}


@dataclass(frozen=True, slots=True)
class Number(TokenSpan):
    """A number as written, and its possible values and units.

    `halves` are more values of a time of day whose half of the day is open: 9:15 may be 9:15 pm.
    """

    values: tuple[float, ...]
    ordinal: bool = False
    bound: Bound = Bound.EXACTLY
    units: Units = ()
    halves: tuple[float, ...] = ()
    label: bool = False  # whether it only labels a place of a text or a thing: "paragraph 1.F.3", "page 4"
    named: bool = False  # whether it begins a name: "12things"
    restates: bool = False  # whether it gives the number before it in other words: "two weeks (10 days)"


def find_numbers(text: Tokens, taken: Iterable[TokenSpan] = (), language: str = "en") -> tuple[Number, ...]:
    """Return the numbers of a text in order, "one" included, without those of its dates."""
    skipped = {place for date in taken for place in date.places}
    known = load_numerals(language)
    found: list[Number] = []
    beyond = 0
    for place, low in enumerate(text.low):
        may_begin = low in known.leads or low in _NAMED_HOURS or low in _PARTS or low[0].isdecimal()
        if not may_begin and low.isascii() and not text.words[place].isupper():
            continue
        number = None if place < beyond or place in skipped else _parse_number_at(text, place, known, language)
        if number:
            number = _add_unit(text, replace(number, label=_is_label(text, number)))
            named = language != "de" and _begins_name(text, number)
            found.append(replace(number, named=named, label=number.label or named))
            beyond = found[-1].last
    shared = [_add_shared_unit(text, number, found[at + 1 : at + 2]) for at, number in enumerate(found)]
    return tuple(_mark_restating(text, number, shared[at - 1 : at]) for at, number in enumerate(shared))


def _mark_restating(text: Tokens, number: Number, before: Sequence[Number]) -> Number:
    """Give a number in brackets behind another of its dimension the bound of that one."""
    inside = bool(before) and text.at(before[0].last) == "(" and number.first == before[0].last + 1
    same = inside and is_same_dimension(before[0].units, number.units)
    return replace(number, bound=before[0].bound, restates=True) if same else number


def _begins_name(text: Tokens, number: Number) -> bool:
    """Return whether digits are glued to a longer word that is no unit."""
    word = text.at(number.last) if text.glued(number.last) and number.said.isdecimal() else ""
    return len(word) >= _LEAST_NAME and is_word(word)


def _is_label(text: Tokens, number: Number) -> bool:
    """Return whether a number follows a word such as "page", is glued to letters ("1.F.3"), or marks an item."""
    first, last = number.first, number.last
    before = first - 2 if text.at(first - 1) == "." and text.glued(first) and text.glued(first - 1) else first - 1
    behind = text.at(last) == "." and text.glued(last) and text.glued(last + 1) and is_word(text.at(last + 1))
    glued = text.glued(first) and is_word(text.at(before))
    return behind or glued or text.at(first - 1) in _REFERENCES or _is_item_mark(text, number)


def _is_item_mark(text: Tokens, number: Number) -> bool:
    """Return whether a number is the item mark at the start of a text: "2." and "2)", but not "2.5" or "2" alone."""
    first, last = number.first, number.last
    marked = first == 0 and number.said.isdecimal() and text.at(last) in {".", ")"} and text.glued(last)
    return marked and bool(text.at(last + 1)) and not text.glued(last + 1)


def _parse_number_at(text: Tokens, place: int, known: Numerals, language: str) -> Number | None:
    low = text.low[place]
    clock = _parse_clock_at(text, place, known.cardinals, language)
    if clock:
        said, bound = text.said(place, clock.last), _find_bound(text, place, clock.last)
        return Number(said, place, clock.last, (clock.value,), bound=bound, units=CLOCK_UNITS, halves=clock.halves)
    if low[0].isdecimal():
        values, end = parse_digits_at(text, place, language)
        ordinal = end == place + 1 and text.glued(end) and text.at(end) in _ORDINAL_MARKS
        if ordinal:
            return Number(text.said(place, end + 1), place, end + 1, values, ordinal=True)
    elif low in known.cardinals or low in known.ordinals or low in known.fractions:
        values, end, ordinal = parse_words_at(text, place, known)
        if end == place:
            return _parse_half(text, place, known)
    elif is_han_numeral(low):
        end = next((at for at in range(place, len(text)) if not is_han_numeral(text.low[at])), len(text))
        return Number(text.said(place, end), place, end, (float(parse_han(text.low[place:end])),))
    else:
        return _parse_roman_number(text, place)
    number = Number(text.said(place, end), place, end, values, ordinal=ordinal, bound=_find_bound(text, place, end))
    return _apply_fraction(text, number, known)


def _parse_half(text: Tokens, place: int, known: Numerals) -> Number | None:
    """Parse "half", "half a million" and "half an hour", unless it is a part of another word."""
    if known.fractions.get(text.low[place]) != 2 or text.at(place + 1) == "-":
        return None
    many = known.cardinals.get(text.at(place + 2), 0) if text.at(place + 1) == "a" else 0
    last = place + 3 if many else place + 1
    measured = text.at(last) in {"a", "an"} and is_unit(text.at(last + 1))
    units, last = find_units_at(text, place, last + 1) if measured else ((), last)
    return Number(text.said(place, last), place, last, (0.5 * (many or 1),), units=units)


def _apply_fraction(text: Tokens, number: Number, known: Numerals) -> Number:
    """Divide a number by the fraction word after it: "two thirds", "three-quarters", "a third of"."""
    at = number.last + (text.at(number.last) == "-")
    parts = known.fractions.get(text.at(at), 0)
    if parts and not number.ordinal and (number.values == (1.0,) or text.low[at].endswith("s")):
        values = tuple(value / parts for value in number.values)
        return replace(number, said=text.said(number.first, at + 1), last=at + 1, values=values)
    word = text.low[number.last - 1]
    if number.ordinal and word in known.fractions and text.at(number.last) == "of" and text.at(number.first - 1) == "a":
        return replace(number, values=(1 / known.fractions[word],), ordinal=False)
    return number


def _parse_roman_number(text: Tokens, place: int) -> Number | None:
    """Parse the number of a king, a pope or a war: a Roman numeral after a capitalised word."""
    word, before = text.words[place], text.words[place - 1] if place else ""
    if not word.isupper() or not (len(word) > 1 or word in "IVX") or not before[:1].isupper() or len(before) == 1:
        return None
    value = parse_roman(word)
    return Number(word, place, place + 1, (float(value),), ordinal=True) if value else None


def _find_bound(text: Tokens, first: int, last: int) -> Bound:
    """Return the bound that the words before a number, or a plus after it, set."""
    if text.at(last) == "+" and text.glued(last):
        return Bound.OVER
    first = _find_sign(text, first)
    while text.at(first - 1) in {"the", "a", "an", "."}:
        first -= 1
    phrases = (" ".join(text.low[max(0, first - size) : first]) for size in (3, 2, 1))
    return next((_load_bounds()[phrase] for phrase in phrases if phrase in _load_bounds()), Bound.EXACTLY)


def _find_bound_behind(text: Tokens, last: int) -> Bound | None:
    """Return the bound that the words behind a quantity set: "4 weeks or more"."""
    joined = text.at(last) in {"or", "and"}
    return _BEHIND.get(text.at(last + 1)) if joined else None


@cache
def _load_bounds() -> dict[str, Bound]:
    return {words: Bound(bound) for bound, listed in load_table("bounds.json").items() for words in listed}


def _add_unit(text: Tokens, number: Number) -> Number:
    if number.ordinal or number.units:
        return number
    units, last = find_units_at(text, number.first, number.last)
    if units:
        bound = _find_bound_behind(text, last) or number.bound
        said = text.said(_find_sign(text, number.first), last)
        return replace(number, units=units, said=said, last=last, bound=bound)
    behind = text.at(number.last)
    if text.at(number.first - 1) in _CLOCK_LEADS and (not is_word(behind) or behind in _CLOCK_FOLLOWS):
        return replace(number, values=(*number.values, *_find_hours(number.values[0])))  # "open from 8 to 12"
    return number


def _add_shared_unit(text: Tokens, number: Number, following: Sequence[Number]) -> Number:
    """Give the first number of a range the unit of the second: "5-6 km"."""
    if number.units or number.ordinal or not following or not following[0].units:
        return number
    joined = following[0].first == number.last + 1 and text.at(number.last) in _RANGE
    if joined and following[0].units == CLOCK_UNITS:
        meant = _find_hours(number.values[0])
        return replace(number, values=(*number.values, *meant, *map(_add_half_day, meant)))
    return replace(number, units=following[0].units) if joined else number


def find_units_at(text: Tokens, first: int, last: int) -> tuple[Units, int]:
    """Return the possible units of the number at tokens `first` to `last`, and where number and unit end."""
    if first and text.at(first - 1) in _load_currency_signs():
        country = text.at(first - 2) + " " if text.glued(first - 1) else ""
        return _find_units_named(country + text.low[first - 1]) or _find_units_named(text.low[first - 1]), last
    at = last + (text.at(last) == "-")
    for size in range(_LONGEST_UNIT, 0, -1):
        units = _find_units_named(" ".join(text.low[at : at + size])) if at + size <= len(text) else ()
        if units:
            return units, at + size
    return (), last


def _find_sign(text: Tokens, first: int) -> int:
    """Return where a number begins, with a currency sign before it: "$80", "C$110"."""
    sign = first - 1
    if sign < 0 or text.low[sign] not in _load_currency_signs():
        return first
    country = f"{text.at(sign - 1)} {text.low[sign]}"
    return sign - 1 if text.glued(sign) and _find_units_named(country) else sign


def is_unit(word: str) -> bool:
    return bool(_find_units_named(word))


def is_same_unit(one: Units, other: Units) -> bool:
    """Return whether two quantities may be in the same unit."""
    return bool({unit.name for unit in one} & {unit.name for unit in other})


def is_same_dimension(one: Units, other: Units) -> bool:
    """Return whether two quantities may measure the same thing."""
    return bool({unit.measures for unit in one} & {unit.measures for unit in other})


def is_equal_quantity(one: Number, other: Number) -> bool:
    """Return whether two quantities are the same within 2%, in whatever units."""
    first, second = one.values[0], other.values[0]
    for unit, kin in product(one.units, other.units):
        if unit.measures == kin.measures and unit.name == kin.name and first == second:
            return True
        if unit.measures == kin.measures and unit.name != kin.name:
            left, right = unit.to_base(first), kin.to_base(second)
            if left is not None and right is not None and abs(left - right) <= _TOLERANCE * max(abs(left), abs(right)):
                return True
    return False


def convert_amount(value: float, units: Units, wanted: Units) -> tuple[float, ...]:
    """Return the possible values of an amount in other units of the same dimension."""
    return tuple(
        value * unit.factor / other.factor
        for unit, other in product(units, wanted)
        if unit.measures == other.measures != "temperature" and unit.factor and other.factor
    )


def _find_units_named(name: str) -> Units:
    known = _load_units()
    plural = name.endswith(("s", "n", "e")) and len(name) >= 4
    return known.get(name) or (known.get(name[:-1], ()) if plural else ())


@cache
def _load_currency_signs() -> frozenset[str]:
    """Return the currency signs and words that are written before the number."""
    return frozenset(name for name, units in _load_units().items() if units[0].measures == "money" and " " not in name)


@cache
def _load_units() -> Mapping[str, Units]:
    found: dict[str, Units] = {}
    for measures, units in load_table("units.json").items():
        for name, (factor, spellings) in units.items():
            for spelling in spellings.split():
                key = spelling.replace("_", " ")
                found[key] = (*found.get(key, ()), Unit(measures, name, factor))
    return found


class _ClockTime(NamedTuple):
    """A time of day: its value, its value in the other half of the day if that is open, and where it ends."""

    value: float
    halves: tuple[float, ...]
    last: int


def _parse_clock_at(text: Tokens, place: int, cardinals: Mapping[str, int], language: str) -> _ClockTime | None:
    low = text.low[place]
    if low in _NAMED_HOURS:
        return _ClockTime(_encode_time(_NAMED_HOURS[low]), (), place + 1) if text.words[place].islower() else None
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
    return read._replace(halves=()) if low[0] == "0" else read


def _parse_marked_hour(text: Tokens, at: int, hour: int, minute: int, language: str) -> _ClockTime | None:
    """Parse the words after an hour; None if they do not make it a time of day."""
    behind = text.at(at)
    if behind in {"o'clock", "uhr"}:
        return _build_unmarked_clock(hour, minute, at + 1)
    if behind not in _HALVES or hour > _NOON or (behind == "am" and language == "de"):
        return None
    return _ClockTime(_encode_time(hour % _NOON + _HALVES[behind], minute), (), at + 1)


def _parse_past_hour(text: Tokens, place: int, cardinals: Mapping[str, int]) -> _ClockTime | None:
    """Parse "half past seven", "quarter to two"."""
    low, side, hour = text.low[place], text.at(place + 1), text.at(place + 2)
    number = int(hour) if hour.isdecimal() else cardinals.get(hour, _DAY)
    if number > _NOON or side not in {"past", "to"} or (side == "to" and low == "half"):
        return None
    minutes = _PARTS[low] if side == "past" else _HOUR - _PARTS[low]
    hours = (number - (side == "to")) % _DAY
    return _parse_marked_hour(text, place + 3, hours, minutes, "en") or _build_unmarked_clock(hours, minutes, place + 3)


def _build_unmarked_clock(hour: int, minute: int, last: int) -> _ClockTime:
    """Return a time of day that may also be in the evening if its hour allows that."""
    value = _encode_time(hour, minute)
    return _ClockTime(value, (_add_half_day(value),) if 0 < hour <= _NOON else (), last)


def _find_hours(value: float) -> tuple[float, ...]:
    """Return a number of hours as a time of day; empty if the day has no such hour."""
    return (_encode_time(int(value)),) if value <= _DAY and value == int(value) else ()


def _add_half_day(value: float) -> float:
    return round((value + _NOON) % _DAY, 6)


def _encode_time(hour: int, minute: int = 0) -> float:
    """Return hours of the day and a share for the minutes that is too small to equal another number."""
    return round(hour % _DAY + minute / 6000 + _APART, 6)
