"""Read entries of the record, and derive from them tables for people's queries: claims, their passages, and feedback.

If an entry is unreadable, something other than Footnote changed it, or the disk is failing: then it is reported, its
unreadable parts count as empty, and everything else is still read.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from storage.database.engine import split_chunks
from storage.database.schema import Moment, claim_passages, claims, entries, feedback, turn_documents, turns
from storage.types import DocumentId, EntryKind, LogEntry

TABLES = (claim_passages, claims, feedback)
RawRow = tuple[Any, ...]  # bytes as `render_raw` selects them, or fractions
StoredRows = Mapping[tuple[str, int], list[RawRow]]
"""The rows of tables by the table's name and the number of the entry that opened their turn; of feedback, its entry."""
ParsedRow = Mapping[str, Any]
"""An entry's row with its parsed body as `facts`, and perhaps the bodies of its turn's `steps` before it."""
STORED_AT = sa.type_coerce(entries.c.at, sa.Text).label("at")  # as stored, for `read_moment`
ENTRY_COLUMNS = (entries.c.seq, entries.c.turn_id, entries.c.kind, STORED_AT, entries.c.body)
NO_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)  # for an entry whose time cannot be read
_KINDS = frozenset(EntryKind) - {EntryKind.UNREADABLE}
_WITHHELD = "WITHHELD"  # the verdict in `claims` of a sentence that the gate did not let through
_DRAFTED = "retrieved"  # the origin of sentences that were written from passages
_MOST = 10**15  # larger figures are capped


def parse_entry(row: sa.Row[*tuple[Any, ...]]) -> LogEntry:
    """Return the entry of a row with `ENTRY_COLUMNS`. Its `damaged` names the parts that are unreadable."""
    kind = EntryKind(row.kind) if row.kind in _KINDS else EntryKind.UNREADABLE
    at, body = read_moment(row.at), _decode_object(row.body) if row.body else {}
    faults = (
        f"its kind, {row.kind!r}, is none that is known" if kind is EntryKind.UNREADABLE else "",
        "its moment cannot be read" if at is None else "",
        "its body cannot be read" if body is None else "",
    )
    return LogEntry(row.turn_id, kind, body or {}, row.seq, at, not row.body, ", ".join(filter(None, faults)))


def read_moment(stored: Any) -> datetime | None:
    """Return the moment of an entry in UTC; None if it is invalid."""
    try:
        moment = stored if isinstance(stored, datetime) else datetime.fromisoformat(stored)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def read_body(text: str) -> Mapping[str, Any]:
    """Return the body of an entry; empty if it was erased or is not a JSON object."""
    return _decode_object(text) or {}


def _decode_object(text: Any) -> dict[str, Any] | None:
    try:
        body = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def read_object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def read_objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def read_text(value: Any) -> str:
    """Return a text without characters that databases reject: halves of surrogate pairs, and the zero character."""
    return value.replace("\0", " ").encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def read_number(value: Any) -> float:
    return min(max(value, -_MOST), _MOST) if isinstance(value, int | float) else 0


def collect_hits(steps: Iterable[Mapping[str, Any]]) -> dict[str, DocumentId]:
    """Return the passages that steps found, each with its document."""
    hits = (hit for step in steps for hit in _list(step.get("hits")))
    named = (map(read_text, hit[:4]) for hit in hits if isinstance(hit, list) and hit[3:])
    return {passage: (corpus, document) for passage, _, corpus, document in named}


def _list_uncited(closed: Mapping[str, Any]) -> set[str]:
    """Return the passages behind a turn's verdicts that its answer does not cite: only its steps name their pages."""
    named = {passage for claim in read_objects(closed.get("claims")) for passage in _list_evidence(claim)}
    return named - {read_text(citation.get("passage_id")) for citation in read_objects(closed.get("citations"))}


