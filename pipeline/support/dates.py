"""The dates that a text says: days, months and weekdays; years and centuries are read by `years`.

Reads tokens, without their language: month names of several languages are known at once. A number that belongs to a
date is no number of its own (`numbers` skips it).
"""
# ruff: noqa: PLR2004 - four digits are a year, twelve months have 31 days

import re

from pipeline.support.calendar import Calendar, Date, calendar
from pipeline.support.numerals import han, is_han_numeral
from pipeline.support.tokens import Tokens
from pipeline.support.years import ORDINAL, RANGE, centuries_before, era_at, year_of_era, years_at

_MONTHS, _DAYS = 12, 31
_FIRST_YEAR = 1000
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_CJK_YEAR, _CJK_MONTH, _CJK_DAY = ("年", "년"), ("月", "월"), ("日", "号", "號", "일")


def dates(text: Tokens) -> tuple[Date, ...]:
    """Return the dates of a text in order; they do not overlap."""
    known = calendar()
    leads = known.leads
    places = [place for place, low in enumerate(text.low) if low in leads or low[0].isdecimal() or not low.isascii()]
    found: list[Date] = []
    beyond = 0
    for place in places:
        read = _read(text, place, known) if place >= beyond else []
        found += read
        beyond = max((date.last for date in read), default=beyond)
    return tuple(found)


