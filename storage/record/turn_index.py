"""Parse stored entries of the record, and maintain the tables that are derived from them.

These tables serve to find turns and to sum up spending. They are written in the transaction that adds the entries, and
can be rebuilt. If an entry is unreadable, something other than Footnote changed it, or the disk is failing: then it is
reported, its unreadable parts count as empty, and everything else is still read.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    Select,
    Text,
    bindparam,
    delete,
    func,
    insert,
    select,
    tuple_,
    type_coerce,
    update,
)

from storage.database.engine import Database, decode_json, split_chunks
from storage.database.schema import document_titles, entries, spending, turn_documents, turn_words, turns
from storage.database.worker_threads import WritePriority
from storage.language.words import terms
from storage.types import DocumentId, EntryKind, LogEntry, SpendingTotal, Verdict

STORED_AT = type_coerce(entries.c.at, Text).label("at")  # as stored, for `read_moment`
ENTRY_COLUMNS = (entries.c.seq, entries.c.turn_id, entries.c.kind, STORED_AT, entries.c.body)
_KINDS = frozenset(EntryKind) - {EntryKind.UNREADABLE}


def parse_entry(row: Row[*tuple[Any, ...]]) -> LogEntry:
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


def _decode_object(text: Any) -> dict[str, Any] | None:
    try:
        body = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


ERASED = "erased"  # the status of a turn whose closing entry was erased before the index was rebuilt
_OPINIONS = {"up", "down"}
_PAGE = 500
_NO_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)  # for a turn whose time cannot be read
_MOST = 10**15  # larger figures are capped
EntryRow = Mapping[str, Any]


def index_entries(connection: Connection, rows: Iterable[EntryRow]) -> None:
    """Index entries in the transaction that has just inserted them."""
    if chosen := [row for row in rows if row["kind"] in _INDEXED]:
        _index_rows(connection, chosen)


def index_record(connection: Connection) -> None:
    """Index all entries, in the transaction that created the index tables."""
    last: int | None = 0
    while last is not None:
        last = _index_page(connection, last)


async def rebuild_index(database: Database) -> int:
    """Rebuild the index from the entries, page by page; return the number of turns. Raises `StorageError`."""
    await database.write(clear_turns, WritePriority.BATCH)
    last: int | None = 0
    while last is not None:
        last = await database.write(partial(_index_page, after=last), WritePriority.BATCH)
    count = select(func.count()).select_from(turns)
    return await database.read(lambda connection: connection.execute(count).scalar_one())


def _index_page(connection: Connection, after: int) -> int | None:
    """Index the next page of entries, and return the number of its last one; None at the end."""
    chosen = entries.c.kind.in_(_INDEXED), entries.c.seq > after
    rows = connection.execute(select(*ENTRY_COLUMNS).where(*chosen).order_by(entries.c.seq).limit(_PAGE)).mappings()
    page = [dict(row) for row in rows]
    _index_rows(connection, page)
    return page[-1]["seq"] if page else None


def clear_turns(connection: Connection, turn_ids: Collection[str] | None = None) -> None:
    """Remove turns from the index; by default all turns, which can be rebuilt from their entries."""
    for chosen in [None] if turn_ids is None else split_chunks(turn_ids):
        numbers = select(turns.c.seq).where(~turns.c.erased) if chosen is None else _numbers_of(chosen)
        connection.execute(delete(turn_words).where(turn_words.c.rowid.in_(numbers)))
        connection.execute(delete(turn_documents).where(turn_documents.c.seq.in_(numbers)))
        connection.execute(delete(turns).where(turns.c.seq.in_(numbers)))
    _drop_removed_words(connection)


def blank_turns(connection: Connection, turn_ids: Collection[str]) -> None:
    """Remove texts and askers of turns from the index, but keep their figures."""
    nothing = {"erased": True, **dict.fromkeys(("question", "asker", "asker_name", "channel_name"), "")}
    for chosen in split_chunks(turn_ids):
        connection.execute(delete(turn_words).where(turn_words.c.rowid.in_(_numbers_of(chosen))))
        connection.execute(update(turns).where(turns.c.turn_id.in_(chosen)).values(nothing))
    _drop_removed_words(connection)


def _numbers_of(turn_ids: Sequence[str]) -> Select[int]:
    return select(turns.c.seq).where(turns.c.turn_id.in_(turn_ids))


def _drop_removed_words(connection: Connection) -> None:
    """Merge the segments of SQLite's text index, since the terms of removed rows stay in their segments until then."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("INSERT INTO turn_words (turn_words) VALUES ('optimize')")


