"""Compare the table `turns`, by which turns are listed and searched, with the entries that it is derived from.

Rows are derived by the functions that write them. Columns derived from erased entries are not compared.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from storage.database.schema import entries, turns
from storage.record.entry_rows import ParsedRow, encode_value, fetch_raw, read_body, read_text
from storage.record.proof.verification import AuditFinding
from storage.record.turn_index import ENDS, TEXTS, count_ratings, describe_end, describe_opening

_COLUMNS = tuple(entries.c[name] for name in ("turn_id", "kind", "at", "body"))
_ENTRIES = """kind IN ('turn_opened', 'turn_closed', 'delivered', 'edited', 'feedback') AND turn_id IN
    (SELECT turn_id FROM entries WHERE seq IN :numbers) ORDER BY entries.seq"""
_NEVER: ParsedRow = {"body": "{}", "facts": {}}
_SOURCES: Mapping[str, Sequence[str]] = {  # columns by the kind of entries that they are derived from
    "turn_opened": ("task", "platform", "workspace", "channel", "system", "erased", *TEXTS),
    "turn_closed": ENDS,
    "delivered": ("outcome",),
    "edited": ("retracted",),
    "feedback": ("up", "down"),
}


def check_turns(connection: Connection, openings: Sequence[int]) -> list[AuditFinding]:
    """Return the findings about the rows of turns that these entries opened."""
    rows = fetch_raw(connection, [*turns.c], openings, "seq")
    stored = {number: dict(zip(turns.c.keys(), row, strict=True)) for number, row in rows}
    records = defaultdict[bytes, dict[str, list[ParsedRow]]](lambda: {kind: [] for kind in _SOURCES})
    for number, (turn_id, *parts) in fetch_raw(connection, _COLUMNS, openings, "seq", _ENTRIES):
        kind, at, body = (part.decode("utf-8", "backslashreplace").removeprefix("text") for part in parts)
        row = {"seq": number, "at": at, "body": body, "facts": read_body(body)}
        records[turn_id][kind].append(row | {"turn_id": turn_id.decode("utf-8", "backslashreplace")[4:]})
    faults = {
        first["turn_id"]: _find_fault(record, stored.get(first["seq"]))
        for record in records.values()
        if (first := record["turn_opened"][0])["seq"] in openings  # otherwise it was opened twice
    }
    return [AuditFinding(turn_id, f"its row of the table turns {fault}") for turn_id, fault in faults.items() if fault]


def _find_fault(record: Mapping[str, Sequence[ParsedRow]], stored: Mapping[str, Any] | None) -> str:
    if stored is None:
        return "was removed"
    acts = [(read_text(row["facts"].get("by")), read_text(row["facts"].get("what"))) for row in record["feedback"]]
    derived: dict[str, Any] = {
        **describe_opening(record["turn_opened"][0]),
        **describe_end(0, [_NEVER, *record["turn_closed"]][-1]),
        "outcome": read_text([_NEVER, *record["delivered"]][-1]["facts"].get("outcome")),
        "retracted": any(row["facts"].get("retracted") for row in record["edited"]),
        **count_ratings(acts),
    }
    blank = [kind for kind, rows in record.items() if not all(row["body"] for row in rows)]
    unknown = {name for kind in blank for name in _SOURCES[kind]} - ({"retracted"} if derived["retracted"] else set())
    if stored["erased"] != encode_value(value=False):  # otherwise its opening only quoted an erased text
        unknown -= {"erased", *TEXTS}
    pairs = [(name, value, derived[name]) for name, value in stored.items() if name not in unknown]
    changed = [name for name, value, new in pairs if value != (new if isinstance(value, float) else encode_value(new))]
    return f"was changed: {', '.join(changed)}" if changed else ""
