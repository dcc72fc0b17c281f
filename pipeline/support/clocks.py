"""Times of day: "14:00", "2 pm", "noon", "half past seven" as one value each, that no other number has.

Unlike a duration (`units`) a time of day is told by its spelling, or by what stands behind the hour.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from pipeline.support.tokens import Tokens, is_word
from pipeline.support.units import Unit

CLOCK = (Unit("time of day", "clock", 0.0),)
"""What stands for a unit of a time of day."""
_NOON, _DAY, _HOUR = 12, 24, 60
_TIME = re.compile(r"(\d{1,2})([:.])([0-5]\d)")
_APART = 0.00001
"""What is added to the hours, so that 12:00 is no 12."""
_NAMED = {"noon": 12, "midday": 12, "midnight": 0}
_PARTS = {"half": 30, "quarter": 15}
_MORNING, _EVENING = frozenset({"am", "a.m.", "a.m"}), frozenset({"pm", "p.m.", "p.m"})
_AFTER_HOUR = frozenset({"o'clock", "uhr"})
_LEADS = frozenset({"at", "from", "until", "till", "by", "before", "after", "to", "um", "ab", "bis", "and", "between"})
_FOLLOWS = frozenset({"on", "and", "to", "or", "until", "till", "in", "every", "each"})


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day: its value, the other halves of the day that it may mean, and where it ends."""

    value: float
    halves: tuple[float, ...]
    last: int


def clock_at(text: Tokens, place: int, cardinals: Mapping[str, int], language: str) -> Clock | None:
    """Read the time of day that begins at a token, if there is one."""
    low = text.low[place]
    if low in _NAMED:
        return Clock(_value(_NAMED[low], 0), (), place + 1) if text.words[place].islower() else None
    if low in _PARTS:
        return _past(text, place, cardinals)
    written = _TIME.fullmatch(low)
    hour = int(written[1]) if written else int(low) if low.isdecimal() else cardinals.get(low, _DAY + 1)
    if hour > _DAY:
        return None
    marked = _marked(text, place + 1, hour, int(written[3]) if written else 0, language)
    if marked or not written or written[2] != ":":
        return marked
    read = _unmarked(hour, int(written[3]), place + 1)
    return Clock(read.value, (), read.last) if low[0] == "0" else read


def _marked(text: Tokens, at: int, hour: int, minute: int, language: str) -> Clock | None:
    """Read what stands behind an hour, if it makes it one of the day."""
    behind = text.at(at)
    if behind in _AFTER_HOUR:
        return _unmarked(hour, minute, at + 1)
    if behind not in _MORNING | _EVENING or hour > _NOON or (behind == "am" and language == "de"):
        return None
    return Clock(_value(hour % _NOON + _NOON * (behind in _EVENING), minute), (), at + 1)


def hour_meant(text: Tokens, first: int, last: int, value: float) -> tuple[float, ...]:
    """Return the time of day that a bare number may mean where it stands: "open from 8 to 12"."""
    behind = text.at(last)
    ends = not is_word(behind) or behind in _FOLLOWS
    return full_hour(value) if text.at(first - 1) in _LEADS and ends else ()


def full_hour(value: float) -> tuple[float, ...]:
    """Return a number of hours as a time of day; nothing where the day has no such hour."""
    return (_value(int(value), 0),) if value <= _DAY and value == int(value) else ()


def half_later(value: float) -> float:
    """Return the time of day twelve hours later."""
    return round((value + _NOON) % _DAY, 6)


@cache
def clock_words() -> frozenset[str]:
    """Return the words by which a time of day begins."""
    return frozenset(_NAMED) | frozenset(_PARTS)


def _past(text: Tokens, place: int, cardinals: Mapping[str, int]) -> Clock | None:
    """Read "half past seven", "quarter to two"."""
    low, side, hour = text.low[place], text.at(place + 1), text.at(place + 2)
    number = int(hour) if hour.isdecimal() else cardinals.get(hour, _DAY)
    if number > _NOON or side not in {"past", "to"} or (side == "to" and low == "half"):
        return None
    minutes = _PARTS[low] if side == "past" else _HOUR - _PARTS[low]
    hours = (number - (side == "to")) % _DAY
    return _marked(text, place + 3, hours, minutes, "en") or _unmarked(hours, minutes, place + 3)


def _unmarked(hour: int, minute: int, last: int) -> Clock:
    """Return a time that may be one of the evening where the hour allows it."""
    value = _value(hour, minute)
    return Clock(value, (half_later(value),) if 0 < hour <= _NOON else (), last)


def _value(hour: int, minute: int) -> float:
    """Return hours of the day and a share for the minutes so small that it is no other number."""
    return round(hour % _DAY + minute / 6000 + _APART, 6)
