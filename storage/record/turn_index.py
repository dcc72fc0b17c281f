"""Maintain the tables that are derived from the entries of the record.

They serve to find turns, to query claims, and to sum up spending. They are written in the transaction that adds the
entries, and can be rebuilt.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, tuple_, update

from storage.database.engine import Database, split_chunks
from storage.database.schema import document_titles, entries, feedback, spending, turn_documents, turn_words, turns
from storage.database.worker_threads import WritePriority
from storage.language.words import terms
from storage.record.entry_rows import (
    ENTRY_COLUMNS,
    NO_MOMENT,
    TABLES,
    ParsedRow,
    fetch_parsed,
    insert_claims,
    insert_feedback,
    read_body,
    read_moment,
    read_number,
    read_object,
    read_objects,
    read_text,
)  # fmt: skip
from storage.types import DocumentId, EntryKind, SpendingTotal, Verdict

ERASED = "erased"  # the status of a turn whose closing entry was erased before the index was rebuilt
_OPINIONS = {"up", "down"}
TEXTS = ("question", "asker", "asker_name", "channel_name")  # columns that are erased
_PAGE = 500


def index_entries(connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    """Index entries, and record the cost of turns, in the transaction that has just inserted the entries."""
    steps, chosen = dict[str, list[str]](), list[ParsedRow]()
    for row in rows:
        if row["kind"] == EntryKind.STEP.value:
            steps.setdefault(row["turn_id"], []).append(row["body"])
        elif row["kind"] in _INDEXED:
            chosen.append({**row, "facts": read_body(row["body"]), "steps": steps.get(row["turn_id"], ())})
    if chosen:
        known = _index_rows(connection, chosen)
        if costs := [_describe_spending(row, known) for row in chosen if row["kind"] == EntryKind.TURN_CLOSED.value]:
            connection.execute(_SPEND, costs)


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
    page = fetch_parsed(connection, select(*ENTRY_COLUMNS).where(*chosen).order_by(entries.c.seq).limit(_PAGE))
    if page:
        _index_rows(connection, page)
    return page[-1]["seq"] if page else None


def clear_turns(connection: Connection) -> None:
    """Remove all turns from the index, except erased ones: their figures cannot be rebuilt from their entries."""
    blank = select(entries.c.seq).where(entries.c.kind == EntryKind.TURN_OPENED.value, entries.c.body == "")
    removed = ~(turns.c.erased & turns.c.seq.in_(blank))
    numbers = select(turns.c.seq).where(removed)
    connection.execute(delete(turn_words).where(turn_words.c.rowid.in_(numbers)))
    connection.execute(delete(turn_documents).where(turn_documents.c.seq.in_(numbers)))
    for table in TABLES:  # erased turns have no rows there
        connection.execute(delete(table))
    connection.execute(delete(turns).where(removed))
    for table, key in ((turn_words, turn_words.c.rowid), (turn_documents, turn_documents.c.seq)):
        connection.execute(delete(table).where(key.not_in(select(turns.c.seq))))
    _drop_removed_words(connection)


def blank_turns(connection: Connection, turn_ids: Collection[str]) -> None:
    """Remove texts and askers of turns from the index, but keep their figures."""
    nothing = {"erased": True, **dict.fromkeys(TEXTS, "")}
    for chosen in split_chunks(turn_ids):
        theirs = turns.c.turn_id.in_(chosen)
        connection.execute(delete(turn_words).where(turn_words.c.rowid.in_(select(turns.c.seq).where(theirs))))
        connection.execute(update(turns).where(theirs).values(nothing))
    _drop_removed_words(connection)


def _drop_removed_words(connection: Connection) -> None:
    """Merge the segments of SQLite's text index, since the terms of removed rows stay in their segments until then."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("INSERT INTO turn_words (turn_words) VALUES ('optimize')")


@dataclass(frozen=True, slots=True)
class _IndexedTurn:
    seq: int
    question: str
    closed: bool  # whether it was already closed
    asked: Mapping[str, str]  # on which platform, in which channel, by whom


IndexedRows = Sequence[tuple[_IndexedTurn, ParsedRow]]


def _index_rows(connection: Connection, rows: Sequence[ParsedRow]) -> Mapping[str, _IndexedTurn]:
    known = _find_turns(connection, {row["turn_id"] for row in rows})
    opened = (row for row in reversed(rows) if row["kind"] == EntryKind.TURN_OPENED.value)
    # A turn's first entry opens it.
    if new := {row["turn_id"]: describe_opening(row) for row in opened if row["turn_id"] not in known}:
        connection.execute(_OPEN, list(new.values()))
        known |= {name: _read_turn(row) for name, row in new.items()}
    # Erased turns keep their earlier figures.
    pairs = [(known[row["turn_id"]], row) for row in rows if row["turn_id"] in known]
    pairs = [(turn, row) for turn, row in pairs if row["body"] or not turn.closed]
    for kind, index in _INDEXERS.items():
        if chosen := [(turn, row) for turn, row in pairs if row["kind"] == kind]:
            index(connection, chosen)
    return known