def _read(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Return the dates that begin at a token; of a century, those that end at its word."""
    low = text.low[place]
    if low[0].isdecimal() or is_han_numeral(low):
        readers = (_in_digits, _chinese, _day_first, years_at)
        return next(filter(None, (reader(text, place, known) for reader in readers)), [])
    if low in known.ordinal_days:
        return _day_of(text, place, known)
    if low in known.short_months:
        return _month_first(text, place, known)
    if low in known.centuries:
        return centuries_before(text, place, known)
    if low in known.after_christ:
        return year_of_era(text, place)
    return _named(text, place, known)


def _named(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Read a weekday, or a decade in words: "the nineties"."""
    low, word = text.low[place], text.words[place]
    if low in known.weekdays:
        return [Date(word, place, place + 1, weekday=known.weekdays[low])]
    first = 1900 + known.decades.get(low, 0)
    return [Date(word, place, place + 1, years=(first, first + 9))] if low in known.decades else []


def _in_digits(text: Tokens, place: int, _known: Calendar) -> list[Date]:
    """Read 1990-05-03, 03/05/1990 and 3.5.1990."""
    dotted = _DOTTED.fullmatch(text.low[place])
    if dotted:
        return _numeric(text, place, place + 1, dotted.groups())
    parts = text.low[place : place + 5]
    if (
        len(parts) < 5
        or parts[1] != parts[3]
        or parts[1] not in "-/"
        or not all(map(text.glued, range(place + 1, place + 5)))
    ):
        return []
    numbers = parts[0], parts[2], parts[4]
    if not all(map(str.isdecimal, numbers)):
        return []
    if len(numbers[0]) == 4:
        year, month, day = map(int, numbers)
        return [Date(text.said(place, place + 5), place, place + 5, year, month, day)] if _is_day(month, day) else []
    return _numeric(text, place, place + 5, numbers) if len(numbers[2]) == 4 else []


def _numeric(text: Tokens, first: int, last: int, parts: tuple[str | None, ...]) -> list[Date]:
    day, month, year = (int(part or 0) for part in parts)
    if not (_is_day(month, day) or _is_day(day, month)):
        return []
    return [Date(text.said(first, last), first, last, year, month, day, numeric=True)]


def _is_day(month: int, day: int) -> bool:
    return 1 <= month <= _MONTHS and 1 <= day <= _DAYS


def _chinese(text: Tokens, place: int, _known: Calendar) -> list[Date]:
    """Read 1990年5月3日, in digits or in Chinese numerals, with any part missing."""
    parts: dict[str, int] = {}
    last = place
    for name, marks in (("year", _CJK_YEAR), ("month", _CJK_MONTH), ("day", _CJK_DAY)):
        value, end = _numeral(text, last)
        if value is not None and text.at(end).startswith(marks):
            parts[name] = value
            last = end + 1
    if not parts or (set(parts) == {"day"}) or not _is_day(parts.get("month", 1), parts.get("day", 1)):
        return []
    if set(parts) == {"year"} and parts["year"] < _FIRST_YEAR:
        return []
    said = text.said(place, last)
    return [Date(said, place, last, parts.get("year"), parts.get("month"), parts.get("day"))]


def _numeral(text: Tokens, place: int) -> tuple[int | None, int]:
    """Read digits, or a run of Chinese numerals, and return where they end."""
    if text.at(place).isdecimal():
        return int(text.low[place]), place + 1
    end = place
    while text.at(end) and is_han_numeral(text.at(end)):
        end += 1
    return (han(text.low[place:end]) if end > place else None), end


def _day_first(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Read 3 May 1990, 3rd of May, 3.-5. Mai 1990, 3 and 5 May."""
    day, end = _day(text, place)
    if day is None:
        return []
    days, beyond = [(day, place, end)], end
    if text.at(end) in RANGE:
        second, beyond = _day(text, end + 1)
        if second is not None:
            days.append((second, end + 1, beyond))
        else:
            beyond = end
    month_at = _skip(text, beyond, known.joints)
    month = known.short_months.get(text.at(month_at))
    if month is None or _is_verb(text, month_at, known):
        return []
    year, last = _year_after(text, month_at + 1, known)
    return [
        Date(text.said(start, last if start == days[-1][1] else stop), start, last, year, month, number)
        for number, start, stop in days
    ]


def _day_of(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Read the first of May, with a year or without."""
    month_at = place + 2
    month = known.short_months.get(text.at(month_at)) if text.at(place + 1) == "of" else None
    if month is None or _is_verb(text, month_at, known):
        return []
    year, last = _year_after(text, month_at + 1, known)
    return [Date(text.said(place, last), place, last, year, month, known.ordinal_days[text.low[place]])]


def _is_verb(text: Tokens, place: int, known: Calendar) -> bool:
    """Whether a word is a month only by its letters: "children under 16 may enter"."""
    return text.low[place] in known.verbs and text.words[place].islower() and not text.text.islower()


def _day(text: Tokens, place: int) -> tuple[int | None, int]:
    """Read the number of a day, with its ordinal mark."""
    low = text.at(place)
    if not (low.isdecimal() and len(low) <= 2 and 1 <= int(low) <= _DAYS):
        return None, place
    marked = text.glued(place + 1) and (text.at(place + 1) in ORDINAL or text.at(place + 1) == ".")
    return int(low), place + 1 + marked


def _month_first(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Read May 3, 1990; May 3-5; May 1990; May."""
    if _is_verb(text, place, known):
        return []
    month = known.short_months[text.low[place]]
    at = place + 1 + (text.at(place + 1) == "." and text.glued(place + 1))
    day, end = _day(text, at)
    if day is not None and not (text.glued(end) and text.at(end) in {"%", ":"}):
        days, beyond = [(day, place, end)], end
        if text.at(end) in RANGE:
            second, beyond = _day(text, end + 1)
            if second is None or text.at(beyond) in known.short_months:
                beyond = end
            else:
                days.append((second, end + 1, beyond))
        year, last = _year_after(text, beyond, known)
        return [
            Date(text.said(start, last if start == days[-1][1] else stop), start, last, year, month, number)
            for number, start, stop in days
        ]
    year, last = _year_after(text, at, known)
    if year is not None:
        return [Date(text.said(place, last), place, last, year, month)]
    return [Date(text.words[place], place, place + 1, month=month)] if _is_month(text, place, known) else []


def _is_month(text: Tokens, place: int, known: Calendar) -> bool:
    """Whether a month's name that stands alone means the month."""
    low, word = text.low[place], text.words[place]
    if low not in known.months:
        return False
    if low not in known.doubtful_months:
        return True
    following = text.words[place + 1] if place + 1 < len(text) else ""
    cased = word[0].isupper() or text.text.islower()
    return cased and text.at(place - 1) in known.month_leads and not following[:1].isupper()


def _year_after(text: Tokens, place: int, known: Calendar) -> tuple[int | None, int]:
    """Read a year behind a month or a day, and return where the date ends."""
    at = _skip(text, place, known.joints)
    low = text.at(at)
    if not low.isdecimal() or not 3 <= len(low) <= 4 or (text.glued(at + 1) and text.at(at + 1) in {"%", "s"}):
        return None, place
    before, end = era_at(text, at + 1, known)
    if len(low) == 3 and end == at + 1:
        return None, place
    return (-int(low) if before else int(low)), end


def _skip(text: Tokens, place: int, skipped: frozenset[str]) -> int:
    while text.at(place) in skipped or (text.at(place) in {".", "'"} and text.glued(place)):
        place += 1
    return place
