"""Dates as documents write them -> datetimes with a time zone. Pure."""

import re
from datetime import UTC, date, datetime, time
from email.utils import parsedate_to_datetime

_PDF = re.compile(r"(?:D:)?(\d{4})(\d{2})?(\d{2})?(\d{2})?(\d{2})?(\d{2})?(?:(Z)|([+-]\d{2})'?(\d{2})?'?)?")


def parsed(said: object) -> datetime | None:
    """A date, a datetime or a text in ISO 8601 or as in e-mail; None if it is none. Without a zone it is UTC."""
    if isinstance(said, datetime):
        return _zoned(said)
    if isinstance(said, date):
        return datetime.combine(said, time(), UTC)
    text = str(said or "").strip()
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
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


def _zoned(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
