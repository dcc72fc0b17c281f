"""The dates that a text says: years, months, days, weekdays, decades and centuries, and when one covers another.

Reads tokens, without their language: month names of several languages are known at once. A number that belongs to a
date is no number of its own (`numbers` skips it).
"""
# ruff: noqa: PLR2004 - four digits are a year, twelve months have 31 days

import re
from dataclasses import dataclass, replace

from pipeline.support.calendar import Calendar, calendar
from pipeline.support.numerals import han, is_han_numeral, numerals, roman, scales
from pipeline.support.tokens import Tokens
from pipeline.support.units import is_unit

_MONTHS, _DAYS = 12, 31
_FIRST_YEAR, _LAST_YEAR = 1000, 2100
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_ORDINAL = frozenset({"st", "nd", "rd", "th", "er", "ere", "eme", "e", "°", "o", "a"})
_RANGE = frozenset({"-", "and", "to", "/", "&", "bis", "und", "y", "et", "al", "au", "or", "until", "through"})
_PEOPLE = frozenset({"people", "men", "women", "children"})
_CJK_YEAR, _CJK_MONTH, _CJK_DAY = ("年", "년"), ("月", "월"), ("日", "号", "號", "일")


@dataclass(frozen=True, slots=True)
class Date:
    """A date as far as it is said, and the tokens that say it. Years before Christ are negative.

    `years` are the first and last year of a decade or century. `numeric` dates may have day and month either way.
    """

    said: str
    first: int
    last: int
    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    years: tuple[int, int] | None = None
    numeric: bool = False

    @property
    def reach(self) -> tuple[int, int] | None:
        """The first and last year that are meant."""
        return self.years or ((self.year, self.year) if self.year is not None else None)


def covers(source: Date, claim: Date) -> bool:
    """Whether what `source` says makes `claim` true: it is as precise or more so, and agrees."""
    if claim.weekday is not None and claim.weekday != source.weekday:
        return False
    wanted, given = claim.reach, source.reach
    if wanted and not (given and wanted[0] <= given[0] and given[1] <= wanted[1]):
        return False
    if _agrees(source, claim):
        return True
    return (source.numeric or claim.numeric) and _agrees(replace(source, month=source.day, day=source.month), claim)


def _agrees(source: Date, claim: Date) -> bool:
    return claim.month in {None, source.month} and claim.day in {None, source.day}


def dates(text: Tokens) -> tuple[Date, ...]:
    """Return the dates of a text in order; they do not overlap."""
    found: list[Date] = []
    known, beyond = calendar(), 0
    for place, low in enumerate(text.low):
        if place >= beyond and (low in known.leads or low[0].isdecimal() or is_han_numeral(low)):
            read = _read(text, place, known)
            found += read
            beyond = max((date.last for date in read), default=0)
    return tuple(found)


