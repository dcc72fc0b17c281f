"""Dates as documents write them -> datetimes with a time zone. Pure."""

import re
from datetime import UTC, date, datetime, time
from email.utils import parsedate_to_datetime

_PDF = re.compile(r"(?:D:)?(\d{4})(\d{2})?(\d{2})?(\d{2})?(\d{2})?(\d{2})?(?:(Z)|([+-]\d{2})'?(\d{2})?'?)?")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NAMES = {name: at for at, month in enumerate(_MONTHS, 1) for name in (month, month[:3], month[:4])}
_WRITTEN = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?P<day>\d{1,2})\. ?(?P<month>\d{1,2})\. ?(?P<year>\d{4})",
        r"(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})",
        r"(?P<year>\d{4})-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?",
        r"(?P<day>\d{1,2})(?:st|nd|rd|th)? (?P<name>[a-z]{3,9})\.?,? (?P<year>\d{4})",
        r"(?P<name>[a-z]{3,9})\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?,? (?P<year>\d{4})",
    )
)
"""How people write a day. Not `02/03/2024`, which is another day on each side of the Atlantic."""


def parsed(said: object) -> datetime | None:
    """A date, a datetime or a text: ISO 8601, as in e-mail, or as people write a day; None if it is none.

    Without a zone it is UTC; a month alone is its first day.
    """
    if isinstance(said, datetime):
        return _zoned(said)
    if isinstance(said, date):
        return datetime.combine(said, time(), UTC)
    text = " ".join(str(said or "").split())
    for parse in (_written, datetime.fromisoformat, parsedate_to_datetime):
        try:
            return _zoned(parse(text))
        except (ValueError, OverflowError):
            continue
    return None


def parsed_pdf(said: str) -> datetime | None:
    """A date as PDF writes it: `D:20240131120000+01'00'`, its end often left out."""
    match = _PDF.fullmatch(said.strip())
    if not match:
        return None
    year, month, day, hour, minute, second, _, zone_hours, zone_minutes = match.groups()
    zone = f"{zone_hours}:{zone_minutes or '00'}" if zone_hours else "+00:00"
    iso = f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:{second or '00'}{zone}"
    return parsed(iso)


def _written(text: str) -> datetime:
    """Raises `ValueError`."""
    match = next(filter(None, (form.fullmatch(text) for form in _WRITTEN)), None)
    if match is None:
        raise ValueError(f"{text!r} is no date that people write")
    said = match.groupdict()
    month = _month(said["name"]) if "name" in said else int(said["month"])
    return datetime(int(said["year"]), month, int(said["day"] or 1), tzinfo=UTC)


def _month(name: str) -> int:
    if name.lower() not in _NAMES:
        raise ValueError(f"{name!r} is no month")
    return _NAMES[name.lower()]


def _zoned(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
