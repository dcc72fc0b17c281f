"""The manifest: which documents and passages there are. What it does not list is not found, whatever the indexes hold.

A refresh calls `begin`, writes the indexes, calls `commit`, takes from the indexes what is `unlisted`, and calls
`purge`. Stopped between any two of them it loses nothing: what was begun and not committed is not listed, and the next
refresh reads its documents again, because `begin` blanks their fingerprints.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Row,
    ScalarSelect,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    func,
    insert,
    not_,
    select,
    update,
)

from storage.database import Database
from storage.identity import passage_hash
from storage.schema import corpora, documents, failures, passages
from storage.types import Corpus, CorpusInfo, Document, DocumentChange, Kind, Passage
from storage.urgency import Urgency

Found = tuple[Passage, Document]
_Row = Row[*tuple[Any, ...]]

_CHUNK = 500
"""How many ids stand in one statement; databases take some thousands at least."""

_PASSAGE = [column for column in passages.c if column.name != "listed"]
_DOCUMENT = [column for column in documents.c if column.name != "corpus"]

# Statements that are executed once for each of many rows; their parameters begin with an underscore.
_THE_DOCUMENT = and_(documents.c.corpus == bindparam("_corpus"), documents.c.key == bindparam("_key"))
_THE_PASSAGE = passages.c.id == bindparam("_id")
_BLANK_FINGERPRINT = update(documents).where(_THE_DOCUMENT).values(fingerprint="")
_BLANK_HASH = update(passages).where(_THE_PASSAGE).values(hash="")
_UNLIST = update(passages).where(_THE_PASSAGE).values(listed=False)
_UNLIST_ALL = (
    update(passages)
    .where(passages.c.corpus == bindparam("_corpus"), passages.c.document == bindparam("_key"))
    .values(listed=False)
)
_MOVE = update(passages).where(_THE_PASSAGE).values(position=bindparam("_position"))
_REMOVE_DOCUMENT = delete(documents).where(_THE_DOCUMENT)
_REMOVE_PASSAGE = delete(passages).where(_THE_PASSAGE)


class Manifest:
    """The record of what is indexed. Every method is one transaction, and raises `StorageError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def fingerprints(self, corpus: str) -> dict[str, str]:
        """Return each document's key and fingerprint; an empty one if a change was begun and never committed."""
        query = select(documents.c.key, documents.c.fingerprint).where(documents.c.corpus == corpus)
        rows = await self._all(query)
        return {row.key: row.fingerprint for row in rows}

    async def document(self, corpus: str, key: str) -> Document | None:
        """Return the document's row; None when there is none."""
        rows = await self._all(select(documents).where(documents.c.corpus == corpus, documents.c.key == key))
        return _document(rows[0]) if rows else None

    async def passages_of(self, corpus: str, key: str) -> tuple[Passage, ...]:
        """Return the document's listed passages in order; an empty hash if a change was begun and never committed."""
        query = select(*_PASSAGE).where(passages.c.corpus == corpus, passages.c.document == key, passages.c.listed)
        return tuple(_passage(row, row.hash) for row in await self._all(query.order_by("position", "id")))

    async def begin(self, changes: Sequence[DocumentChange]) -> None:
        """Note what is about to be written to the indexes, so that nothing gets there that nobody knows of."""
        await self._write(lambda connection: _begin(connection, changes))

    async def commit(self, changes: Sequence[DocumentChange]) -> None:
        """Switch all these documents to their new state at once: until then the old is found, from then on the new."""
        await self._write(lambda connection: _commit(connection, changes))

    async def unlisted(self, corpus: str | None = None) -> tuple[tuple[str, str], ...]:
        """Return (corpus, id) of what the indexes may hold and must not show: of one corpus, or of all."""
        # All corpora are named one by one because the index begins with the corpus.
        within = select(corpora.c.name) if corpus is None else [corpus]
        query = select(passages.c.corpus, passages.c.id).where(passages.c.corpus.in_(within), not_(passages.c.listed))
        return tuple((row.corpus, row.id) for row in await self._all(query))

    async def purge(self, ids: Iterable[str]) -> None:
        """Forget these passages, which the indexes hold no more. One that is listed stays."""
        gone = tuple(ids)
        await self._write(lambda connection: _purge(connection, gone))

    async def join(self, ids: Collection[str], within: Collection[str]) -> dict[str, Found]:
        """Return, by id, those passages that are listed in one of the corpora `within`, with their documents."""
        queries = [_found().where(passages.c.id.in_(chunk), passages.c.corpus.in_(within)) for chunk in _chunks(ids)]
        rows = await self._database.read(
            lambda connection: [row for query in queries for row in connection.execute(query)]
        )
        return {row.id: _with_document(row) for row in rows}

    async def listed(self, corpus: str, *, after: str = "", limit: int = 1000) -> tuple[Found, ...]:
        """Return up to `limit` listed passages whose ids follow `after`, by id, with their documents."""
        query = _found().where(passages.c.corpus == corpus, passages.c.id > after).order_by(passages.c.id)
        return tuple(_with_document(row) for row in await self._all(query.limit(limit)))

    async def count(self, corpus: str) -> int:
        """Return how many passages are listed."""
        query = select(func.count()).select_from(passages).where(passages.c.corpus == corpus, passages.c.listed)
        return int((await self._all(query))[0][0])

    async def catalogue(self) -> tuple[Corpus, ...]:
        """Return which corpora there are, by name; quick, whatever their size."""
        return tuple(Corpus(*row) for row in await self._all(select(corpora).order_by(corpora.c.name)))

    async def corpora(self) -> tuple[CorpusInfo, ...]:
        """Return what is indexed, by name. Counts it, which takes seconds for a whole Wikipedia."""
        return tuple(
            CorpusInfo(row.name, row.documents, row.passages, row.refreshed_at, row.failures)
            for row in await self._all(_overview())
        )

    async def describe(self, corpus: str, *, reference: bool) -> None:
        """Note what a corpus is, before anything of it is indexed."""
        await self._write(lambda connection: _describe(connection, corpus, reference=reference))

    async def finish(self, corpus: str, at: datetime, unread: Iterable[tuple[str, str]] = ()) -> None:
        """Note that a refresh ran to its end, and the (key, reason) of each document that it could not read."""
        rows = [{"corpus": corpus, "key": key, "reason": reason} for key, reason in dict(unread).items()]
        await self._write(lambda connection: _finish(connection, corpus, at, rows))

    async def failures(self, corpus: str) -> tuple[tuple[str, str], ...]:
        """Return (key, reason) of each document that the last refresh could not read, by key."""
        query = select(failures.c.key, failures.c.reason).where(failures.c.corpus == corpus).order_by("key")
        return tuple((row.key, row.reason) for row in await self._all(query))

    async def _write(self, function: Callable[[Connection], None]) -> None:
        await self._database.write(function, Urgency.BATCH)

    async def _all(self, query: Select[Any]) -> Sequence[_Row]:
        return await self._database.read(lambda connection: connection.execute(query).all())


def _begin(connection: Connection, changes: Sequence[DocumentChange]) -> None:
    _know(connection, {change.corpus for change in changes})
    _each(connection, _BLANK_FINGERPRINT, _names(changes))
    adding = {passage.id: passage for change in changes for passage in change.add}
    standing = {row.id: row for row in _standing(connection, adding)}
    _each(connection, insert(passages), (_row(adding[new], listed=False) for new in adding.keys() - standing.keys()))
    # The indexes are about to hold these under another title: without a hash no plan takes them for up to date.
    outdated = (row for row in standing.values() if row.listed and row.hash != adding[row.id].hash)
    _each(connection, _BLANK_HASH, ({"_id": row.id} for row in outdated))


def _commit(connection: Connection, changes: Sequence[DocumentChange]) -> None:
    _know(connection, {change.corpus for change in changes})
    _each(connection, _UNLIST_ALL, _names(change for change in changes if change.document is None))
    _each(connection, _UNLIST, ({"_id": dropped} for change in changes for dropped in change.drop))
    _each(connection, _REMOVE_DOCUMENT, _names(changes))
    _each(connection, insert(documents), (_columns(change.document) for change in changes if change.document))
    # Written over rather than changed, so that no promise hangs on `begin` having come before.
    adding = {passage.id: passage for change in changes for passage in change.add}
    _each(connection, _REMOVE_PASSAGE, ({"_id": added} for added in adding))
    _each(connection, insert(passages), (_row(passage, listed=True) for passage in adding.values()))
    kept = (passage for change in changes for passage in change.keep)
    _each(connection, _MOVE, ({"_id": passage.id, "_position": passage.position} for passage in kept))


def _purge(connection: Connection, ids: Collection[str]) -> None:
    for chunk in _chunks(ids):
        connection.execute(delete(passages).where(passages.c.id.in_(chunk), not_(passages.c.listed)))


def _finish(connection: Connection, corpus: str, at: datetime, unread: Sequence[Mapping[str, str]]) -> None:
    _know(connection, {corpus})
    connection.execute(update(corpora).where(corpora.c.name == corpus).values(refreshed_at=at))
    connection.execute(delete(failures).where(failures.c.corpus == corpus))
    _each(connection, insert(failures), unread)


def _describe(connection: Connection, corpus: str, *, reference: bool) -> None:
    _know(connection, {corpus})
    connection.execute(update(corpora).where(corpora.c.name == corpus).values(reference=reference))


def _know(connection: Connection, names: Collection[str]) -> None:
    known = connection.execute(select(corpora.c.name).where(corpora.c.name.in_(names))).scalars()
    _each(connection, insert(corpora), ({"name": name} for name in set(names) - set(known)))


def _standing(connection: Connection, ids: Collection[str]) -> Iterator[_Row]:
    for chunk in _chunks(ids):
        query = select(passages.c.id, passages.c.hash, passages.c.listed).where(passages.c.id.in_(chunk))
        yield from connection.execute(query)


def _each(connection: Connection, statement: Executable, rows: Iterable[Mapping[str, Any]]) -> None:
    """Execute the statement once for each row; executed with no row, it would apply to everything."""
    if parameters := list(rows):
        connection.execute(statement, parameters)


def _found() -> Select[Any]:
    same = and_(documents.c.corpus == passages.c.corpus, documents.c.key == passages.c.document)
    return select(*_PASSAGE, *_DOCUMENT).join_from(passages, documents, same).where(passages.c.listed)


def _overview() -> Select[Any]:
    def number(table: Table, *conditions: ColumnElement[bool]) -> ScalarSelect[int]:
        of_corpus = table.c.corpus == corpora.c.name
        return select(func.count()).select_from(table).where(of_corpus, *conditions).scalar_subquery()

    return select(
        corpora.c.name,
        number(documents).label("documents"),
        number(passages, passages.c.listed).label("passages"),
        corpora.c.refreshed_at,
        number(failures).label("failures"),
    ).order_by(corpora.c.name)


def _names(changes: Iterable[DocumentChange]) -> Iterator[dict[str, str]]:
    return ({"_corpus": change.corpus, "_key": change.key} for change in changes)


def _columns(document: Document) -> dict[str, Any]:
    values = {column.name: getattr(document, column.name) for column in documents.c}
    return values | {"aliases": "\n".join(document.aliases)}


def _row(passage: Passage, *, listed: bool) -> dict[str, Any]:
    return {column.name: getattr(passage, column.name) for column in _PASSAGE} | {"listed": listed}


def _passage(row: _Row, content_hash: str) -> Passage:
    kind = Kind(row.kind)
    return Passage(row.id, row.corpus, row.document, row.section, row.text, row.position, content_hash, kind)


def _document(row: _Row) -> Document:
    about = (row.title, row.url, row.revision, row.date, row.language, row.fingerprint)
    aliases = tuple(row.aliases.split("\n")) if row.aliases else ()
    return Document(row.corpus, row.key, *about, aliases, row.disambiguation)


def _with_document(row: _Row) -> Found:
    # What was begun and not committed is still shown as it was, and so is its hash.
    return _passage(row, row.hash or passage_hash(row.title, row.section, row.text)), _document(row)


def _chunks(ids: Collection[str]) -> Iterator[tuple[str, ...]]:
    ordered = tuple(ids)
    return (ordered[start : start + _CHUNK] for start in range(0, len(ordered), _CHUNK))