@dataclass(frozen=True, slots=True)
class _IndexedTurn:
    seq: int
    question: str
    closed: bool  # whether it was already closed


IndexedRows = Sequence[tuple[_IndexedTurn, EntryRow]]


def _index_rows(connection: Connection, rows: Sequence[EntryRow]) -> None:
    known = _find_turns(connection, {row["turn_id"] for row in rows})
    opened = (row for row in reversed(rows) if row["kind"] == EntryKind.TURN_OPENED.value)
    # A turn's first entry opens it.
    if new := {row["turn_id"]: _describe_opening(row) for row in opened if row["turn_id"] not in known}:
        connection.execute(_OPEN, list(new.values()))
        known |= {name: _IndexedTurn(row["seq"], row["question"], closed=False) for name, row in new.items()}
    # Erased turns keep their earlier figures.
    pairs = [(known[row["turn_id"]], row) for row in rows if row["turn_id"] in known]
    pairs = [(turn, row) for turn, row in pairs if row["body"] or not turn.closed]
    for kind, index in _INDEXERS.items():
        if chosen := [(turn, row) for turn, row in pairs if row["kind"] == kind]:
            index(connection, chosen)


def _find_turns(connection: Connection, turn_ids: Collection[str]) -> dict[str, _IndexedTurn]:
    rows = connection.execute(_FIND, {"turn_ids": list(turn_ids)})
    return {row.turn_id: _IndexedTurn(row.seq, row.question, closed=bool(row.status)) for row in rows}


def _describe_opening(row: EntryRow) -> dict[str, Any]:
    body = read_body(row["body"])
    asker = _object(body.get("asker"))
    platform, workspace = _text(asker.get("platform")), _text(asker.get("workspace"))
    place = f"{platform}:{workspace}/"
    return {
        "seq": row["seq"],
        "turn_id": row["turn_id"],
        "at": read_moment(row["at"]) or _NO_MOMENT,
        "task": _text(body.get("task")),
        "platform": platform,
        "workspace": workspace,
        "channel": place + _text(asker["channel"]) if asker.get("channel") else "",
        "channel_name": _text(asker.get("channel_name")),
        "asker": place + _text(asker["user"]) if asker.get("user") else "",
        "asker_name": _text(asker.get("name")),
        "question": _text(body.get("question")),
        "system": _text(body.get("system")),
        "retracted": False,
        "erased": not row["body"],
        **dict.fromkeys(("status", "model", "outcome"), ""),
    }


def _index_closings(connection: Connection, chosen: IndexedRows) -> None:
    last = {turn.seq: (turn, read_body(row["body"]), row) for turn, row in chosen}
    connection.execute(_CLOSE, [_describe_end(turn, body, row) for turn, body, row in last.values()])
    if again := [number for number, (turn, _, _) in last.items() if turn.closed]:
        connection.execute(delete(turn_words).where(turn_words.c.rowid.in_(again)))
        connection.execute(delete(turn_documents).where(turn_documents.c.seq.in_(again)))
    texts_of = {number: (turn.question, _find_answer(body)) for number, (turn, body, _) in last.items()}
    connection.execute(_SPEAK, [{"rowid": number, "terms": list_terms(*texts)} for number, texts in texts_of.items()])
    _index_documents(connection, {number: body for number, (_, body, _) in last.items()})