def _find_turns(connection: Connection, turn_ids: Collection[str]) -> dict[str, _IndexedTurn]:
    one, *others = turn_ids
    rows = connection.execute(_FIND, {"ids": [*turn_ids]}) if others else connection.execute(_FIND_ONE, {"id": one})
    return {row.turn_id: _read_turn(row._asdict()) for row in rows}


def _read_turn(row: Mapping[str, Any]) -> _IndexedTurn:
    asked = {name: row[name] for name in _ASKED}
    return _IndexedTurn(row["seq"], row["question"], bool(row["status"]), asked)


def describe_opening(row: ParsedRow) -> dict[str, Any]:
    """Return the row of `turns` of a turn that was just opened. Pure, as are the others that `index_check` calls."""
    body = row["facts"]
    asker = read_object(body.get("asker"))
    platform, workspace = read_text(asker.get("platform")), read_text(asker.get("workspace"))
    place = f"{platform}:{workspace}/"
    return {
        "seq": row["seq"],
        "turn_id": row["turn_id"],
        "at": read_moment(row["at"]) or NO_MOMENT,
        "task": read_text(body.get("task")),
        "platform": platform,
        "workspace": workspace,
        "channel": place + read_text(asker["channel"]) if asker.get("channel") else "",
        "channel_name": read_text(asker.get("channel_name")),
        "asker": place + read_text(asker["user"]) if asker.get("user") else "",
        "asker_name": read_text(asker.get("name")),
        "question": read_text(body.get("question")),
        "system": read_text(body.get("system")),
        "retracted": False,
        "erased": not row["body"],
        **dict.fromkeys(("status", "model", "outcome"), ""),
    }


def _index_closings(connection: Connection, chosen: IndexedRows) -> None:
    last = {turn.seq: (turn, row) for turn, row in chosen}
    connection.execute(_CLOSE, [describe_end(number, row) for number, (_, row) in last.items()])
    if again := [number for number, (turn, _) in last.items() if turn.closed]:
        connection.execute(delete(turn_words).where(turn_words.c.rowid.in_(again)))
        connection.execute(delete(turn_documents).where(turn_documents.c.seq.in_(again)))
        for table in TABLES[:2]:
            connection.execute(delete(table).where(table.c.turn.in_(again)))
    texts_of = {number: (turn.question, _find_answer(row["facts"])) for number, (turn, row) in last.items()}
    connection.execute(_SPEAK, [{"rowid": number, "terms": list_terms(*texts)} for number, texts in texts_of.items()])
    closings = {number: row for number, (_, row) in last.items()}
    _index_documents(connection, closings)
    insert_claims(connection, closings)


def describe_end(number: int, row: ParsedRow) -> dict[str, Any]:
    body = row["facts"]
    verdicts = [read_text(claim.get("verdict")) for claim in read_objects(body.get("claims"))]
    return {
        "number": number,
        "status": read_text(body.get("status")) if row["body"] else ERASED,
        "model": read_text(body.get("model")),
        "sentences": len(read_objects(body.get("sentences"))),
        "withheld": len(read_objects(body.get("withheld"))),
        "claims": len(verdicts),
        "supported": verdicts.count(Verdict.SUPPORTS.value),
        "refuted": verdicts.count(Verdict.REFUTES.value),
        "seconds": read_number(body.get("seconds")),
        **measure_spending(body),
    }


def _find_answer(closed: Mapping[str, Any]) -> str:
    """Return the text of a turn's answer; empty if a fixed text was shown instead of an answer."""
    return read_text(closed.get("text")) if closed.get("status") in {"answered", "chatted"} else ""


def _index_documents(connection: Connection, closings: Mapping[int, ParsedRow]) -> None:
    pairs = [pair for number, row in closings.items() for pair in derive_documents(number, row["facts"])]
    if pairs:
        connection.execute(_CITE, [row for row, _ in pairs])
        _note_titles(connection, {(row["corpus"], row["document"]): title for row, title in pairs})


