"""The index of the record: what turns are found by, derived from their entries.

It is written in the transaction that adds the entries, and can be made again from them. Nothing in an entry keeps it
from being recorded: what cannot be read counts as not said.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, Select, delete, func, insert, select, tuple_, update

from storage.database.engine import Database, split_chunks
from storage.database.schema import document_titles, entries, turn_documents, turn_words, turns
from storage.database.worker_threads import WritePriority
from storage.language.words import terms
from storage.types import DocumentId, EntryKind, Verdict

_WHOLE = (entries.c.seq, entries.c.turn_id, entries.c.kind, entries.c.at, entries.c.body)
ERASED = "erased"  # the status of a turn whose end was erased before the index was made again
_OPINIONS = {"up", "down"}
_PAGE = 500
_MOST = 10**15  # no figure is larger
EntryRow = Mapping[str, Any]


def index_entries(connection: Connection, rows: Iterable[EntryRow]) -> None:
    """Index entries that were just inserted, within the same transaction."""
    _index_rows(connection, [row for row in rows if row["kind"] in _INDEXERS])


def index_record(connection: Connection) -> None:
    """Index all entries, within the transaction that made the tables."""
    last: int | None = 0
    while last is not None:
        last = _index_page(connection, last)


async def rebuild_index(database: Database) -> int:
    """Make the index again from the entries, page by page, and return how many turns it has. Raises `StorageError`."""
    await database.write(clear_turns, WritePriority.BATCH)
    last: int | None = 0
    while last is not None:
        last = await database.write(partial(_index_page, after=last), WritePriority.BATCH)
    count = select(func.count()).select_from(turns)
    return await database.read(lambda connection: connection.execute(count).scalar_one())


def _index_page(connection: Connection, after: int) -> int | None:
    """Index the next page of entries, and return the number of its last one; None where there is no more."""
    chosen = entries.c.kind.in_(_INDEXERS), entries.c.seq > after
    rows = connection.execute(select(*_WHOLE).where(*chosen).order_by(entries.c.seq).limit(_PAGE)).mappings()
    page = [dict(row) for row in rows]
    _index_rows(connection, page)
    return page[-1]["seq"] if page else None


def clear_turns(connection: Connection, turn_ids: Collection[str] | None = None) -> None:
    """Remove turns from the index, or all of them, with all words that it has of them."""
    for chosen in [None] if turn_ids is None else split_chunks(turn_ids):
        numbers = select(turns.c.seq) if chosen is None else _numbers_of(chosen)
        connection.execute(delete(turn_words).where(turn_words.c.rowid.in_(numbers)))
        connection.execute(delete(turn_documents).where(turn_documents.c.seq.in_(numbers)))
        connection.execute(delete(turns).where(turns.c.seq.in_(numbers)))
    _drop_removed_words(connection)


def blank_turns(connection: Connection, turn_ids: Collection[str]) -> None:
    """Remove from the index what turns say and who asked, and keep their figures."""
    nothing = {"erased": True, **dict.fromkeys(("question", "asker", "asker_name", "channel_name"), "")}
    for chosen in split_chunks(turn_ids):
        connection.execute(delete(turn_words).where(turn_words.c.rowid.in_(_numbers_of(chosen))))
        connection.execute(update(turns).where(turns.c.turn_id.in_(chosen)).values(nothing))
    _drop_removed_words(connection)


def _numbers_of(turn_ids: Sequence[str]) -> Select[int]:
    return select(turns.c.seq).where(turns.c.turn_id.in_(turn_ids))


def _drop_removed_words(connection: Connection) -> None:
    """Merge FTS5's segments into one: until then those of removed rows keep their terms."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("INSERT INTO turn_words (turn_words) VALUES ('optimize')")


def _index_rows(connection: Connection, rows: Sequence[EntryRow]) -> None:
    opened = [row for row in rows if row["kind"] == EntryKind.TURN_OPENED.value]
    known = _find_numbers(connection, {row["turn_id"] for row in rows})
    new = {
        row["turn_id"]: row for row in reversed(opened) if row["turn_id"] not in known
    }  # a turn's first entry opens it
    if new:
        begun = [_describe_opening(row) for row in new.values()]
        connection.execute(insert(turns), begun)
        known |= {row["turn_id"]: row["seq"] for row in new.values()}
    for row in rows:
        if row["turn_id"] in known:
            _INDEXERS[row["kind"]](connection, known[row["turn_id"]], row)


def _find_numbers(connection: Connection, turn_ids: Collection[str]) -> dict[str, int]:
    query = select(turns.c.turn_id, turns.c.seq).where(turns.c.turn_id.in_(turn_ids))
    return {row.turn_id: row.seq for row in connection.execute(query)}


