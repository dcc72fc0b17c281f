"""Years, months and days: moved, or the same date in another order."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from evaluation.claims.changes.types import Change, replaced, shuffled, vocabulary

Span = tuple[int, int]

_FURTHEST = 12
"""Years that a year is moved by at most."""
_LATEST_DAY = 28
"""Every month has it."""


@dataclass(frozen=True, slots=True)
class Date:
    """Where a date stands in a text, and where its parts do; its month is always told."""

    span: Span
    month: Span
    day: Span | None
    year: Span | None

    def said(self, text: str) -> str:
        """Return the date with its day on the other side of its month; empty where it has no day."""
        if not self.day:
            return ""
        month, day, year = (text[slice(*part)] if part else "" for part in (self.month, self.day, self.year))
        if self.day < self.month:
            return f"{month} {day}, {year}" if year else f"{month} {day}"
        return f"{day} {month} {year}".rstrip()


def dates(text: str) -> list[Date]:
    """Return the dates of a text in order: 3 May 1990, May 3, 1990, 3 May, May 3 and May 1990."""
    return [_date(match) for match in _pattern().finditer(text)]


def years(text: str) -> list[Span]:
    """Return where the years and decades stand that are told as such, in order."""
    told = {date.year for date in dates(text) if date.year}
    return sorted(told | {match.span(1) for match in _STANDING.finditer(text)})


def year_moved(text: str, rng: Random) -> Iterator[Change]:
    """Move a year, or a decade, that is told as such."""
    for span in shuffled(years(text), rng):
        by = range(10, 40, 10) if text[span[1] :].startswith("s") else range(1, _FURTHEST)
        for move in shuffled([*by, *(-each for each in by)], rng):
            new = str(int(text[slice(*span)]) + move)
            yield replaced(text, span, new, (new, f"{new}s"))


def month_moved(text: str, rng: Random) -> Iterator[Change]:
    """Put another month."""
    for date in shuffled(dates(text), rng):
        old = text[slice(*date.month)]
        for new in shuffled([month for month in vocabulary()["months"] if month != old], rng):
            yield replaced(text, date.month, new, (new, new[:3]))


def day_moved(text: str, rng: Random) -> Iterator[Change]:
    """Put another day of the month."""
    for day in shuffled([date.day for date in dates(text) if date.day], rng):
        others = [str(other) for other in range(1, _LATEST_DAY + 1) if str(other) != text[slice(*day)]]
        for new in shuffled(others, rng):
            yield replaced(text, day, new, (new,))


def reordered(text: str, rng: Random) -> Iterator[Change]:
    """Write a date with its day on the other side of its month."""
    for date in shuffled([each for each in dates(text) if each.day], rng):
        yield replaced(text, date.span, date.said(text))


_STANDING = re.compile(
    r"(?:\b(?:in|since|until|till|by|from|to|early|late|mid|during|around|circa|after|before|between|and|the|year)\s|\()"
    r"(1\d{3}|20\d\d)(?=s?(?![\w–-]))",
    re.IGNORECASE,
)


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    month = "|".join(vocabulary()["months"])
    day, year = r"(?:[12]\d|3[01]|[1-9])", r"[12]\d{3}"
    return re.compile(
        rf"(?<![\w,.])(?P<day1>{day})\s(?P<month1>{month})\b(?:,?\s(?P<year1>{year})\b)?"
        rf"|\b(?P<month2>{month})\s(?P<day2>{day})\b(?:,?\s(?P<year2>{year})\b)?"
        rf"|\b(?P<month3>{month}),?\s(?P<year3>{year})\b"
    )


def _date(match: re.Match[str]) -> Date:
    parts = {name: match.span(name) for name, value in match.groupdict().items() if value}
    month, day, year = (
        next((span for name, span in parts.items() if name[:-1] == part), None) for part in ("month", "day", "year")
    )
    return Date(match.span(), month or match.span(), day, year)
