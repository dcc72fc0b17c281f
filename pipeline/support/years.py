"""The years, decades and centuries that a text says: "1914-18", "44 BC", "the 1990s", "the 19th century".

`dates` puts days and months before them. Four digits are a year unless they count or measure something.
"""
# ruff: noqa: PLR2004 - four digits are a year

from pipeline.support.calendar import Calendar, Date
from pipeline.support.numerals import numerals, roman, scales
from pipeline.support.tokens import Tokens
from pipeline.support.units import is_unit

ORDINAL = frozenset({"st", "nd", "rd", "th", "er", "ere", "eme", "e", "°", "o", "a"})
RANGE = frozenset({"-", "and", "to", "/", "&", "bis", "und", "y", "et", "al", "au", "or", "until", "through"})
_FIRST_YEAR, _LAST_YEAR = 1000, 2100
_LONGEST = 5
"""Figures of a year."""
_PEOPLE = frozenset({"people", "men", "women", "children"})


def years_at(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Read 1990, the 1990s, 1914-18, 44 BC; not a number that counts something."""
    before, end = era_at(text, place + 1, known)
    low = text.low[place].replace(",", "") if end > place + 1 else text.low[place]
    if not low.isdecimal() or len(low) > _LONGEST:
        return []
    if end > place + 1:
        return [Date(text.said(place, end), place, end, -int(low) if before else int(low))]
    if len(low) == 4 and _FIRST_YEAR <= int(low) <= _LAST_YEAR and _is_year(text, place, known):
        return _decade(text, place) or [Date(low, place, place + 1, int(low)), *_second_year(text, place)]
    return _decade(text, place) or _bc_range(text, place, known)


def _second_year(text: Tokens, place: int) -> list[Date]:
    """Read the 18 of 1914-18."""
    first, later = text.low[place], text.at(place + 2)
    if text.at(place + 1) not in {"-", "/"} or not later.isdecimal() or not text.glued(place + 2):
        return []
    second = int(first[: 4 - len(later)] + later) if len(later) in {2, 4} and not _goes_on(text, place + 3) else 0
    return [Date(later, place + 2, place + 3, second)] if int(first) < second <= _LAST_YEAR else []


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
        before, end = era_at(text, place + 3, known)
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


def era_at(text: Tokens, place: int, known: Calendar) -> tuple[bool, int]:
    """Read "BC", "CE", "v. Chr.": whether it is before Christ, and where it ends."""
    low = text.at(place)
    if low in known.before_christ or low in known.after_christ:
        return low in known.before_christ, place + 1
    if low in {"v", "n"} and text.at(place + 1) == "." and text.at(place + 2) == "chr":
        return low == "v", place + 3
    return False, place


def year_of_era(text: Tokens, place: int) -> list[Date]:
    """Read AD 70."""
    low = text.at(place + 1)
    if low.isdecimal() and len(low) <= 4:
        return [Date(text.said(place, place + 2), place, place + 2, int(low))]
    return []


def centuries_before(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Read "19th century", "nineteenth and twentieth centuries", "siglo XIX"; `place` is the century's own word."""
    before, last = era_at(text, place + 1, known)
    if text.low[place] in known.century_first:
        return _century_after(text, place)
    found: list[Date] = []
    end = place
    while True:
        end -= text.at(end - 1) == "-"
        number, first = _ordinal_before(text, end)
        if number is None:
            return found[::-1]
        found.append(_century(text, first, last, number, before=before))
        last = end = first - 1
        if text.at(end) not in RANGE and text.at(end) != ",":
            return found[::-1]


def _century_after(text: Tokens, place: int) -> list[Date]:
    """Read "siglo XIX"."""
    number = roman(text.words[place + 1].upper()) if place + 1 < len(text) else None
    return [_century(text, place, place + 2, number, before=False)] if number else []


def _ordinal_before(text: Tokens, end: int) -> tuple[int | None, int]:
    """Read the ordinal that ends before a token, and return where it begins."""
    low, ordinals = text.at(end - 1), numerals("en").ordinals
    if low in ORDINAL or low == ".":
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