def _read(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Return the dates that begin at a token; of a century, those that end at its word."""
    low = text.low[place]
    if low[0].isdecimal():
        readers = (_in_digits, _chinese, _day_first, _years)
        return next(filter(None, (reader(text, place, known) for reader in readers)), [])
    if is_han_numeral(low):
        return _chinese(text, place, known)
    if low in known.short_months:
        return _month_first(text, place, known)
    if low in known.weekdays:
        return [Date(text.words[place], place, place + 1, weekday=known.weekdays[low])]
    if low in known.decades:
        first = 1900 + known.decades[low]
        return [Date(text.words[place], place, place + 1, years=(first, first + 9))]
    return _centuries(text, place, known) if low in known.centuries else _after_era(text, place)


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
    if text.at(end) in _RANGE:
        second, beyond = _day(text, end + 1)
        if second is not None:
            days.append((second, end + 1, beyond))
        else:
            beyond = end
    month_at = _skip(text, beyond, known.joints)
    month = known.short_months.get(text.at(month_at))
    if month is None:
        return []
    year, last = _year_after(text, month_at + 1, known)
    return [
        Date(text.said(start, last if start == days[-1][1] else stop), start, last, year, month, number)
        for number, start, stop in days
    ]


def _day(text: Tokens, place: int) -> tuple[int | None, int]:
    """Read the number of a day, with its ordinal mark."""
    low = text.at(place)
    if not (low.isdecimal() and len(low) <= 2 and 1 <= int(low) <= _DAYS):
        return None, place
    marked = text.glued(place + 1) and (text.at(place + 1) in _ORDINAL or text.at(place + 1) == ".")
    return int(low), place + 1 + marked


def _month_first(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Read May 3, 1990; May 3-5; May 1990; May."""
    month = known.short_months[text.low[place]]
    at = place + 1 + (text.at(place + 1) == "." and text.glued(place + 1))
    day, end = _day(text, at)
    if day is not None and not (text.glued(end) and text.at(end) in {"%", ":"}):
        days, beyond = [(day, place, end)], end
        if text.at(end) in _RANGE:
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
    before, end = _era(text, at + 1, known)
    if len(low) == 3 and end == at + 1:
        return None, place
    return (-int(low) if before else int(low)), end


def _skip(text: Tokens, place: int, skipped: frozenset[str]) -> int:
    while text.at(place) in skipped or (text.at(place) in {".", "'"} and text.glued(place)):
        place += 1
    return place


def _era(text: Tokens, place: int, known: Calendar) -> tuple[bool, int]:
    """Read "BC", "CE", "v. Chr.": whether it is before Christ, and where it ends."""
    low = text.at(place)
    if low in known.before_christ or low in known.after_christ:
        return low in known.before_christ, place + 1
    if low in {"v", "n"} and text.at(place + 1) == "." and text.at(place + 2) == "chr":
        return low == "v", place + 3
    return False, place


def _years(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Read 1990, the 1990s, 1914-18, 44 BC; not a number that counts something."""
    low = text.low[place]
    if not low.isdecimal() or len(low) > 4:
        return []
    before, end = _era(text, place + 1, known)
    if end > place + 1:
        return [Date(text.said(place, end), place, end, -int(low) if before else int(low))]
    decade = _decade(text, place)
    if decade:
        return decade
    if not (len(low) == 4 and _FIRST_YEAR <= int(low) <= _LAST_YEAR) or not _is_year(text, place, known):
        return _bc_range(text, place, known)
    found = [Date(low, place, place + 1, int(low))]
    later = text.at(place + 2)
    if (
        text.at(place + 1) in {"-", "/"}
        and later.isdecimal()
        and text.glued(place + 2)
        and not _goes_on(text, place + 3)
    ):
        second = int(low[: 4 - len(later)] + later) if len(later) in {2, 4} else 0
        if int(low) < second <= _LAST_YEAR:
            found.append(Date(later, place + 2, place + 3, second))
    return found


def _goes_on(text: Tokens, place: int) -> bool:
    return text.glued(place) and text.at(place)[:1].isalnum()


def _decade(text: Tokens, place: int) -> list[Date]:
    """Read 1990s, 1990's, '90s and 1900s, which is a century."""
    low, end = text.low[place], place + 1
    if text.at(end) == "'" and text.at(end + 1) == "s":
        end += 1
    if text.at(end) != "s" or low[-1] != "0" or len(low) not in {2, 4}:
        return []
    first = int(low) + (1900 if len(low) == 2 else 0)
    length = 100 if first % 100 == 0 and first != 2000 else 10
    return [Date(text.said(place, end + 1), place, end + 1, years=(first, first + length - 1))]


def _bc_range(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Read the first year of 300-250 BC."""
    later = text.at(place + 2)
    if text.at(place + 1) in {"-", "to", "and"} and later.isdecimal():
        before, end = _era(text, place + 3, known)
        if end > place + 3 and before:
            return [Date(text.low[place], place, place + 1, -int(text.low[place]))]
    return []


def _is_year(text: Tokens, place: int, known: Calendar) -> bool:
    """Whether four digits are a year and no count: "1500 people", "$1500", "1500 km"."""
    following, before = text.at(place + 1), text.at(place - 1)
    if text.glued(place) and not before[:1].isalnum() and before not in {"(", "[", '"', "'", "-", "/", "~", ","}:
        return False
    if text.glued(place + 1) and (following[:1].isalpha() or following == "%"):
        return False
    if before in known.year_leads and before not in {"to", "of", "about", "around", "and", "or"}:
        return True
    if is_unit(following) or following in scales():
        return False
    counted = following in _PEOPLE or (following.endswith("s") and following.isalpha() and len(following) > 3)
    return not counted or following in {"was", "this", "his"}


def _after_era(text: Tokens, place: int) -> list[Date]:
    """Read AD 70."""
    low = text.at(place + 1)
    if low.isdecimal() and len(low) <= 4:
        return [Date(text.said(place, place + 2), place, place + 2, int(low))]
    return []


def _centuries(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Read "19th century", "nineteenth and twentieth centuries", "siglo XIX"; `place` is the century's own word."""
    before, last = _era(text, place + 1, known)
    if text.low[place] in known.century_first:
        number = roman(text.words[place + 1].upper()) if place + 1 < len(text) else None
        return [_century(text, place, place + 2, number, before=False)] if number else []
    found: list[Date] = []
    end = place
    while True:
        end -= text.at(end - 1) == "-"
        number, first = _ordinal_before(text, end)
        if number is None:
            return found[::-1]
        found.append(_century(text, first, last, number, before=before))
        last = end = first - 1
        if text.at(end) not in _RANGE and text.at(end) != ",":
            return found[::-1]


def _ordinal_before(text: Tokens, end: int) -> tuple[int | None, int]:
    """Read the ordinal that ends before a token, and return where it begins."""
    low, ordinals = text.at(end - 1), numerals("en").ordinals
    if low in _ORDINAL or low == ".":
        digits = text.at(end - 2)
        return (int(digits) if digits.isdecimal() and len(digits) <= 2 else None), end - 2
    if low in ordinals:
        if text.at(end - 2) == "-" and text.at(end - 3) == "twenty":
            return 20 + ordinals[low], end - 3
        return ordinals[low], end - 1
    word = text.words[end - 1] if end > 0 else ""
    return roman(word.removesuffix("e").removesuffix("è")) if word[:1].isupper() else None, end - 1


def _century(text: Tokens, first: int, last: int, number: int, *, before: bool) -> Date:
    years = (-100 * number, -100 * number + 99) if before else (100 * (number - 1) + 1, 100 * number)
    return Date(text.said(first, last), first, last, years=years)