def _list_evidence(claim: Mapping[str, Any]) -> list[str]:
    return [passage for passage in map(read_text, _list(claim.get("evidence"))) if passage]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def derive_claims(turn: int, closed: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of `claims` of a turn: its claims, other sentences that were shown, and the withheld ones."""
    shown = [read_text(said.get("text")) for said in read_objects(closed.get("sentences") or closed.get("spoken"))]
    rows = list[tuple[str, ...]]()
    for checked in read_objects(closed.get("claims")):
        claim = read_object(checked.get("claim"))
        parts = claim.get("text"), claim.get("origin"), checked.get("verdict"), checked.get("reasoning")
        rows.append(tuple(map(read_text, parts)))
    drafted = {text for text, origin, *_ in rows if origin == _DRAFTED}
    rows += [(text, _DRAFTED, "", "") for text in shown if text not in drafted]
    withheld = read_objects(closed.get("withheld"))
    rows += [(read_text(it.get("text")), _DRAFTED, _WITHHELD, read_text(it.get("reason"))) for it in withheld]
    names = ("text", "origin", "verdict", "reason")
    for number, row in enumerate(rows, 1):
        said = row[1] == _DRAFTED and row[2] != _WITHHELD and row[0] in shown
        yield {"turn": turn, "number": number, **dict(zip(names, row, strict=True)), "said": said}


def derive_passages(turn: int, closed: Mapping[str, Any], found: Mapping[str, DocumentId]) -> Iterator[dict[str, Any]]:
    """Yield the rows of `claim_passages` of a turn. `found` has the documents of the passages in its steps."""
    cited = {read_text(citation.get("passage_id")): citation for citation in read_objects(closed.get("citations"))}
    for number, claim in enumerate(read_objects(closed.get("claims")), 1):
        for position, passage in enumerate(_list_evidence(claim), 1):
            page = cited.get(passage) or dict(zip(("corpus", "document"), found.get(passage, ()), strict=False))
            row = {"turn": turn, "claim": number, "position": position, "passage": passage}
            yield row | {name: read_text(page.get(name)) for name in ("corpus", "document", "revision", "quote")}


def derive_feedback(turn: int, seq: int, at: Any, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of `feedback` of an entry: what was done, such as `up` or `rated`, by whom, and the comment."""
    texts = {column: read_text(body.get(name)) for column, name in _FEEDBACK.items()}
    rating = body.get("rating")
    rated = {"missed": body.get("missed") is True, "rating": rating if rating in range(6) else 0}
    return {"seq": seq, "turn": turn, "at": read_moment(at) or NO_MOMENT, **texts, **rated}


def refresh_claims(connection: sa.Connection, turn_ids: Collection[str]) -> None:
    """Derive claims and feedback of turns again, in the transaction that erased some of their entries."""
    for chosen in split_chunks(turn_ids):
        named = sa.select(turns.c.turn_id, turns.c.seq).where(turns.c.turn_id.in_(chosen))
        numbers: dict[str, int] = {row.turn_id: row.seq for row in connection.execute(named)}
        for table in TABLES:
            connection.execute(sa.delete(table).where(table.c.turn.in_(numbers.values())))
        wanted = entries.c.turn_id.in_(numbers), entries.c.kind.in_(_QUERIED), entries.c.body != ""
        rows = fetch_parsed(connection, sa.select(*ENTRY_COLUMNS).where(*wanted).order_by(entries.c.seq))
        closed, acts = ([row for row in rows if row["kind"] == kind] for kind in _QUERIED)
        insert_claims(connection, {numbers[row["turn_id"]]: row for row in closed})
        insert_feedback(connection, [(numbers[row["turn_id"]], row) for row in acts])


def fetch_parsed(connection: sa.Connection, query: sa.Select[Any]) -> list[ParsedRow]:
    return [{**row, "facts": read_body(row["body"])} for row in connection.execute(query).mappings()]


def insert_claims(connection: sa.Connection, closings: Mapping[int, ParsedRow]) -> None:
    """Insert the claims of turns, with their passages; `closings` are the turns' last entries by the turns' numbers."""
    found = _find_documents(connection, closings.values())
    rows, passages = list[dict[str, Any]](), list[dict[str, Any]]()
    for number, closing in closings.items():
        rows += derive_claims(number, closing["facts"])
        passages += derive_passages(number, closing["facts"], found.get(closing["turn_id"], {}))
    if rows:
        connection.execute(_CLAIM, rows)
    if passages:
        connection.execute(_SUPPORT, passages)


def _find_documents(connection: sa.Connection, closings: Iterable[ParsedRow]) -> dict[str, dict[str, DocumentId]]:
    """Return the documents of the passages that turns found before they were closed, if their claims need them."""
    found, ends = dict[str, dict[str, DocumentId]](), dict[str, int]()
    for row in closings:
        if uncited := _list_uncited(row["facts"]):
            found[row["turn_id"]] = collect_hits(map(read_body, row.get("steps", ())))
            if not uncited <= found[row["turn_id"]].keys():  # its steps were added before
                ends[row["turn_id"]] = row["seq"]
    for step in connection.execute(_FIND_STEPS, {"turn_ids": list(ends)}) if ends else ():
        if step.seq < ends[step.turn_id]:
            found[step.turn_id] |= collect_hits([read_body(step.body)])
    return found


def insert_feedback(connection: sa.Connection, acts: Sequence[tuple[int, ParsedRow]]) -> None:
    """Insert the feedback in these entries, each with the number of its turn."""
    if rows := [derive_feedback(turn, row["seq"], row["at"], row["facts"]) for turn, row in acts]:
        connection.execute(sa.delete(feedback).where(feedback.c.seq.in_([row["seq"] for row in rows])))
        connection.execute(sa.insert(feedback), rows)


def fetch_stored(connection: sa.Connection, closed: Sequence[str], acts: Sequence[int]) -> StoredRows:
    """Return the stored claims of the turns `closed`, and the stored rows of the feedback entries `acts`."""
    opened = entries.c.kind == EntryKind.TURN_OPENED.value, entries.c.turn_id.in_(closed)
    first = sa.select(sa.func.min(entries.c.seq)).where(*opened).group_by(entries.c.turn_id)
    openings = connection.execute(first).scalars().all()
    stored: defaultdict[tuple[str, int], list[RawRow]] = defaultdict(list)
    for table, (owner, _) in _SOURCES.items():
        for number, row in fetch_raw(connection, [*table.c], acts if table is feedback else openings, owner):
            stored[table.name, number].append(row)
    return stored


def fetch_raw(
    connection: sa.Connection, columns: Sequence[sa.Column[Any]], numbers: Sequence[int], owner: str, where: str = ""
) -> Iterator[tuple[int, RawRow]]:
    """Yield the rows with these numbers as their `owner`: values as `render_raw` selects them."""
    raw = ", ".join(render_raw(column, connection.dialect.name) for column in columns)
    chosen = where or f"{owner} IN :numbers"
    query = sa.text(f"SELECT {owner}, {raw} FROM {columns[0].table.name} WHERE {chosen}")  # noqa: S608 - our names
    for number, *row in connection.execute(query.bindparams(sa.bindparam("numbers", numbers, expanding=True))):
        yield number, tuple(value if isinstance(value, float) else bytes(value or b"") for value in row)


def is_derived(stored: Iterable[RawRow], rows: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether stored rows are those that were derived from an entry."""
    return sorted(stored) == sorted(tuple(map(encode_value, row.values())) for row in rows)


def list_strays(connection: sa.Connection) -> list[str]:
    """Return which tables have rows of turns that were never closed, or of entries that do not exist."""
    sources = [*((table.name, *source) for table, source in _SOURCES.items()), ("turns", "seq", _OPENED)]
    strays = {name: f"FROM {name} WHERE {owner} NOT IN ({source})" for name, owner, source in sources}
    counts = {name: connection.scalar(sa.text(f"SELECT count(*) {rest}")) for name, rest in strays.items()}
    return [f"rows of the table {name} that no entry has: {count:,}" for name, count in counts.items() if count]


def render_raw(column: sa.Column[Any], dialect: str) -> str:
    """Return the expression for the type and the value of a column: bytes, which are always readable, or a fraction."""
    value, kind = column.name, "text" if isinstance(column.type, sa.Text | Moment) else "integer"
    if isinstance(column.type, sa.Float):
        return f"CASE WHEN typeof({value}) = 'real' THEN {value} END" if dialect == "sqlite" else value
    if dialect == "sqlite":
        return f"CAST(typeof({value}) || {value} AS BLOB)"
    if isinstance(column.type, sa.Boolean):
        value = f"CAST({value} AS integer)"
    elif isinstance(column.type, Moment):
        value = f"to_char({value} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"
    return f"convert_to('{kind}' || {value}, 'UTF8')"


def encode_value(value: Any) -> bytes:
    """Return the type and the value of a stored value, as `render_raw` selects them."""
    if isinstance(value, datetime):
        value = f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"
    return f"text{value}".encode() if isinstance(value, str) else f"integer{int(value)}".encode()


_CLOSED = """SELECT opened.seq FROM entries AS opened JOIN entries AS closed ON closed.turn_id = opened.turn_id
    WHERE opened.kind = 'turn_opened' AND closed.kind = 'turn_closed'"""
_OPENED = "SELECT min(seq) FROM entries WHERE kind = 'turn_opened' GROUP BY turn_id"
_SOURCES = dict.fromkeys((claims, claim_passages), ("turn", _CLOSED))
_SOURCES[turn_documents] = "seq", _CLOSED
_SOURCES[feedback] = "seq", "SELECT seq FROM entries WHERE kind = 'feedback'"
_FEEDBACK = {"what": "what", "person": "by", "comment": "comment"}
_QUERIED = (EntryKind.TURN_CLOSED.value, EntryKind.FEEDBACK.value)
_CLAIM, _SUPPORT = sa.insert(claims), sa.insert(claim_passages)  # made once, as in `turn_index`
_FIND_STEPS = sa.select(entries.c.turn_id, entries.c.seq, entries.c.body).where(
    entries.c.turn_id.in_(sa.bindparam("turn_ids", expanding=True)), entries.c.kind == EntryKind.STEP.value
)
