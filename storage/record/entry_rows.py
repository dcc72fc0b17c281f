"""Read entries of the record as they are stored.

What no version wrote was changed by another hand, or by a failing disk. It is told, and hides neither the rest of its
entry nor other entries: whoever reads the record needs them then more than ever.
"""

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, Text, type_coerce

from storage.database.schema import entries
from storage.types import EntryKind, LogEntry

STORED_AT = type_coerce(entries.c.at, Text).label("at")  # as the database has it; for `read_moment`
ENTRY_COLUMNS = (entries.c.seq, entries.c.turn_id, entries.c.kind, STORED_AT, entries.c.body)
_KINDS = frozenset(EntryKind) - {EntryKind.UNREADABLE}


def parse_entry(row: Row[*tuple[Any, ...]]) -> LogEntry:
    """Make an entry of a row of `ENTRY_COLUMNS`; `damaged` tells what of it cannot be read."""
    kind = EntryKind(row.kind) if row.kind in _KINDS else EntryKind.UNREADABLE
    at, body = read_moment(row.at), _decode_object(row.body) if row.body else {}
    faults = (
        f"its kind, {row.kind!r}, is none that is known" if kind is EntryKind.UNREADABLE else "",
        "its moment cannot be read" if at is None else "",
        "its body cannot be read" if body is None else "",
    )
    return LogEntry(row.turn_id, kind, body or {}, row.seq, at, not row.body, ", ".join(filter(None, faults)))


def read_moment(stored: Any) -> datetime | None:
    """Return the moment of an entry in UTC; None for what is none."""
    try:
        moment = stored if isinstance(stored, datetime) else datetime.fromisoformat(stored)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def _decode_object(text: Any) -> dict[str, Any] | None:
    try:
        body = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None