def _describe_end(turn: _IndexedTurn, body: Mapping[str, Any], row: EntryRow) -> dict[str, Any]:
    usage = _object(body.get("usage"))
    verdicts = [_text(claim.get("verdict")) for claim in _objects(body.get("claims"))]
    return {
        "number": turn.seq,
        "status": _text(body.get("status")) if row["body"] else ERASED,
        "model": _text(body.get("model")),
        "sentences": len(_objects(body.get("sentences"))),
        "withheld": len(_objects(body.get("withheld"))),
        "claims": len(verdicts),
        "supported": verdicts.count(Verdict.SUPPORTS.value),
        "refuted": verdicts.count(Verdict.REFUTES.value),
        "tokens": int(_number(usage.get("prompt_tokens")) + _number(usage.get("completion_tokens"))),
        "seconds": _number(body.get("seconds")),
        "cost": _number(usage.get("cost")),
    }


def _find_answer(closed: Mapping[str, Any]) -> str:
    """Return the text of a turn's answer; empty if a fixed text was shown instead of an answer."""
    return _text(closed.get("text")) if closed.get("status") in {"answered", "chatted"} else ""


def _index_documents(connection: Connection, closed: Mapping[int, Mapping[str, Any]]) -> None:
    titles, rows = dict[DocumentId, str](), list[dict[str, Any]]()
    for number, body in closed.items():
        cited = _list_documents(body.get("citations"), "document")
        nearest = _list_documents([page.get("document") for page in _objects(body.get("nearest"))], "key")
        listed = [(key, True) for key in cited] + [(key, False) for key in nearest if key not in cited]
        rows += [{"corpus": key[0], "document": key[1], "cited": by, "seq": number} for key, by in listed]
        titles |= nearest | cited
    if rows:
        connection.execute(_CITE, rows)
        _note_titles(connection, titles)


def _list_documents(named: Any, key: str) -> dict[DocumentId, str]:
    """Return the documents in these JSON objects, with their titles. `key` is the field with a document's key."""
    rows = _objects(named)
    return {(_text(row.get("corpus")), _text(row.get(key))): _text(row.get("title")) for row in rows}


def _note_titles(connection: Connection, titles: Mapping[DocumentId, str]) -> None:
    for chunk in split_chunks(titles):
        known = {(row.corpus, row.document): row.title for row in connection.execute(_FIND_TITLES, {"keys": chunk})}
        if changed := [key for key in chunk if known.get(key) != titles[key]]:
            connection.execute(delete(document_titles).where(_TITLE_KEY.in_(changed)))
            new = [{"corpus": key[0], "document": key[1], "title": titles[key]} for key in changed]
            connection.execute(insert(document_titles), new)


def _index_deliveries(connection: Connection, chosen: IndexedRows) -> None:
    outcomes = [(turn.seq, _text(read_body(row["body"]).get("outcome"))) for turn, row in chosen]
    connection.execute(_DELIVER, [{"number": number, "outcome": outcome} for number, outcome in outcomes])


def _index_edits(connection: Connection, chosen: IndexedRows) -> None:
    retracted = [turn.seq for turn, row in chosen if read_body(row["body"]).get("retracted")]
    connection.execute(update(turns).where(turns.c.seq.in_(retracted)).values(retracted=True))


def _index_feedback(connection: Connection, chosen: IndexedRows) -> None:
    """Count the feedback on turns; of several ratings by one person, only the last."""
    numbers = {row["turn_id"]: turn.seq for turn, row in chosen if read_body(row["body"]).get("what") in _OPINIONS}
    for turn_id, number in numbers.items():
        acts = entries.c.turn_id == turn_id, entries.c.kind == EntryKind.FEEDBACK.value
        bodies = connection.execute(select(entries.c.body).where(*acts).order_by(entries.c.seq)).scalars()
        opinions = [body for body in map(read_body, bodies) if body.get("what") in _OPINIONS]
        last = [*{_text(body.get("by")): body["what"] for body in opinions}.values()]
        counts = {what: last.count(what) for what in _OPINIONS}
        connection.execute(update(turns).where(turns.c.seq == number).values(counts))


