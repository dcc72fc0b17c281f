"""What a date is and when one covers another; and the calendar's words in several languages, from `calendar.json`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources


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


@dataclass(frozen=True, slots=True)
class Calendar:
    """Words in plain lower case, with the number that they stand for."""

    months: Mapping[str, int]
    """Names that may stand alone, 1 to 12."""
    short_months: Mapping[str, int]
    """Names and abbreviations that may stand beside a day or a year."""
    doubtful_months: frozenset[str]
    """Months that are also verbs, planets or given names."""
    verbs: frozenset[str]
    """Months that are months only with a capital, or where a text has none."""
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
    leads: frozenset[str]
    """Every word at which a date may be read, if there is one."""


@cache
def calendar() -> Calendar:
    """Read the words, once."""
    data = json.loads(resources.files(__package__).joinpath("calendar.json").read_text(encoding="utf-8"))
    sets = {
        key: frozenset(data[key].split())
        for key in (
            "doubtful_months", "verbs", "centuries", "century_first", "before_christ", "after_christ", "month_leads",
            "year_leads", "joints",
        )
    }  # fmt: skip
    months, weekdays = _numbered(data["months"]), _numbered(data["weekdays"])
    ordinal_days = _numbered(data["ordinal_days"])
    beside = {**_numbered(data["short_months"]), **months}
    return Calendar(
        months=months,
        short_months=beside,
        ordinal_days=ordinal_days,
        weekdays=weekdays,
        decades=data["decades"],
        leads=frozenset(
            {*beside, *weekdays, *ordinal_days, *data["decades"], *sets["centuries"], *sets["after_christ"]}
        ),
        **sets,
    )


def _numbered(lines: Sequence[str]) -> dict[str, int]:
    return {word: number for number, line in enumerate(lines, start=1) for word in line.split()}
