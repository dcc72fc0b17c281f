"""Transactions and queries of the manifest: begin, commit and purge changes, and find documents by address."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import sqlalchemy as sa

from storage.database.engine import INSERTS, split_chunks
from storage.database.schema import corpora, documents, forgotten, passages
from storage.types import Document, DocumentChange, DocumentRef, Passage

PASSAGE_COLUMNS = [column for column in passages.c if column.name != "listed"]

# Statements that are executed once for each of many rows; their parameters begin with an underscore.
_THE_DOCUMENT = sa.and_(documents.c.corpus == sa.bindparam("_corpus"), documents.c.key == sa.bindparam("_key"))
_THE_PASSAGE = passages.c.id == sa.bindparam("_id")
_BLANK_FINGERPRINT = sa.update(documents).where(_THE_DOCUMENT).values(fingerprint="")
_BLANK_HASH = sa.update(passages).where(_THE_PASSAGE).values(hash="")
_UNLIST = sa.update(passages).where(_THE_PASSAGE).values(listed=False)
_OF_DOCUMENT = sa.and_(passages.c.corpus == sa.bindparam("_corpus"), passages.c.document == sa.bindparam("_key"))
_UNLIST_DOCUMENT = sa.update(passages).where(_OF_DOCUMENT).values(listed=False)
_MOVE = sa.update(passages).where(_THE_PASSAGE).values(position=sa.bindparam("_position"))
_REMOVE_DOCUMENT = sa.delete(documents).where(_THE_DOCUMENT)
_REMOVE_PASSAGE = sa.delete(passages).where(_THE_PASSAGE)
_THE_CORPUS = corpora.c.name == sa.bindparam("_corpus")
_RAISE_GENERATION = sa.update(corpora).where(_THE_CORPUS).values(generation=corpora.c.generation + 1)


def begin_changes(connection: sa.Connection, changes: Sequence[DocumentChange]) -> None:
    """Record what is about to be written to the indexes."""
    add_missing_corpora(connection, {change.corpus for change in changes})
    execute_each(connection, _BLANK_FINGERPRINT, _document_keys(changes))
    adding = {passage.id: passage for change in changes for passage in change.add}
    existing: dict[str, Any] = {}
    for chunk in split_chunks(adding):
        query = sa.select(passages.c.id, passages.c.hash, passages.c.listed).where(passages.c.id.in_(chunk))
        existing |= {row.id: row for row in connection.execute(query)}
    added = (_passage_row(adding[key], listed=False) for key in adding.keys() - existing.keys())
    execute_each(connection, sa.insert(passages), added)
    # The indexes are about to hold these under another title: without a hash no plan takes them for up to date.
    outdated = (row for row in existing.values() if row.listed and row.hash != adding[row.id].hash)
    execute_each(connection, _BLANK_HASH, ({"_id": row.id} for row in outdated))


def commit_changes(connection: sa.Connection, planned: Sequence[DocumentChange]) -> tuple[DocumentChange, ...]:
    """List new passages and unlist old ones, of all these documents at once.

    Returns the conflicts, which stay unchanged: planned over passages that are no longer the same, or forgotten
    meanwhile. The next refresh reads them again.
    """
    conflicts = _find_conflicts(connection, planned)
    skipped = {(change.corpus, change.key) for change in conflicts}
    changes = [change for change in planned if (change.corpus, change.key) not in skipped]
    changed = {change.corpus for change in changes}
    add_missing_corpora(connection, changed)
    execute_each(connection, _RAISE_GENERATION, ({"_corpus": corpus} for corpus in sorted(changed)))
    execute_each(connection, _BLANK_FINGERPRINT, _document_keys(conflicts))
    execute_each(connection, _UNLIST_DOCUMENT, _document_keys(change for change in changes if change.document is None))
    execute_each(connection, _UNLIST, ({"_id": dropped} for change in changes for dropped in change.drop))
    execute_each(connection, _REMOVE_DOCUMENT, _document_keys(changes))
    rows = (_document_row(change.document) for change in changes if change.document)
    execute_each(connection, sa.insert(documents), rows)
    # Replaced rather than updated, so that nothing depends on `begin_changes` having come before.
    adding = {passage.id: passage for change in changes for passage in change.add}
    execute_each(connection, _REMOVE_PASSAGE, ({"_id": added} for added in adding))
    execute_each(connection, sa.insert(passages), (_passage_row(passage, listed=True) for passage in adding.values()))
    kept = (passage for change in changes for passage in change.keep)
    execute_each(connection, _MOVE, ({"_id": passage.id, "_position": passage.position} for passage in kept))
    return conflicts


def _find_conflicts(connection: sa.Connection, changes: Sequence[DocumentChange]) -> tuple[DocumentChange, ...]:
    written = [change for change in changes if change.document]
    names = {(change.corpus, change.key) for change in written}
    listed: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    blocked: set[tuple[str, str]] = set()
    for corpus in sorted({corpus for corpus, _ in names}):
        for chunk in split_chunks([key for of, key in names if of == corpus]):
            of_documents = passages.c.corpus == corpus, passages.c.document.in_(chunk), passages.c.listed
            for row in connection.execute(sa.select(passages.c.id, passages.c.document).where(*of_documents)):
                listed[corpus, row.document].add(row.id)
            of_forgotten = forgotten.c.corpus == corpus, forgotten.c.key.in_(chunk)
            blocked.update(
                (corpus, row.key) for row in connection.execute(sa.select(forgotten.c.key).where(*of_forgotten))
            )
    return tuple(
        change
        for change in written
        if (change.corpus, change.key) in blocked or not _is_applicable(change, listed[change.corpus, change.key])
    )


def _is_applicable(change: DocumentChange, listed: set[str]) -> bool:
    """Return whether the change, over the passages listed now, leaves exactly those that were planned. Pure."""
    kept = {passage.id for passage in change.keep}
    return kept <= listed <= kept.union(change.drop, (passage.id for passage in change.add))


def purge_passages(connection: sa.Connection, ids: Collection[str]) -> None:
    """Forget those of these passages that are not listed."""
    for chunk in split_chunks(ids):
        connection.execute(sa.delete(passages).where(passages.c.id.in_(chunk), sa.not_(passages.c.listed)))


def add_missing_corpora(connection: sa.Connection, names: Collection[str]) -> None:
    known = connection.execute(sa.select(corpora.c.name).where(corpora.c.name.in_(names))).scalars()
    adding = INSERTS[connection.dialect.name](corpora).on_conflict_do_nothing()
    execute_each(connection, adding, ({"name": name} for name in sorted(set(names) - set(known))))


def execute_each(connection: sa.Connection, statement: sa.Executable, rows: Iterable[Mapping[str, Any]]) -> None:
    """Execute the statement once for each row; executed with no row, it would apply to everything."""
    if parameters := list(rows):
        connection.execute(statement, parameters)


def _document_keys(changes: Iterable[DocumentChange]) -> Iterator[dict[str, str]]:
    return ({"_corpus": change.corpus, "_key": change.key} for change in changes)


def _document_row(document: Document) -> dict[str, Any]:
    values = {column.name: getattr(document, column.name) for column in documents.c}
    return values | {"aliases": "\n".join(document.aliases)}


def _passage_row(passage: Passage, *, listed: bool) -> dict[str, Any]:
    return {column.name: getattr(passage, column.name) for column in PASSAGE_COLUMNS} | {"listed": listed}


_REVISION_PARAMETERS = frozenset({"oldid", "diff", "rev", "revision", "version", "pageversion", "curid_revision"})
"""Parameters that name a revision of a page and not another page, as wikis use them."""
_LAST_CHARACTER = chr(0x10FFFF)
_SAFE_CHARACTERS = "/:@!$&'()*+,;=~-._"


def normalize_url(address: str) -> str:
    """Strip from an address what leads to the same page: a fragment, a revision, a slash at the end. Pure."""
    parts = _split_url(address)
    if parts is None:
        return address
    scheme, host, path, query = parts
    return f"{scheme}://{host}{unquote(path)}" + (f"?{query}" if query else "")


def _split_url(address: str) -> tuple[str, str, str, str] | None:
    try:
        parts = urlsplit(address.strip())
    except ValueError:  # such as half an IPv6 address
        return None
    if not parts.scheme or not parts.netloc:
        return None
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    kept = sorted(pair for pair in pairs if pair[0].lower() not in _REVISION_PARAMETERS)
    return parts.scheme.lower(), parts.netloc.lower(), parts.path.rstrip("/"), urlencode(kept)


def find_documents(connection: sa.Connection, address: str, among: sa.Table = documents) -> tuple[DocumentRef, ...]:
    """Return the documents that an address, a key or a title names, by corpus and key; `among` may be `forgotten`."""
    wanted = address.strip()
    if not wanted:
        return ()
    named = among.c.corpus, among.c.key, among.c.title, among.c.url
    # Corpora are named one by one because the index over keys begins with them.
    by_key = sa.and_(among.c.corpus.in_(sa.select(corpora.c.name)), among.c.key == wanted)
    query = sa.select(*named).where(sa.or_(by_key, among.c.title == wanted))
    rows = {(row.corpus, row.key): DocumentRef(*row) for row in connection.execute(query)}
    for condition in _url_conditions(wanted, among.c.url, ranges=connection.dialect.name == "sqlite"):
        found = (DocumentRef(*row) for row in connection.execute(sa.select(*named).where(condition)))
        rows |= {(row.corpus, row.key): row for row in found if normalize_url(row.url) == normalize_url(wanted)}
    return tuple(rows[name] for name in sorted(rows))


def _url_conditions(address: str, url: sa.ColumnElement[str], *, ranges: bool) -> list[sa.ColumnElement[bool]]:
    """Return conditions that each use the index over addresses; together they meet all that may be the same."""
    parts = _split_url(address)
    if parts is None:
        return []
    scheme, host, path, _ = parts
    spelled = {path, unquote(path), quote(unquote(path), safe=_SAFE_CHARACTERS), quote(unquote(path), safe="/")}
    bases = sorted(f"{scheme}://{host}{spelling}" for spelling in spelled)
    same = url.in_([*bases, *(f"{base}/" for base in bases)])
    starts = [f"{base}{then}" for base in bases for then in ("?", "/?", "#", "/#")]
    # SQLite asks no index for LIKE, and PostgreSQL's order of letters is no order of bytes.
    within = (sa.and_(url >= start, url < start + _LAST_CHARACTER) for start in starts)
    prefixed = (url.startswith(start, autoescape=True) for start in starts)
    return [same, *(within if ranges else prefixed)]
