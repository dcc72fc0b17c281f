"""The manifest: which documents and passages there are. What it does not list is not found, whatever the indexes hold.

A refresh calls `begin`, writes the indexes, calls `commit`, takes from the indexes what is `unlisted`, and calls
`purge`. Stopped between any two of them it loses nothing: what was begun and not committed is not listed, and the next
refresh reads its documents again, because `begin` blanks their fingerprints.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from storage.database import manifest_tx
from storage.database.engine import Database, split_chunks
from storage.database.refresh_log import fetch_last_runs, require_lease
from storage.database.schema import corpora, documents, failures, forgotten, passages
from storage.database.worker_threads import WritePriority
from storage.types import (
    Checkpoint,
    Corpus,
    CorpusInfo,
    Document,
    DocumentChange,
    DocumentRef,
    Lease,
    Passage,
    PassageKind,
    hash_passage,
    is_web_corpus,
)

log = logging.getLogger(__name__)

ListedPassage = tuple[Passage, Document]
_Row = sa.Row[*tuple[Any, ...]]

_DOCUMENT = [column for column in documents.c if column.name != "corpus"]


@dataclass(frozen=True)
class Manifest:
    """What is indexed. Every method is one transaction, and raises `StorageError`."""

    database: Database

    async def fingerprints(self, corpus: str) -> dict[str, str]:
        """Return each document's key and fingerprint; an empty one if a change was begun and never committed."""
        query = sa.select(documents.c.key, documents.c.fingerprint).where(documents.c.corpus == corpus)
        rows = await self._all(query)
        return {row.key: row.fingerprint for row in rows}

    async def document(self, corpus: str, key: str) -> Document | None:
        rows = await self._all(sa.select(documents).where(documents.c.corpus == corpus, documents.c.key == key))
        return _document(rows[0]) if rows else None

    async def stored(self, corpus: str, keys: Collection[str]) -> dict[str, tuple[Document, tuple[Passage, ...]]]:
        """Return these documents by key, as far as they exist, each with its listed passages in order.

        A passage's hash is empty if a change was begun and never committed, or its text no longer fits it.
        """
        return await self.database.read(lambda connection: _fetch_stored(connection, corpus, keys))

    async def begin(self, changes: Sequence[DocumentChange], lease: Lease | None = None) -> None:
        """Record what is about to be written to the indexes, so that they hold nothing unknown. Raises `LeaseLost`."""

        def begin(connection: sa.Connection) -> None:
            require_lease(connection, lease)
            manifest_tx.begin_changes(connection, changes)

        await self.database.write(begin, WritePriority.BATCH)

    async def commit(self, changes: Sequence[DocumentChange], lease: Lease | None = None) -> tuple[DocumentChange, ...]:
        """Switch all these documents at once: until then the old version is found, from then on the new.

        Returns the conflicts, which stay unchanged: changed since they were planned, or forgotten on purpose.

        Raises:
            LeaseLost: Another process has taken the lease.
        """

        def commit(connection: sa.Connection) -> tuple[DocumentChange, ...]:
            require_lease(connection, lease)
            return manifest_tx.commit_changes(connection, changes)

        return await self.database.write(commit, WritePriority.BATCH)

    async def unlisted(self, corpus: str | None = None) -> tuple[tuple[str, str], ...]:
        """Return (corpus, id) of what the indexes may hold and must not show, of one corpus or of all."""
        # All corpora are named one by one because the index begins with the corpus.
        within = sa.select(corpora.c.name) if corpus is None else [corpus]
        query = sa.select(passages.c.corpus, passages.c.id).where(
            passages.c.corpus.in_(within), sa.not_(passages.c.listed)
        )
        return tuple((row.corpus, row.id) for row in await self._all(query))

    async def purge(self, ids: Iterable[str]) -> None:
        """Delete the rows of passages that the indexes no longer hold. A listed one stays."""
        gone = tuple(ids)
        await self._write(lambda connection: manifest_tx.purge_passages(connection, gone))

    async def join(self, ids: Collection[str], within: Collection[str]) -> dict[str, ListedPassage]:
        """Return by id the passages that are listed in one of the corpora `within`, with their documents.

        One whose text no longer fits its hash is left out, and logged.
        """
        query = _listed_query().where(passages.c.corpus.in_(within))
        chunks = [query.where(passages.c.id.in_(chunk)) for chunk in split_chunks(ids)]
        rows = await self.database.read(lambda it: [row for chunk in chunks for row in it.execute(chunk)])
        return {row.id: _with_document(row) for row in _drop_altered(rows)}

    async def listed(self, corpus: str, *, after: str = "", limit: int = 1000) -> tuple[ListedPassage, ...]:
        """Return up to `limit` listed passages whose ids follow `after`, by id, with their documents."""
        query = _listed_query().where(passages.c.corpus == corpus, passages.c.id > after).order_by(passages.c.id)
        return tuple(_with_document(row) for row in await self._all(query.limit(limit)))

    async def catalogue(self) -> tuple[Corpus, ...]:
        """Return the corpora by name; quick, whatever their size."""
        known = corpora.c.name, corpora.c.refreshed_at, corpora.c.reference, corpora.c.generation
        return tuple(Corpus(*row) for row in await self._all(sa.select(*known).order_by(corpora.c.name)))

    async def corpora(self) -> tuple[CorpusInfo, ...]:
        """Return the corpora by name, and count their content, which takes seconds for a whole Wikipedia."""
        return await self.database.read(_fetch_corpora)

    async def describe(self, corpus: str, *, reference: bool) -> None:
        """Record what a corpus is, before anything of it is indexed."""
        described = sa.update(corpora).where(corpora.c.name == corpus).values(reference=reference)

        def describe(connection: sa.Connection) -> None:
            manifest_tx.add_missing_corpora(connection, {corpus})
            connection.execute(described)

        await self._write(describe)

    async def finish(
        self, corpus: str, at: datetime, unread: Iterable[tuple[str, str]] = (), checkpoint: Checkpoint | None = None
    ) -> None:
        """Record the end of a refresh: when, which documents were unreadable and why, and the checkpoint, if any."""
        rows = [{"corpus": corpus, "key": key, "reason": reason} for key, reason in dict(unread).items()]
        await self._write(lambda connection: _finish(connection, corpus, at, rows, checkpoint))

    async def checkpoint(self, corpus: str) -> Checkpoint:
        """Return the checkpoint of a corpus's source; an empty one where none is known."""
        query = sa.select(corpora.c.mark, corpora.c.mark_of, corpora.c.edition).where(corpora.c.name == corpus)
        rows = await self._all(query)
        return Checkpoint(*rows[0]) if rows else Checkpoint()

    async def forgotten(self, corpus: str) -> frozenset[str]:
        """Return the keys of documents that were removed on purpose; no refresh brings them back."""
        rows = await self._all(sa.select(forgotten.c.key).where(forgotten.c.corpus == corpus))
        return frozenset(row.key for row in rows)

    async def all_forgotten(self) -> tuple[DocumentRef, ...]:
        """Return what was removed on purpose, under its names of then, by corpus and key."""
        query = sa.select(forgotten.c.corpus, forgotten.c.key, forgotten.c.title, forgotten.c.url)
        return tuple(DocumentRef(*row) for row in await self._all(query.order_by("corpus", "key")))

    async def find_forgotten(self, address: str) -> tuple[DocumentRef, ...]:
        """Find what was removed on purpose, as `find` does what is there."""
        return await self.database.read(lambda connection: manifest_tx.find_documents(connection, address, forgotten))

    async def forget(self, corpus: str, keys: Collection[str]) -> None:
        """Keep refreshes from bringing these back. What is listed of them stays until it is removed."""
        await self._write(lambda connection: _forget(connection, corpus, keys))

    async def remember(self, corpus: str, keys: Collection[str]) -> None:
        """Let refreshes read these again."""
        await self._write(lambda connection: _remember(connection, corpus, keys))

    async def find(self, address: str) -> tuple[DocumentRef, ...]:
        """Find documents by address (a final slash, fragment or revision does not matter), key or exact title."""
        return await self.database.read(lambda connection: manifest_tx.find_documents(connection, address))

    async def failures(self, corpus: str) -> tuple[tuple[str, str], ...]:
        """Return (key, reason) of each document that the last refresh could not read, by key."""
        query = sa.select(failures.c.key, failures.c.reason).where(failures.c.corpus == corpus).order_by("key")
        return tuple((row.key, row.reason) for row in await self._all(query))

    async def _write(self, function: Callable[[sa.Connection], None]) -> None:
        await self.database.write(function, WritePriority.BATCH)

    async def _all(self, query: sa.Select[Any]) -> Sequence[_Row]:
        return await self.database.read(lambda connection: connection.execute(query).all())


