"""The words of the calendar in several languages, read from `calendar.json`: data for `dates`, and nothing else."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Calendar:
    """Words in plain lower case, with the number that they stand for."""

    months: Mapping[str, int]
    """Names that may stand alone, 1 to 12."""
    short_months: Mapping[str, int]
    """Names and abbreviations that may stand beside a day or a year."""
    doubtful_months: frozenset[str]
    """Months that are also verbs, planets or given names."""
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
            "doubtful_months", "centuries", "century_first", "before_christ", "after_christ", "month_leads",
            "year_leads", "joints",
        )
    }  # fmt: skip
    months, weekdays = _numbered(data["months"]), _numbered(data["weekdays"])
    beside = {**_numbered(data["short_months"]), **months}
    return Calendar(
        months=months,
        short_months=beside,
        weekdays=weekdays,
        decades=data["decades"],
        leads=frozenset({*beside, *weekdays, *data["decades"], *sets["centuries"], *sets["after_christ"]}),
        **sets,
    )


def _numbered(lines: Sequence[str]) -> dict[str, int]:
    return {word: number for number, line in enumerate(lines, start=1) for word in line.split()}
