"""Find the dates of a text: days, months, weekdays, years, decades and centuries."""
# ruff: noqa: PLR2004 - the numbers that dates are made of

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from pipeline.support.analysis.numerals import is_han_numeral, load_numerals, load_scales, parse_han, parse_roman
from pipeline.support.analysis.quantity_parser import is_unit
from pipeline.support.analysis.tokenizer import Tokens, TokenSpan, load_table
from storage.language.lazy_pattern import lazy_compile
from storage.language.months import MONTHS, SHORT_MONTHS

_ORDINAL = frozenset({"st", "nd", "rd", "th", "er", "ere", "eme", "e", "°", "o", "a"})
_RANGE = frozenset({"-", "and", "to", "/", "&", "bis", "und", "y", "et", "al", "au", "or", "until", "through"})
_FIRST_PLAIN_YEAR, _LAST_PLAIN_YEAR = 1000, 2100
_LONGEST_YEAR = 5
_PEOPLE = frozenset({"people", "men", "women", "children"})
_DOTTED = lazy_compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_CJK_YEAR, _CJK_MONTH, _CJK_DAY = ("年", "년"), ("月", "월"), ("日", "号", "號", "일")
Span = tuple[int, int, int]  # the number of a day, and where its date begins and ends


@dataclass(frozen=True, slots=True)
class Date(TokenSpan):
    """A date, as precise as the text states it. Years before Christ are negative.

    `years` are the first and last year of a decade or century. In `numeric` dates, day and month may be exchanged.
    """

    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    years: tuple[int, int] | None = None
    numeric: bool = False

    @property
    def reach(self) -> tuple[int, int] | None:
        """Return the first and last year that the date covers; None if it names no year."""
        return self.years or ((self.year, self.year) if self.year is not None else None)


def implies_date(source: Date, claim: Date) -> bool:
    """Return whether `source` makes `claim` true: it agrees with it, and is at least as precise."""
    if claim.weekday is not None and claim.weekday != source.weekday:
        return False
    claimed, stated = claim.reach, source.reach
    if claimed and not (stated and claimed[0] <= stated[0] and stated[1] <= claimed[1]):
        return False
    orders = [(source.month, source.day)]
    if source.numeric or claim.numeric:
        orders.append((source.day, source.month))
    return any(claim.month in {None, month} and claim.day in {None, day} for month, day in orders)


@dataclass(frozen=True, slots=True)
class Calendar:
    """Calendar words in plain lower case, with their numbers."""

    months: Mapping[str, int]  # names that may be used alone, 1 to 12
    short_months: Mapping[str, int]  # names and abbreviations that need a day or a year next to them
    doubtful_months: frozenset[str]  # months that are also verbs, planets or given names
    verbs: frozenset[str]  # months only if capitalised, or in a text without capitals
    ordinal_days: Mapping[str, int]
    weekdays: Mapping[str, int]
    decades: Mapping[str, int]
    centuries: frozenset[str]
    century_first: frozenset[str]
    before_christ: frozenset[str]
    after_christ: frozenset[str]
    month_leads: frozenset[str]
    year_leads: frozenset[str]
    joints: frozenset[str]
    leads: frozenset[str]  # every word at which a date may begin, or end in "century"


@cache
def _load_calendar() -> Calendar:
    data = load_table("calendar.json")
    sets = {key: frozenset(words.split()) for key, words in data.items() if isinstance(words, str)}
    weekdays, ordinal_days = (
        {word: number for number, line in enumerate(data[key], start=1) for word in line.split()}
        for key in ("weekdays", "ordinal_days")
    )
    short_months = {**SHORT_MONTHS, **MONTHS}
    leads = {*short_months, *weekdays, *ordinal_days, *data["decades"], *sets["centuries"], *sets["after_christ"]}
    return Calendar(
        months=MONTHS, short_months=short_months, ordinal_days=ordinal_days, weekdays=weekdays,
        decades=data["decades"], leads=frozenset(leads), **sets,
    )  # fmt: skip