def derive_documents(number: int, closed: Mapping[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Return the rows of `turn_documents` of a turn, each with the document's title. Pure."""
    cited = _list_documents(closed.get("citations"), "document")
    nearest = _list_documents([page.get("document") for page in read_objects(closed.get("nearest"))], "key")
    listed = [(key, True) for key in cited] + [(key, False) for key in nearest if key not in cited]
    titles = nearest | cited
    return [({"corpus": key[0], "document": key[1], "cited": by, "seq": number}, titles[key]) for key, by in listed]


def _list_documents(named: Any, key: str) -> dict[DocumentId, str]:
    """Return the documents in these JSON objects, with their titles. `key` is the field with a document's key."""
    rows = read_objects(named)
    return {(read_text(row.get("corpus")), read_text(row.get(key))): read_text(row.get("title")) for row in rows}


def _note_titles(connection: Connection, titles: Mapping[DocumentId, str]) -> None:
    for chunk in split_chunks(titles):
        known = {(row.corpus, row.document): row.title for row in connection.execute(_FIND_TITLES, {"keys": chunk})}
        if changed := [key for key in chunk if known.get(key) != titles[key]]:
            connection.execute(delete(document_titles).where(_TITLE_KEY.in_(changed)))
            new = [{"corpus": key[0], "document": key[1], "title": titles[key]} for key in changed]
            connection.execute(insert(document_titles), new)


def _index_deliveries(connection: Connection, chosen: IndexedRows) -> None:
    outcomes = [(turn.seq, read_text(row["facts"].get("outcome"))) for turn, row in chosen]
    connection.execute(_DELIVER, [{"number": number, "outcome": outcome} for number, outcome in outcomes])


def _index_edits(connection: Connection, chosen: IndexedRows) -> None:
    retracted = [turn.seq for turn, row in chosen if row["facts"].get("retracted")]
    connection.execute(update(turns).where(turns.c.seq.in_(retracted)).values(retracted=True))


def _index_feedback(connection: Connection, chosen: IndexedRows) -> None:
    """List the feedback on turns, and count ratings; of several ratings by one person, only the last."""
    insert_feedback(connection, [(turn.seq, row) for turn, row in chosen if row["body"]])
    for number in {turn.seq for turn, row in chosen if row["facts"].get("what") in _OPINIONS}:
        rated = feedback.c.turn == number, feedback.c.what.in_(_OPINIONS)
        query = select(feedback.c.person, feedback.c.what).where(*rated).order_by(feedback.c.seq)
        counts = count_ratings((row.person, row.what) for row in connection.execute(query))
        connection.execute(update(turns).where(turns.c.seq == number).values(counts))


def count_ratings(acts: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the columns `up` and `down` by who did what, oldest first; of several ratings by one person, the last."""
    last = [*{person: what for person, what in acts if what in _OPINIONS}.values()]
    return {what: last.count(what) for what in sorted(_OPINIONS)}


_INDEXERS: Mapping[str, Callable[[Connection, IndexedRows], None]] = {
    EntryKind.TURN_CLOSED.value: _index_closings,
    EntryKind.DELIVERED.value: _index_deliveries,
    EntryKind.EDITED.value: _index_edits,
    EntryKind.FEEDBACK.value: _index_feedback,
}
_INDEXED = frozenset({EntryKind.TURN_OPENED.value, *_INDEXERS})

# Statements are made once: to make one takes longer than to run it.
ENDS = (
    "status", "model", "sentences", "withheld", "claims", "supported", "refuted", "tokens", "seconds", "cost"
)  # fmt: skip
_TITLE_KEY = tuple_(document_titles.c.corpus, document_titles.c.document)
_ASKED = ("platform", "channel", "asker")
_TURN = select(*(turns.c[name] for name in ("turn_id", "seq", "question", "status", *_ASKED)))
_FIND = _TURN.where(turns.c.turn_id.in_(bindparam("ids", expanding=True)))
_FIND_ONE = _TURN.where(turns.c.turn_id == bindparam("id"))  # this is faster
_FIND_TITLES = select(document_titles).where(_TITLE_KEY.in_(bindparam("keys", expanding=True)))
_OPEN, _SPEAK, _CITE = insert(turns), insert(turn_words), insert(turn_documents)
_THIS = turns.c.seq == bindparam("number")
_CLOSE = update(turns).where(_THIS).values({name: bindparam(name) for name in ENDS})
_DELIVER = update(turns).where(_THIS).values(outcome=bindparam("outcome"))


def list_terms(*texts: str) -> str:
    """Return the index terms of texts, joined by spaces. No language is assumed: a search text has none either."""
    return " ".join(term for text in texts for term in terms(text))


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


_SPEND = insert(spending)


def _describe_spending(row: ParsedRow, known: Mapping[str, _IndexedTurn]) -> dict[str, Any]:
    asked = known[row["turn_id"]].asked if row["turn_id"] in known else dict.fromkeys(_ASKED, "")
    about = {name: row[name] for name in ("seq", "turn_id", "at")}
    return {**asked, **about, **measure_spending(row["facts"])}


def measure_spending(closed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cost of a turn by the body of its closing entry. Missing figures count as 0. Pure."""
    usage = read_object(closed.get("usage"))
    tokens = int(read_number(usage.get("prompt_tokens")) + read_number(usage.get("completion_tokens")))
    return {"tokens": tokens, "cost": read_number(usage.get("cost"))}