def _describe_opening(row: EntryRow) -> dict[str, Any]:
    body = read_body(row["body"])
    asker = _object(body.get("asker"))
    platform, workspace = _text(asker.get("platform")), _text(asker.get("workspace"))
    place = f"{platform}:{workspace}/"
    return {
        "seq": row["seq"],
        "turn_id": row["turn_id"],
        "at": row["at"],
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


def _index_closing(connection: Connection, number: int, row: EntryRow) -> None:
    body = read_body(row["body"])
    usage, status = _object(body.get("usage")), _text(body.get("status")) if row["body"] else ERASED
    verdicts = [_text(one.get("verdict")) for one in _objects(body.get("claims"))]
    facts = {
        "status": status,
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
    if body.get("system"):
        facts["system"] = _text(body["system"])
    question = connection.execute(update(turns).where(turns.c.seq == number).values(facts).returning(turns.c.question))
    said = _text(body.get("text")) if status in {"answered", "chatted"} else ""
    connection.execute(delete(turn_words).where(turn_words.c.rowid == number))
    connection.execute(insert(turn_words), {"rowid": number, "terms": list_terms(question.scalar_one(), said)})
    connection.execute(delete(turn_documents).where(turn_documents.c.seq == number))
    cited = _list_documents(body.get("citations"), "document")
    nearest = _list_documents([_object(page.get("document")) for page in _objects(body.get("nearest"))], "key")
    if listed := [(key, True) for key in cited] + [(key, False) for key in nearest if key not in cited]:
        rows = [{"corpus": key[0], "document": key[1], "cited": by, "seq": number} for key, by in listed]
        connection.execute(insert(turn_documents), rows)
        _note_titles(connection, nearest | cited)


def _list_documents(named: Any, key: str) -> dict[DocumentId, str]:
    """Return the documents that are named, with their titles."""
    return {(_text(one.get("corpus")), _text(one.get(key))): _text(one.get("title")) for one in _objects(named)}


def _note_titles(connection: Connection, titles: Mapping[DocumentId, str]) -> None:
    columns = document_titles.c.corpus, document_titles.c.document
    rows = connection.execute(select(*columns, document_titles.c.title).where(tuple_(*columns).in_(titles)))
    known = {(row.corpus, row.document): row.title for row in rows}
    changed = [key for key, title in titles.items() if known.get(key) != title]
    if changed:
        connection.execute(delete(document_titles).where(tuple_(*columns).in_(changed)))
        new = [{"corpus": key[0], "document": key[1], "title": titles[key]} for key in changed]
        connection.execute(insert(document_titles), new)


def _index_delivery(connection: Connection, number: int, row: EntryRow) -> None:
    outcome = _text(read_body(row["body"]).get("outcome"))
    connection.execute(update(turns).where(turns.c.seq == number).values(outcome=outcome))


def _index_edit(connection: Connection, number: int, row: EntryRow) -> None:
    if read_body(row["body"]).get("retracted"):
        connection.execute(update(turns).where(turns.c.seq == number).values(retracted=True))


def _index_feedback(connection: Connection, number: int, row: EntryRow) -> None:
    """Count what each person thought last."""
    if read_body(row["body"]).get("what") not in _OPINIONS:
        return
    chosen = (
        entries.c.turn_id == row["turn_id"],
        entries.c.kind == EntryKind.FEEDBACK.value,
        entries.c.seq <= row["seq"],
    )
    query = select(entries.c.body).where(*chosen).order_by(entries.c.seq)
    bodies = map(read_body, connection.execute(query).scalars())
    last = {_text(body.get("by")): body["what"] for body in bodies if body.get("what") in _OPINIONS}
    counts = {what: list(last.values()).count(what) for what in _OPINIONS}
    connection.execute(update(turns).where(turns.c.seq == number).values(counts))


def _index_nothing(_connection: Connection, _number: int, _row: EntryRow) -> None:
    """Index no more of an opening than its row."""


_INDEXERS: Mapping[str, Callable[[Connection, int, EntryRow], None]] = {
    EntryKind.TURN_OPENED.value: _index_nothing,
    EntryKind.TURN_CLOSED.value: _index_closing,
    EntryKind.DELIVERED.value: _index_delivery,
    EntryKind.EDITED.value: _index_edit,
    EntryKind.FEEDBACK.value: _index_feedback,
}


def list_terms(*texts: str) -> str:
    """Return the terms of texts as the index has them. A query's language is not known: all are read alike."""
    return " ".join(term for text in texts for term in terms(text))


def read_body(text: str) -> Mapping[str, Any]:
    """Return the body of an entry; empty where it was erased, or is no object of JSON."""
    try:
        return _object(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """Return a text without what no database takes: half a surrogate pair, and the character zero."""
    return value.replace("\0", " ").encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _number(value: Any) -> float:
    return min(max(value, -_MOST), _MOST) if isinstance(value, int | float) else 0