def _parse_years_at(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Parse years such as 1990, the 1990s, 1914-18 and 44 BC, but not numbers that count something."""
    before, end = _parse_era_at(text, place + 1, known)
    low = text.low[place].replace(",", "") if end > place + 1 else text.low[place]
    if not low.isdecimal() or len(low) > _LONGEST_YEAR:
        return []
    if end > place + 1:
        return [Date(text.said(place, end), place, end, -int(low) if before else int(low))]
    if len(low) == 4 and _FIRST_PLAIN_YEAR <= int(low) <= _LAST_PLAIN_YEAR and _is_year(text, place, known):
        return _parse_decade(text, place) or [Date(low, place, place + 1, int(low)), *_parse_second_year(text, place)]
    return _parse_decade(text, place) or _parse_bc_range(text, place, known)


def _parse_second_year(text: Tokens, place: int) -> list[Date]:
    """Parse the second year of a range: the 18 of 1914-18."""
    first, later, end = text.low[place], text.at(place + 2), place + 3
    if text.at(place + 1) not in {"-", "/"} or not later.isdecimal() or not text.glued(place + 2):
        return []
    if len(later) not in {2, 4} or (text.glued(end) and text.at(end)[:1].isalnum()):
        return []
    second = int(first[: 4 - len(later)] + later)
    return [Date(later, place + 2, end, second)] if int(first) < second <= _LAST_PLAIN_YEAR else []


def _parse_decade(text: Tokens, place: int) -> list[Date]:
    """Parse 1990s, 1990's, '90s and 1900s, which is a century."""
    low, end = text.low[place], place + 1
    if text.at(end) == "'" and text.at(end + 1) == "s":
        end += 1
    if text.at(end) != "s" or low[-1] != "0" or len(low) not in {2, 4}:
        return []
    first = int(low) + (1900 if len(low) == 2 else 0)
    length = 100 if first % 100 == 0 and first != 2000 else 10
    return [Date(text.said(place, end + 1), place, end + 1, years=(first, first + length - 1))]


def _parse_bc_range(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Parse the first year of 300-250 BC."""
    later = text.at(place + 2)
    if text.at(place + 1) in {"-", "to", "and"} and later.isdecimal():
        before, end = _parse_era_at(text, place + 3, known)
        if end > place + 3 and before:
            return [Date(text.low[place], place, place + 1, -int(text.low[place]))]
    return []


def _is_year(text: Tokens, place: int, known: Calendar) -> bool:
    """Return whether four digits are a year, not a count: "1500 people", "$1500", "1500 km"."""
    following, before = text.at(place + 1), text.at(place - 1)
    if text.glued(place) and not before[:1].isalnum() and before not in {"(", "[", '"', "'", "-", "/", "~", ","}:
        return False
    if text.glued(place + 1) and (following[:1].isalpha() or following == "%"):
        return False
    if before in known.year_leads and before not in {"to", "of", "about", "around", "and", "or"}:
        return True
    if is_unit(following) or following in load_scales():
        return False
    counted = following in _PEOPLE or (following.endswith("s") and following.isalpha() and len(following) > 3)
    return not counted or following in {"was", "this", "his"}


def _parse_era_at(text: Tokens, place: int, known: Calendar) -> tuple[bool, int]:
    """Parse "BC", "CE", "v. Chr."; return whether it is before Christ, and where it ends."""
    low = text.at(place)
    if low in known.before_christ or low in known.after_christ:
        return low in known.before_christ, place + 1
    if low in {"v", "n"} and text.at(place + 1) == "." and text.at(place + 2) == "chr":
        return low == "v", place + 3
    return False, place


def _parse_centuries_before(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Parse "19th century", "nineteenth and twentieth centuries", "siglo XIX"; `place` has the word for century."""
    before, last = _parse_era_at(text, place + 1, known)
    if text.low[place] in known.century_first:
        value = parse_roman(text.words[place + 1].upper()) if place + 1 < len(text) else None
        return [_build_century(text, place, place + 2, value, before=False)] if value else []
    found: list[Date] = []
    end = place
    while True:
        end -= text.at(end - 1) == "-"
        number, first = _parse_ordinal_before(text, end)
        if number is None:
            return found[::-1]
        found.append(_build_century(text, first, last, number, before=before))
        last = end = first - 1
        if text.at(end) not in _RANGE and text.at(end) != ",":
            return found[::-1]


def _parse_ordinal_before(text: Tokens, end: int) -> tuple[int | None, int]:
    """Parse the ordinal that ends before a token; return it and where it begins."""
    low, ordinals = text.at(end - 1), load_numerals("en").ordinals
    if low in _ORDINAL or low == ".":
        digits = text.at(end - 2)
        return (int(digits) if digits.isdecimal() and len(digits) <= 2 else None), end - 2
    if low in ordinals:
        if text.at(end - 2) == "-" and text.at(end - 3) == "twenty":
            return 20 + ordinals[low], end - 3
        return ordinals[low], end - 1
    word = text.words[end - 1] if end > 0 else ""
    return parse_roman(word.removesuffix("e").removesuffix("è")) if word[:1].isupper() else None, end - 1


def _build_century(text: Tokens, first: int, last: int, number: int, *, before: bool) -> Date:
    years = (-100 * number, -100 * number + 99) if before else (100 * (number - 1) + 1, 100 * number)
    return Date(text.said(first, last), first, last, years=years)


def find_dates(text: Tokens) -> tuple[Date, ...]:
    """Return the dates of a text in order; they do not overlap."""
    known = _load_calendar()
    leads = known.leads
    places = [place for place, low in enumerate(text.low) if low in leads or low[0].isdecimal() or not low.isascii()]
    found: list[Date] = []
    beyond = 0
    for place in places:
        read = _parse_dates_at(text, place, known) if place >= beyond else []
        found += read
        beyond = max((date.last for date in read), default=beyond)
    return tuple(found)


def _parse_dates_at(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Return the dates that begin at a token; at the word for century, those that end there."""
    low, following = text.low[place], text.at(place + 1)
    if low[0].isdecimal() or is_han_numeral(low):
        parsers = (_parse_numeric_date, _parse_chinese_date, _parse_day_first, _parse_years_at)
        return next(filter(None, (parse(text, place, known) for parse in parsers)), [])
    by_word = (
        (known.ordinal_days, _parse_day_of),
        (known.short_months, _parse_month_first),
        (known.centuries, _parse_centuries_before),
    )
    for words, parse in by_word:
        if low in words:
            return parse(text, place, known)
    if low in known.after_christ and following.isdecimal() and len(following) <= 4:  # AD 70
        return [Date(text.said(place, place + 2), place, place + 2, int(following))]
    if low in known.weekdays:
        return [Date(text.words[place], place, place + 1, weekday=known.weekdays[low])]
    first = 1900 + known.decades.get(low, 0)
    return [Date(text.words[place], place, place + 1, years=(first, first + 9))] if low in known.decades else []


def _parse_numeric_date(text: Tokens, place: int, _known: Calendar) -> list[Date]:
    """Parse 1990-05-03, 03/05/1990 and 3.5.1990."""
    dotted = _DOTTED.fullmatch(text.low[place])
    last = place + 1 if dotted else place + 5
    if dotted:
        numbers = [str(part) for part in dotted.groups()]
    else:
        parts = text.low[place:last]
        if len(parts) < 5 or parts[1] != parts[3] or parts[1] not in "-/":
            return []
        numbers = [*parts[::2]]
        if not all(map(text.glued, range(place + 1, last))) or not all(map(str.isdecimal, numbers)):
            return []
    written = text.said(place, last)
    if len(numbers[0]) == 4:
        year, month, day = map(int, numbers)
        return [Date(written, place, last, year, month, day)] if _is_day(month, day) else []
    day, month, year = map(int, numbers)
    if len(numbers[2]) != 4 or not (_is_day(month, day) or _is_day(day, month)):
        return []
    return [Date(written, place, last, year, month, day, numeric=True)]


def _is_day(month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= 31


def _parse_chinese_date(text: Tokens, place: int, _known: Calendar) -> list[Date]:
    """Parse 1990年5月3日, in digits or in Chinese numerals, with any part missing."""
    parts: dict[str, int] = {}
    last = place
    for name, marks in (("year", _CJK_YEAR), ("month", _CJK_MONTH), ("day", _CJK_DAY)):
        low, end = text.at(last), last + 1
        if not low.isdecimal():
            end = next((at for at in range(last, len(text)) if not is_han_numeral(text.low[at])), len(text))
        if end > last and text.at(end).startswith(marks):
            parts[name] = int(low) if low.isdecimal() else parse_han(text.low[last:end])
            last = end + 1
    if not parts or set(parts) == {"day"} or not _is_day(parts.get("month", 1), parts.get("day", 1)):
        return []
    if set(parts) == {"year"} and parts["year"] < _FIRST_PLAIN_YEAR:
        return []
    return [Date(text.said(place, last), place, last, parts.get("year"), parts.get("month"), parts.get("day"))]


def _parse_day_first(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Parse 3 May 1990, 3rd of May, 3.-5. Mai 1990, 3 and 5 May."""
    days, end = _parse_days(text, place, place)
    month_at = _skip_tokens(text, end, known.joints)
    month = known.short_months.get(text.at(month_at)) if days else None
    if month is None or _is_verb(text, month_at, known):
        return []
    return _build_days(text, days, month, *_parse_year_after(text, month_at + 1, known))


def _parse_day_of(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Parse "the first of May", with or without a year."""
    month_at = place + 2
    month = known.short_months.get(text.at(month_at)) if text.at(place + 1) == "of" else None
    if month is None or _is_verb(text, month_at, known):
        return []
    year, last = _parse_year_after(text, month_at + 1, known)
    return [Date(text.said(place, last), place, last, year, month, known.ordinal_days[text.low[place]])]


def _is_verb(text: Tokens, place: int, known: Calendar) -> bool:
    """Return whether a month's name is an ordinary word here: "children under 16 may enter"."""
    return text.low[place] in known.verbs and text.words[place].islower() and not text.text.islower()


def _parse_days(text: Tokens, first: int, at: int) -> tuple[list[Span], int]:
    """Parse one or two day numbers; return each with where its date begins and ends, and where both end."""
    day, end = _parse_day(text, at)
    if day is None:
        return [], at
    second, beyond = _parse_day(text, end + 1) if text.at(end) in _RANGE else (None, end)
    if second is None:
        return [(day, first, end)], end
    return [(day, first, end), (second, end + 1, beyond)], beyond


def _build_days(text: Tokens, days: Sequence[Span], month: int, year: int | None, last: int) -> list[Date]:
    return [
        Date(text.said(start, last if start == days[-1][1] else stop), start, last, year, month, day)
        for day, start, stop in days
    ]


def _parse_day(text: Tokens, place: int) -> tuple[int | None, int]:
    """Parse the number of a day with its ordinal mark; return it and where it ends."""
    low = text.at(place)
    if not (low.isdecimal() and len(low) <= 2 and 1 <= int(low) <= 31):
        return None, place
    marked = text.glued(place + 1) and (text.at(place + 1) in _ORDINAL or text.at(place + 1) == ".")
    return int(low), place + 1 + marked


def _parse_month_first(text: Tokens, place: int, known: Calendar) -> list[Date]:
    """Parse May 3, 1990; May 3-5; May 1990; May."""
    if _is_verb(text, place, known):
        return []
    month = known.short_months[text.low[place]]
    at = place + 1 + (text.at(place + 1) == "." and text.glued(place + 1))
    days, end = _parse_days(text, place, at)
    if days and not (text.glued(days[0][2]) and text.at(days[0][2]) in {"%", ":"}):
        if text.at(end) in known.short_months:  # the second number belongs to the next month
            days, end = days[:1], days[0][2]
        return _build_days(text, days, month, *_parse_year_after(text, end, known))
    year, last = _parse_year_after(text, at, known)
    if year is not None:
        return [Date(text.said(place, last), place, last, year, month)]
    return [Date(text.words[place], place, place + 1, month=month)] if _is_month(text, place, known) else []


def _is_month(text: Tokens, place: int, known: Calendar) -> bool:
    """Return whether a month's name without a day or year means the month."""
    low, word = text.low[place], text.words[place]
    if low not in known.months:
        return False
    if low not in known.doubtful_months:
        return True
    following = text.words[place + 1] if place + 1 < len(text) else ""
    cased = word[0].isupper() or text.text.islower()
    return cased and text.at(place - 1) in known.month_leads and not following[:1].isupper()


def _parse_year_after(text: Tokens, place: int, known: Calendar) -> tuple[int | None, int]:
    """Parse a year after a month or a day; return it and where the date ends."""
    at = _skip_tokens(text, place, known.joints)
    low = text.at(at)
    if not low.isdecimal() or not 3 <= len(low) <= 4 or (text.glued(at + 1) and text.at(at + 1) in {"%", "s"}):
        return None, place
    before, end = _parse_era_at(text, at + 1, known)
    if len(low) == 3 and end == at + 1:
        return None, place
    return (-int(low) if before else int(low)), end


def _skip_tokens(text: Tokens, place: int, skipped: frozenset[str]) -> int:
    while text.at(place) in skipped or (text.at(place) in {".", "'"} and text.glued(place)):
        place += 1
    return place