def _fetch_stored(
    connection: sa.Connection, corpus: str, keys: Collection[str]
) -> dict[str, tuple[Document, tuple[Passage, ...]]]:
    found: dict[str, Document] = {}
    texts: dict[str, list[Passage]] = {}
    for chunk in split_chunks(keys):
        query = sa.select(documents).where(documents.c.corpus == corpus, documents.c.key.in_(chunk))
        found |= {row.key: _document(row) for row in connection.execute(query)}
        of_these = passages.c.corpus == corpus, passages.c.document.in_(chunk), passages.c.listed
        rows = connection.execute(sa.select(*manifest_tx.PASSAGE_COLUMNS).where(*of_these).order_by("position", "id"))
        for row in rows:
            title = found[row.document].title if row.document in found else ""
            texts.setdefault(row.document, []).append(_passage(row, row.hash if _is_intact(row, title) else ""))
    return {key: (document, tuple(texts.get(key, ()))) for key, document in found.items()}


def _finish(
    connection: sa.Connection,
    corpus: str,
    at: datetime,
    unread: Sequence[Mapping[str, str]],
    checkpoint: Checkpoint | None,
) -> None:
    manifest_tx.add_missing_corpora(connection, {corpus})
    kept = {}
    if checkpoint:
        kept = {"mark": checkpoint.mark, "mark_of": checkpoint.digest, "edition": checkpoint.edition}
    connection.execute(sa.update(corpora).where(corpora.c.name == corpus).values(refreshed_at=at, **kept))
    connection.execute(sa.delete(failures).where(failures.c.corpus == corpus))
    manifest_tx.execute_each(connection, sa.insert(failures), unread)


