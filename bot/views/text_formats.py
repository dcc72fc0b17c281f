"""Format counts, times and tables for a terminal and for reports."""

from collections.abc import Iterable
from datetime import datetime, tzinfo
from typing import Protocol

from bot.views.text_layout import RecordTable

_MINUTE = 60  # seconds


class ProgressCallback(Protocol):
    def __call__(self, done: int, total: int | None, extra: str = "") -> None:
        """Show the progress: how many are `done` of the `total` (None if unknown), with the text `extra` next to it."""


def format_duration(seconds: float) -> str:
    """Format a duration: `40 s`, `3 min`, `1 h 20 min`."""
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / _MINUTE), _MINUTE)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def format_bytes(count: int) -> str:
    for unit, factor in (("TB", 10**12), ("GB", 10**9)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count / 10**6:.0f} MB" if count >= 10**6 else f"{count / 10**3:.0f} kB"


def format_timestamp(at: datetime | None) -> str | None:
    """Format a time as ISO 8601; None for None."""
    return at.isoformat() if at else None


def format_count(number: int, noun: str, plural: str = "") -> str:
    """Format a number with its noun: `1 fault`, `2 faults`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or f'{noun}s'}"


def format_moment(at: datetime | None, zone: tzinfo) -> str:
    """Format a time to the minute in a time zone; empty for none."""
    return at.astimezone(zone).strftime("%Y-%m-%d %H:%M") if at else ""


def build_table(*headings: str, numbers: Iterable[int] = ()) -> RecordTable:
    """Build an empty table; `numbers` are the indexes of right-aligned columns."""
    return RecordTable(headings, frozenset(numbers))