_INDEXERS: Mapping[str, Callable[[Connection, IndexedRows], None]] = {
    EntryKind.TURN_CLOSED.value: _index_closings,
    EntryKind.DELIVERED.value: _index_deliveries,
    EntryKind.EDITED.value: _index_edits,
    EntryKind.FEEDBACK.value: _index_feedback,
}
_INDEXED = frozenset({EntryKind.TURN_OPENED.value, *_INDEXERS})

# Statements are made once: to make one takes longer than to run it.
_ENDS = (
    "status", "model", "sentences", "withheld", "claims", "supported", "refuted", "tokens", "seconds", "cost"
)  # fmt: skip
_TITLE_KEY = tuple_(document_titles.c.corpus, document_titles.c.document)
_FIND = select(turns.c.turn_id, turns.c.seq, turns.c.question, turns.c.status).where(
    turns.c.turn_id.in_(bindparam("turn_ids", expanding=True))
)
_FIND_TITLES = select(document_titles).where(_TITLE_KEY.in_(bindparam("keys", expanding=True)))
_OPEN, _SPEAK, _CITE = insert(turns), insert(turn_words), insert(turn_documents)
_THIS = turns.c.seq == bindparam("number")
_CLOSE = update(turns).where(_THIS).values({name: bindparam(name) for name in _ENDS})
_DELIVER = update(turns).where(_THIS).values(outcome=bindparam("outcome"))


def list_terms(*texts: str) -> str:
    """Return the index terms of texts, joined by spaces. No language is assumed: a search text has none either."""
    return " ".join(term for text in texts for term in terms(text))


def read_body(text: str) -> Mapping[str, Any]:
    """Return the body of an entry; empty if it was erased or is not a JSON object."""
    return _decode_object(text) or {}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """Return a text without characters that databases reject: halves of surrogate pairs, and the zero character."""
    return value.replace("\0", " ").encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _number(value: Any) -> float:
    return min(max(value, -_MOST), _MOST) if isinstance(value, int | float) else 0


@dataclass(frozen=True)
class Spending:
    """The cost of turns. Its methods raise `StorageError`."""

    database: Database

    async def total(self, *, since: datetime, platform_user: str = "", channel: str = "") -> SpendingTotal:
        """Return the total cost of the turns closed since a moment, optionally only of one user or channel.

        Both are named as in `slack:T1/U1`.
        """
        sums = func.coalesce(func.sum(spending.c.tokens), 0), func.coalesce(func.sum(spending.c.cost), 0.0)
        query = select(func.count(), *sums).select_from(spending).where(spending.c.at >= since)
        if platform_user:
            query = query.where(spending.c.asker == platform_user)
        if channel:
            query = query.where(spending.c.channel == channel)
        turns, tokens, cost = await self.database.read(lambda connection: connection.execute(query).one())
        return SpendingTotal(turns, int(tokens), float(cost))


def record_spending(connection: Connection, closings: Sequence[Mapping[str, Any]]) -> None:
    """Record the cost of turns, in the transaction that has inserted and indexed their closing entries."""
    openings = {
        row.turn_id: row for row in connection.execute(_FIND_ASKERS, {"turns": [row["turn_id"] for row in closings]})
    }
    connection.execute(_SPEND, [_describe_spending(row, openings.get(row["turn_id"])) for row in closings])


_FIND_ASKERS = select(turns.c.turn_id, turns.c.platform, turns.c.channel, turns.c.asker).where(
    turns.c.turn_id.in_(bindparam("turns", expanding=True))
)
_SPEND = insert(spending)


def _describe_spending(row: Mapping[str, Any], opening: Row[str, str, str, str] | None) -> dict[str, Any]:
    where = opening._asdict() if opening else dict.fromkeys(("platform", "channel", "asker"), "")
    about = {name: row[name] for name in ("seq", "turn_id", "at")}
    return {**where, **about, **measure_spending(decode_json(row["body"]))}


def measure_spending(closed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cost of a turn by the body of its closing entry. Missing figures count as 0. Pure."""
    usage = closed.get("usage") or {}
    tokens = (usage.get("prompt_tokens") or 0) + (usage.get("completion_tokens") or 0)
    return {"tokens": tokens, "cost": usage.get("cost") or 0.0}