def _forget(connection: sa.Connection, corpus: str, keys: Collection[str]) -> None:
    web = is_web_corpus(corpus)  # its pages are in no table, and named by their addresses
    named = {key: {"corpus": corpus, "key": key, "title": "", "url": key if web else ""} for key in keys}
    for table in (forgotten, documents):  # a document may have other names than when it was forgotten before
        for chunk in split_chunks(keys):
            query = sa.select(table.c.corpus, table.c.key, table.c.title, table.c.url)
            rows = connection.execute(query.where(table.c.corpus == corpus, table.c.key.in_(chunk))).mappings()
            named |= {row["key"]: dict(row) for row in rows}
    _remember(connection, corpus, keys)
    manifest_tx.execute_each(connection, sa.insert(forgotten), named.values())


def _remember(connection: sa.Connection, corpus: str, keys: Collection[str]) -> None:
    for chunk in split_chunks(keys):
        connection.execute(sa.delete(forgotten).where(forgotten.c.corpus == corpus, forgotten.c.key.in_(chunk)))


def _fetch_corpora(connection: sa.Connection) -> tuple[CorpusInfo, ...]:
    runs = fetch_last_runs(connection)
    return tuple(
        CorpusInfo(
            row.name,
            row.documents,
            row.passages,
            row.refreshed_at,
            row.failures,
            row.edition,
            runs.get(row.name),
            row.forgotten,
        )
        for row in connection.execute(_overview_query())
    )


def _listed_query() -> sa.Select[Any]:
    same = sa.and_(documents.c.corpus == passages.c.corpus, documents.c.key == passages.c.document)
    columns = sa.select(*manifest_tx.PASSAGE_COLUMNS, *_DOCUMENT)
    return columns.join_from(passages, documents, same).where(passages.c.listed)


def _overview_query() -> sa.Select[Any]:
    def number(table: sa.Table, *conditions: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
        of_corpus = table.c.corpus == corpora.c.name
        return sa.select(sa.func.count()).select_from(table).where(of_corpus, *conditions).scalar_subquery()

    return sa.select(
        corpora.c.name,
        number(documents).label("documents"),
        number(passages, passages.c.listed).label("passages"),
        corpora.c.refreshed_at,
        corpora.c.edition,
        number(failures).label("failures"),
        number(forgotten).label("forgotten"),
    ).order_by(corpora.c.name)


def _passage(row: _Row, content_hash: str) -> Passage:
    kind = PassageKind(row.kind)
    return Passage(row.id, row.corpus, row.document, row.section, row.text, row.position, content_hash, kind)


def _document(row: _Row) -> Document:
    about = (row.title, row.url, row.revision, row.date, row.language, row.fingerprint)
    aliases = tuple(row.aliases.split("\n")) if row.aliases else ()
    return Document(row.corpus, row.key, *about, aliases, row.disambiguation)


def _is_intact(row: _Row, title: str) -> bool:
    """Return whether a passage is what was stored; one whose change was begun and not committed has no hash."""
    return row.hash in {"", hash_passage(title, row.section, row.text)}


def _drop_altered(rows: Iterable[_Row]) -> Iterator[_Row]:
    for row in rows:
        if _is_intact(row, row.title):
            yield row
        else:
            what = "a passage is not what was stored, and not quoted: `footnote ingest --only` reads its document again"
            log.error(what, extra={"corpus": row.corpus, "document": row.document})


def _with_document(row: _Row) -> ListedPassage:
    # A change that was begun and not committed still shows the old version, and so the old hash.
    return _passage(row, row.hash or hash_passage(row.title, row.section, row.text)), _document(row)
