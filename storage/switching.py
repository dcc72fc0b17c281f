"""The transactions by which the manifest is switched from one state of documents to the next, for `storage.manifest`.

`begin` notes what the indexes are about to hold, `commit` switches, `purge` forgets what they hold no more.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Executable, Row, and_, bindparam, delete, insert, not_, select, update

from storage.schema import corpora, documents, forgotten, passages
from storage.types import Document, DocumentChange, Passage

_Row = Row[*tuple[Any, ...]]

_CHUNK = 500
"""How many ids stand in one statement; databases take some thousands at least."""

PASSAGE = [column for column in passages.c if column.name != "listed"]

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
_MOVE_ON = update(corpora).where(corpora.c.name == bindparam("_corpus")).values(generation=corpora.c.generation + 1)


def begin(connection: Connection, changes: Sequence[DocumentChange]) -> None:
    """Note what is about to be written to the indexes."""
    know(connection, {change.corpus for change in changes})
    each(connection, _BLANK_FINGERPRINT, _names(changes))
    adding = {passage.id: passage for change in changes for passage in change.add}
    standing = {row.id: row for row in _standing(connection, adding)}
    each(connection, insert(passages), (_row(adding[new], listed=False) for new in adding.keys() - standing.keys()))
    # The indexes are about to hold these under another title: without a hash no plan takes them for up to date.
    outdated = (row for row in standing.values() if row.listed and row.hash != adding[row.id].hash)
    each(connection, _BLANK_HASH, ({"_id": row.id} for row in outdated))


def commit(connection: Connection, planned: Sequence[DocumentChange]) -> tuple[DocumentChange, ...]:
    """List what is new and unlist what is old, of all these documents at once.

    Returns those that were overtaken and are left as they are: what was to become of them was planned over passages
    that are no longer the same, or they were forgotten meanwhile. The next refresh reads them again.
    """
    overtaken = _overtaken(connection, planned)
    left = {(change.corpus, change.key) for change in overtaken}
    changes = [change for change in planned if (change.corpus, change.key) not in left]
    concerned = {change.corpus for change in changes}
    know(connection, concerned)
    each(connection, _MOVE_ON, ({"_corpus": corpus} for corpus in sorted(concerned)))
    each(connection, _BLANK_FINGERPRINT, _names(overtaken))
    each(connection, _UNLIST_ALL, _names(change for change in changes if change.document is None))
    each(connection, _UNLIST, ({"_id": dropped} for change in changes for dropped in change.drop))
    each(connection, _REMOVE_DOCUMENT, _names(changes))
    each(connection, insert(documents), (_columns(change.document) for change in changes if change.document))
    # Written over rather than changed, so that no promise hangs on `begin` having come before.
    adding = {passage.id: passage for change in changes for passage in change.add}
    each(connection, _REMOVE_PASSAGE, ({"_id": added} for added in adding))
    each(connection, insert(passages), (_row(passage, listed=True) for passage in adding.values()))
    kept = (passage for change in changes for passage in change.keep)
    each(connection, _MOVE, ({"_id": passage.id, "_position": passage.position} for passage in kept))
    return overtaken


def _overtaken(connection: Connection, changes: Sequence[DocumentChange]) -> tuple[DocumentChange, ...]:
    written = [change for change in changes if change.document]
    names = {(change.corpus, change.key) for change in written}
    listed: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    unwanted: set[tuple[str, str]] = set()
    for corpus in sorted({corpus for corpus, _ in names}):
        for chunk in chunks([key for of, key in names if of == corpus]):
            there = passages.c.corpus == corpus, passages.c.document.in_(chunk), passages.c.listed
            for row in connection.execute(select(passages.c.id, passages.c.document).where(*there)):
                listed[corpus, row.document].add(row.id)
            never = forgotten.c.corpus == corpus, forgotten.c.key.in_(chunk)
            unwanted.update((corpus, row.key) for row in connection.execute(select(forgotten.c.key).where(*never)))
    return tuple(
        change
        for change in written
        if (change.corpus, change.key) in unwanted or not _fits(change, listed[change.corpus, change.key])
    )


def _fits(change: DocumentChange, listed: set[str]) -> bool:
    """Return whether, with these passages listed now, the change leaves exactly those that it was to leave. Pure."""
    kept = {passage.id for passage in change.keep}
    return kept <= listed <= kept.union(change.drop, (passage.id for passage in change.add))


def purge(connection: Connection, ids: Collection[str]) -> None:
    """Forget those of these passages that are not listed."""
    for chunk in chunks(ids):
        connection.execute(delete(passages).where(passages.c.id.in_(chunk), not_(passages.c.listed)))


def know(connection: Connection, names: Collection[str]) -> None:
    """Make a row for each corpus that has none."""
    known = connection.execute(select(corpora.c.name).where(corpora.c.name.in_(names))).scalars()
    each(connection, insert(corpora), ({"name": name} for name in set(names) - set(known)))


def _standing(connection: Connection, ids: Collection[str]) -> Iterator[_Row]:
    for chunk in chunks(ids):
        query = select(passages.c.id, passages.c.hash, passages.c.listed).where(passages.c.id.in_(chunk))
        yield from connection.execute(query)


def each(connection: Connection, statement: Executable, rows: Iterable[Mapping[str, Any]]) -> None:
    """Execute the statement once for each row; executed with no row, it would apply to everything."""
    if parameters := list(rows):
        connection.execute(statement, parameters)


def _names(changes: Iterable[DocumentChange]) -> Iterator[dict[str, str]]:
    return ({"_corpus": change.corpus, "_key": change.key} for change in changes)


def _columns(document: Document) -> dict[str, Any]:
    values = {column.name: getattr(document, column.name) for column in documents.c}
    return values | {"aliases": "\n".join(document.aliases)}


def _row(passage: Passage, *, listed: bool) -> dict[str, Any]:
    return {column.name: getattr(passage, column.name) for column in PASSAGE} | {"listed": listed}


def chunks(ids: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Cut ids into parts that one statement takes."""
    ordered = tuple(ids)
    return (ordered[start : start + _CHUNK] for start in range(0, len(ordered), _CHUNK))
