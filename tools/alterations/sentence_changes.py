"""Change dates, numbers and units in a sentence, or spell them differently."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from random import Random
from typing import Any


@dataclass(frozen=True, slots=True)
class Change:
    """A sentence after one change."""

    text: str
    old: str
    new: str
    absent: tuple[str, ...] = ()
    """Spellings of the new value that must not occur in the passage for the change to be false."""


ChangeProposer = Callable[[str, Random], Iterator[Change]]
"""A function that proposes changes of a sentence in random order, if it can change anything."""


def replace_span(text: str, span: tuple[int, int], new: str, absent: Sequence[str] = ()) -> Change:
    """Return the change that replaces one span of a sentence."""
    start, end = span
    return Change(text[:start] + new + text[end:], text[start:end], new, tuple(absent))


def has_value(value: str, text: str) -> bool:
    """Return whether a text has a value as a whole token, ignoring case: 1.5 and 50 do not contain the value 5."""
    before = r"(?<![\w.,])(?<!\w-)" if value[:1].isdigit() else r"(?<!\w)"
    after = r"(?!\w|[.,]\d)" if value[-1:].isalnum() else ""
    return bool(re.search(before + re.escape(value) + after, text, re.IGNORECASE))


def shuffle(items: Sequence[Any], rng: Random) -> list[Any]:
    """Return the items in random order."""
    return rng.sample(items, len(items))


@lru_cache(maxsize=1)
def vocabulary() -> Any:
    """Return the word lists of `words.json`."""
    return json.loads(files(__package__).joinpath("words.json").read_text(encoding="utf-8"))


DateSpan = tuple[int, int]

_MAX_YEAR_SHIFT = 12
_DAYS_OF_EVERY_MONTH = range(1, 29)


@dataclass(frozen=True, slots=True)
class DateMention:
    """The spans of a date and of its parts in a text. A month is always present."""

    span: DateSpan
    month: DateSpan
    day: DateSpan | None
    year: DateSpan | None

    def swap_day_and_month(self, text: str) -> str:
        """Return the date with day and month in reverse order; empty if it has no day."""
        if not self.day:
            return ""
        month, day, year = (text[slice(*part)] if part else "" for part in (self.month, self.day, self.year))
        if self.day < self.month:
            return f"{month} {day}, {year}" if year else f"{month} {day}"
        return f"{day} {month} {year}".rstrip()


def find_dates(text: str) -> list[DateMention]:
    """Return the dates of a text in order. A date has day, month and year, or day and month, or month and year."""
    return [_date(match) for match in _date_pattern().finditer(text)]


def find_years(text: str) -> list[DateSpan]:
    """Return the spans of years and decades in order: those in dates, and those after a word such as "in"."""
    in_dates = {date.year for date in find_dates(text) if date.year}
    return sorted(in_dates | {match.span(1) for match in _YEAR_AFTER_WORD.finditer(text)})


def move_year(text: str, rng: Random) -> Iterator[Change]:
    """Move a year by up to eleven years, or a decade by up to three decades."""
    for span in shuffle(find_years(text), rng):
        shifts = range(10, 40, 10) if text[span[1] :].startswith("s") else range(1, _MAX_YEAR_SHIFT)
        for shift in shuffle([*shifts, *(-shift for shift in shifts)], rng):
            new = str(int(text[slice(*span)]) + shift)
            yield replace_span(text, span, new, (new, f"{new}s"))


def move_month(text: str, rng: Random) -> Iterator[Change]:
    """Replace the month."""
    for date in shuffle(find_dates(text), rng):
        old = text[slice(*date.month)]
        for new in shuffle([month for month in vocabulary()["months"] if month != old], rng):
            yield replace_span(text, date.month, new, (new, new[:3]))


def move_day(text: str, rng: Random) -> Iterator[Change]:
    """Replace the day of the month."""
    for day in shuffle([date.day for date in find_dates(text) if date.day], rng):
        others = [str(other) for other in _DAYS_OF_EVERY_MONTH if str(other) != text[slice(*day)]]
        for new in shuffle(others, rng):
            yield replace_span(text, day, new, (new,))


def reorder_date(text: str, rng: Random) -> Iterator[Change]:
    """Write day and month of a date in reverse order."""
    for date in shuffle([date for date in find_dates(text) if date.day], rng):
        yield replace_span(text, date.span, date.swap_day_and_month(text))


_YEAR_AFTER_WORD = re.compile(
    r"(?:\b(?:in|since|until|till|by|from|to|early|late|mid|during|around|circa|after|before|between|and|the|year)\s|\()"
    r"(1\d{3}|20\d\d)(?=s?(?![\w–-]))",
    re.IGNORECASE,
)


@lru_cache(maxsize=1)
def _date_pattern() -> re.Pattern[str]:
    month = "|".join(vocabulary()["months"])
    day, year = r"(?:[12]\d|3[01]|[1-9])", r"[12]\d{3}"
    return re.compile(
        rf"(?<![\w,.])(?P<day1>{day})\s(?P<month1>{month})\b(?:,?\s(?P<year1>{year})\b)?"
        rf"|\b(?P<month2>{month})\s(?P<day2>{day})\b(?:,?\s(?P<year2>{year})\b)?"
        rf"|\b(?P<month3>{month}),?\s(?P<year3>{year})\b"
    )


def _date(match: re.Match[str]) -> DateMention:
    parts = {name: match.span(name) for name, value in match.groupdict().items() if value}
    month, day, year = (
        next((span for name, span in parts.items() if name[:-1] == part), None) for part in ("month", "day", "year")
    )
    return DateMention(match.span(), month or match.span(), day, year)


_DIGITS = re.compile(r"(?<![\w.,/–-])(?<!\d\s)(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w/–]|[.,:-]\d|-\w|\s\d{3}\b)")
_YEAR = re.compile(r"1\d{3}|20\d\d")
_SHARES = (0.12, 0.25, 0.4, 0.7)
"""The shares of its value by which a number changes; they are larger than any rounding."""
_MIN_WITH_COMMAS = 10_000


@dataclass(frozen=True, slots=True)
class NumberMention:
    """A number in a text, in digits or words."""

    span: tuple[int, int]
    text: str
    value: float

    @property
    def in_words(self) -> bool:
        """Whether the number is written in words."""
        return self.text[0].isalpha()


def find_numbers(text: str) -> list[NumberMention]:
    """Return the numbers of a text, except "one", years and parts of dates."""
    date_spans = [date.span for date in find_dates(text)]
    digits = [
        NumberMention(match.span(), match[0], float(match[0].replace(",", "")))
        for match in _DIGITS.finditer(text)
        if not _YEAR.fullmatch(match[0]) and not any(start <= match.start() < end for start, end in date_spans)
    ]
    words = [
        NumberMention(match.span(), match[0], number_word_values()[match[0].lower()])
        for match in _number_word_pattern().finditer(text)
    ]
    return sorted([*digits, *words], key=lambda number: number.span)


def change_number(text: str, rng: Random) -> Iterator[Change]:
    """Change a number by a certain share of its value."""
    for number in shuffle(find_numbers(text), rng):
        for value in shuffle(_other_values(number.value), rng):
            new = _write_like(number, value)
            yield replace_span(text, number.span, new, _spellings(value, new))


def respell_number(text: str, rng: Random) -> Iterator[Change]:
    """Write a number in words or in digits, or add or drop its commas."""
    for number in shuffle(find_numbers(text), rng):
        start, end = number.span
        if number.in_words:
            yield replace_span(text, number.span, str(int(number.value)))
        elif number.value >= 1000 and "." not in number.text:
            plain = number.text.replace(",", "")
            yield replace_span(text, number.span, plain if plain != number.text else f"{int(number.value):,}")
        elif (
            number.text in _digits_to_words()
            and text[start - 1 : start] not in {*"$£€"}
            and text[end : end + 1] not in {*"%°"}
        ):
            yield replace_span(text, number.span, _digits_to_words()[number.text])


@lru_cache(maxsize=1)
def number_word_values() -> dict[str, int]:
    """Return the values of the words zero to ninety-nine."""
    small, tens = vocabulary()["small"], vocabulary()["tens"]
    tens_values = {ten: 20 + 10 * index for index, ten in enumerate(tens)}
    compounds = {
        f"{ten}-{digit}": value + unit
        for ten, value in tens_values.items()
        for unit, digit in enumerate(small[1:10], 1)
    }
    return {**{word: value for value, word in enumerate(small)}, **tens_values, **compounds}


@lru_cache(maxsize=1)
def _digits_to_words() -> dict[str, str]:
    """Return number words by their digits, from two on: "one" is more often a pronoun than a number."""
    return {str(value): word for word, value in number_word_values().items() if value > 1}


@lru_cache(maxsize=1)
def _number_word_pattern() -> re.Pattern[str]:
    longest_first = sorted(_digits_to_words().values(), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(longest_first)})(?![\w-])", re.IGNORECASE)


def _other_values(value: float) -> list[float]:
    """Return other values of similar size. For a whole number, they are whole numbers."""
    if value != int(value):
        return [value * (1 + sign * share) for share in _SHARES for sign in (1, -1)]
    steps = {max(1, round(value * share)) for share in _SHARES}
    return [other for step in sorted(steps) for other in (value - step, value + step) if other > 1]


def _write_like(number: NumberMention, value: float) -> str:
    """Return a value in the format of a number in the text: as words, with a capital, commas or decimals."""
    if number.in_words:
        word = _digits_to_words().get(f"{value:.0f}", f"{value:,.0f}")
        return word.capitalize() if number.text[0].isupper() else word
    decimals = len(number.text.partition(".")[2])
    return f"{value:,.{decimals}f}" if "," in number.text or value >= _MIN_WITH_COMMAS else f"{value:.{decimals}f}"


def _spellings(value: float, new: str) -> list[str]:
    """Return all spellings of a value, including `new`."""
    spellings = [new, new.replace(",", ""), f"{value:g}"]
    if value == int(value):
        spellings += [f"{value:.0f}", f"{value:,.0f}", _digits_to_words().get(f"{value:.0f}", new)]
    return list(dict.fromkeys(spellings))


UnitSpellings = Sequence[Sequence[str]]
"""Spellings of a unit as a symbol, in the singular and in the plural; each a list that may be empty."""

_PLURAL = 2
_CURRENCY = re.compile(r"[$£€](?=\d)")
_PERCENT = re.compile(r"(?<=\d)(?:%|\sper ?cent\b)")


@dataclass(frozen=True, slots=True)
class UnitMention:
    """A unit after a number, and the span of the unit."""

    span: tuple[int, int]
    unit: UnitSpellings
    form: int
    """The index in `unit`: symbol, singular or plural."""
    spelling: int
    """The index in that form."""


def change_unit(text: str, rng: Random) -> Iterator[Change]:
    """Replace the unit of a number by another of the same kind, or the currency of an amount."""
    for measure in shuffle(_find_measures(text), rng):
        family = next(family for family in vocabulary()["units"] if measure.unit in family)
        for other in shuffle([unit for unit in family if unit != measure.unit and unit[measure.form]], rng):
            new = other[measure.form][measure.spelling % len(other[measure.form])]
            yield replace_span(text, measure.span, new, [spelling for spellings in other for spelling in spellings])
    for match in shuffle([*_CURRENCY.finditer(text)], rng):
        for new in shuffle([currency for currency in vocabulary()["currencies"] if currency != match[0]], rng):
            yield replace_span(text, match.span(), new, (new,))


def respell_unit(text: str, rng: Random) -> Iterator[Change]:
    """Write a unit, or percent, in full or abbreviated."""
    for measure in shuffle(_find_measures(text), rng):
        other = measure.unit[0 if measure.form else _PLURAL]
        if other:
            glued = text[measure.span[0] - 1].isdigit()
            yield replace_span(text, measure.span, f" {other[0]}" if glued else other[0])
    for match in _PERCENT.finditer(text):
        yield replace_span(text, match.span(), " percent" if match[0] == "%" else "%")


def _find_measures(text: str) -> list[UnitMention]:
    matches = [(match, "unit" if match["unit"] else "glued") for match in _unit_pattern().finditer(text)]
    return [UnitMention(match.span(group), *_unit_spellings()[match[group]]) for match, group in matches]


@lru_cache(maxsize=1)
def _unit_spellings() -> dict[str, tuple[UnitSpellings, int, int]]:
    """Return, for every spelling of a unit, the unit, its form (such as singular), and its index in that form."""
    return {
        spelling: (unit, form, index)
        for family in vocabulary()["units"]
        for unit in family
        for form, spellings in enumerate(unit)
        for index, spelling in enumerate(spellings)
    }


@lru_cache(maxsize=1)
def _unit_pattern() -> re.Pattern[str]:
    units = "|".join(sorted(map(re.escape, _unit_spellings()), key=len, reverse=True))
    words = "|".join(sorted(number_word_values(), key=len, reverse=True))
    apart = rf"(?:\d|\b(?:{words})|illion)[\s\u00a0](?P<unit>{units})"
    glued = r"(?<=\d)(?:km|kg|cm|mm|°C|°F)"
    return re.compile(rf"(?:{apart}|(?P<glued>{glued}))(?![\w/²³-])")
