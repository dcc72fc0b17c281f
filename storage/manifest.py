"""The manifest: the list of existing documents and passages. Searches ignore everything else that the indexes contain.

Each change of a document creates a version of it, whose number is higher than any before. The lexical index of each
home follows these numbers, so that several homes can share one manifest. A home sees the manifest as it was at the
number up to which its index has followed, with each document in one complete version. Retired versions are kept until
the indexes of all homes have followed beyond them.
"""

import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from storage.database import manifest_tx
from storage.database.bodies import (
    BodyDamaged,
    FingerprintTable,
    PackedBody,
    PackedVersion,
    VersionMemory,
    pack_passages,
)
from storage.database.document_versions import DocumentOutline, StoredVersion, VersionChange
from storage.database.engine import Database, split_chunks
from storage.database.manifest_tx import Commit, Follower, Lag
from storage.database.refresh_log import require_lease
from storage.database.schema import bodies, corpora, documents, failures, forgotten
from storage.database.worker_threads import WritePriority
from storage.types import (
    Checkpoint,
    Corpus,
    CorpusInfo,
    DenseMode,
    Document,
    DocumentId,
    DocumentRef,
    Lease,
    Passage,
    is_web_corpus,
)

log = logging.getLogger(__name__)

_Row = sa.Row[*tuple[Any, ...]]
_VERSION = [*manifest_tx.DOCUMENT_COLUMNS, documents.c.retired, bodies.c.body, bodies.c.seal]

_SAMPLED = 20_000  # documents from which a sample is drawn
FETCHED_ROWS = 10_000  # rows held at a time by queries that may return millions


_NOTHING = PackedBody(Document("", "", ""), pack_passages([]))


@dataclass(frozen=True)
class Manifest:
    """The indexed documents and corpora. Every method is one transaction, and raises `StorageError`."""

    database: Database
    _memory: VersionMemory = field(default_factory=VersionMemory, repr=False, compare=False)

    async def fingerprints(self, corpus: str) -> FingerprintTable:
        """Return the fingerprint of each document by its key; empty for one that must be read again."""
        query = sa.select(documents.c.key, documents.c.fingerprint)
        query = query.where(documents.c.corpus == corpus, documents.c.retired == 0).order_by(documents.c.number)
        piecemeal = {"yield_per": FETCHED_ROWS}

        def fetch(connection: sa.Connection) -> FingerprintTable:
            return FingerprintTable(map(tuple, connection.execute(query, execution_options=piecemeal)))

        return await self.database.read(fetch)

    async def document(self, corpus: str, key: str) -> Document | None:
        for known in self._memory.recall(self._state(), (), [(corpus, key)]).values():
            return known.document
        rows = await self._all(sa.select(documents).where(*manifest_tx.filter_current(corpus, [key])))
        return _document(rows[0]) if rows else None

    async def stored(self, corpus: str, keys: Collection[str]) -> dict[str, StoredVersion]:
        """Return these documents, by key, if they exist. Damaged passages are left out."""

        def fetch(connection: sa.Connection) -> dict[str, StoredVersion]:
            queries = (_versions().where(*manifest_tx.filter_current(corpus, chunk)) for chunk in split_chunks(keys))
            versions = (self._version(row) for query in queries for row in connection.execute(query))
            return {version.document.key: version for version in versions}

        return await self.database.read(fetch)

    async def begin(self, names: Collection[DocumentId], follower: str, lease: Lease | None = None) -> None:
        """Record the documents whose vectors a home is about to change, so that they can be fixed after a crash.

        Raises `LeaseLost` if another process has taken the lease.
        """

        def begin(connection: sa.Connection) -> None:
            require_lease(connection, lease)
            manifest_tx.begin_changes(connection, names, follower)

        await self.database.write(begin, WritePriority.BATCH)

    async def commit(
        self, changes: Sequence[VersionChange], lease: Lease | None = None, *, erasing: bool = False
    ) -> Commit:
        """Replace the current version of each document, all at once. With `erasing`, also delete the old texts.

        Documents that were changed since the change was planned, or forgotten, are conflicts, and stay unchanged.
        Raises `LeaseLost` if another process has taken the lease.
        """

        def commit(connection: sa.Connection) -> Commit:
            require_lease(connection, lease)
            made = manifest_tx.commit_versions(connection, changes)
            for change in changes if erasing else ():
                manifest_tx.erase_bodies(connection, change.corpus, [change.key])
            return made

        return await self.database.write(commit, WritePriority.BATCH)

    async def unsettled(self, follower: str) -> tuple[DocumentId, ...]:
        """Return the documents whose vectors may not fit their current version. This home must fix them."""
        now = datetime.now(UTC)
        return await self.database.write(lambda it: manifest_tx.adopt_changes(it, follower, now), WritePriority.BATCH)

    async def settle(self, names: Collection[DocumentId], follower: str, followed: int) -> bool:
        """Record that these documents' vectors are right, and how far this home's index has followed the manifest.

        Returns False if the index has missed purged changes, and must be rebuilt.
        """
        now = datetime.now(UTC)

        def settle(connection: sa.Connection) -> bool:
            manifest_tx.settle_changes(connection, names, follower)
            return manifest_tx.record_follower(connection, follower, followed, now)

        return await self.database.write(settle, WritePriority.BATCH)

    async def followers(self) -> tuple[Follower, ...]:
        """Return how far the index of each home has followed, the most recently seen home first."""
        return await self.database.read(manifest_tx.fetch_followers)

    async def lag(self, followed: int, most: int) -> Lag:
        """Return the next changes after the number `followed`, as many as contain about `most` passages."""
        return await self.database.read(lambda it: manifest_tx.fetch_lag(it, followed, most))

    async def versions(self, numbers: Collection[int]) -> tuple[StoredVersion, ...]:
        """Return the versions with these numbers, sorted by number. Retired ones are included, but not erased ones."""
        chunks = [_versions().where(documents.c.number.in_(chunk)) for chunk in split_chunks(numbers)]
        rows = await self.database.read(lambda it: [row for chunk in chunks for row in it.execute(chunk)])
        return tuple(sorted(map(self._version, rows), key=lambda version: version.number))

    async def visible(
        self, followed: int, numbers: Collection[int], named: Collection[DocumentId], within: Collection[str]
    ) -> tuple[PackedVersion, ...]:
        """Return the versions with these numbers, and of each `named` document the version at the change `followed`.

        Only versions in the corpora `within` are returned.
        """
        state = self._state()
        known = self._memory.recall(state, numbers, named)
        versions = {number: one for number, one in known.items() if number in numbers or number <= followed}
        names_seen = {(version.document.corpus, version.document.key) for version in versions.values()}
        unread, unnamed = set(numbers).difference(versions), set(named).difference(names_seen)
        if unread or unnamed:
            read = await self.database.read(partial(self._fetch_visible, followed, unread, unnamed, within))
            self._memory.keep(state, read)
            versions |= {version.number: version for version in read}
        return tuple(version for version in versions.values() if version.document.corpus in within)

    def _state(self) -> Hashable:
        return self.database.count_changes(documents, bodies)

    def _fetch_visible(
        self,
        followed: int,
        numbers: Collection[int],
        named: Collection[DocumentId],
        within: Collection[str],
        connection: sa.Connection,
    ) -> list[PackedVersion]:
        by_key = [
            sa.and_(
                documents.c.corpus == corpus,
                documents.c.key.in_(chunk),
                documents.c.number <= followed,
                sa.or_(documents.c.retired == 0, documents.c.retired > followed),
            )
            for corpus in within
            for chunk in split_chunks({key for of, key in named if of == corpus})
        ]
        # Corpora are filtered afterwards: SQLite would scan a whole corpus to find some of its numbers.
        by_number = [documents.c.number.in_(chunk) for chunk in split_chunks(numbers)]
        queries = [_versions().where(condition) for condition in (*by_number, *by_key)]
        rows = {row.number: row for query in queries for row in connection.execute(query)}
        versions = [self._unpack(row) for row in rows.values()]
        for version in versions:
            if (version.document.corpus, version.document.key) in named:  # its passages are looked up by id
                version.body.identify()
        return versions

    async def recall(self, ids: Collection[str], among: Collection[DocumentId]) -> dict[str, tuple[Passage, Document]]:
        """Return, by id, those of these passages that exist and belong to one of the documents in `among`."""
        found: dict[str, tuple[Passage, Document]] = {}
        for corpus in sorted({corpus for corpus, _ in among}):
            stored = await self.stored(corpus, {key for of, key in among if of == corpus})
            for version in stored.values():
                found |= {passage.id: (passage, version.document) for passage in version.passages if passage.id in ids}
        return found

    async def listed(self, corpus: str, *, after: int = 0, limit: int = 1000) -> tuple[StoredVersion, ...]:
        """Return up to `limit` documents of a corpus, sorted by number; only numbers higher than `after`."""
        # The concatenation keeps SQLite from an index that would scan the whole corpus for each page.
        unindexed = documents.c.corpus.concat("") == corpus
        of_corpus = unindexed, documents.c.retired == 0, documents.c.number > after
        query = _versions().where(*of_corpus).order_by(documents.c.number).limit(limit)
        return tuple(map(self._version, await self._all(query)))

    async def outline(self, corpus: str, *, after: int = 0, limit: int = 10_000) -> tuple[DocumentOutline, ...]:
        """Return outlines of up to `limit` documents of a corpus, by number; only numbers higher than `after`."""
        unindexed = documents.c.corpus.concat("") == corpus
        query = sa.select(documents).where(unindexed, documents.c.retired == 0, documents.c.number > after)
        rows = await self._all(query.order_by(documents.c.number).limit(limit))
        return tuple(map(_outline, rows))

    async def sample(self, corpus: str, count: int) -> tuple[StoredVersion, ...]:
        """Return about `count` documents, spread evenly over the keys of a corpus, or over its first keys if large."""
        standing = documents.c.corpus == corpus, documents.c.retired == 0
        first = sa.select(documents.c.number, documents.c.key).where(*standing).order_by(documents.c.key)
        among = first.limit(_SAMPLED).subquery()
        place, total = sa.func.row_number().over(order_by=among.c.key), sa.func.count().over()
        placed = sa.select(among.c.number, place.label("place"), total.label("total")).subquery()
        chosen = sa.select(placed.c.number).where(placed.c.place * count % placed.c.total < count)
        query = _versions().where(documents.c.number.in_(chosen)).order_by(documents.c.key)
        return tuple(map(self._version, await self._all(query)))

    async def count_aliases(self, corpora: Collection[str], after: int, upto: int) -> dict[DocumentId, int]:
        """Return how many other titles a document has, if any, for numbers of documents above `after`, up to `upto`."""
        stretch = documents.c.number > after, documents.c.number <= upto, documents.c.retired == 0
        columns = documents.c.corpus, documents.c.key, documents.c.aliases
        rows = await self._all(sa.select(*columns).where(*stretch, documents.c.aliases != ""))
        return {(row.corpus, row.key): row.aliases.count("\n") + 1 for row in rows if row.corpus in corpora}

    async def catalogue(self) -> tuple[Corpus, ...]:
        """Return the corpora by name, without counts."""
        known = corpora.c.name, corpora.c.refreshed_at, corpora.c.reference, corpora.c.generation, corpora.c.dense
        query = sa.select(*known).where(manifest_tx.IS_CORPUS).order_by(corpora.c.name)
        rows = await self.database.read_kept(query, [corpora, forgotten])
        return tuple(
            Corpus(row.name, row.refreshed_at, row.reference, row.generation, DenseMode(row.dense)) for row in rows
        )

    async def corpora(self) -> tuple[CorpusInfo, ...]:
        """Return the corpora by name, with their sizes and states."""
        return await self.database.read(manifest_tx.fetch_corpora)

    async def describe(self, corpus: str, *, reference: bool, dense: DenseMode | None = None) -> None:
        """Record a corpus's properties before its first document is indexed; if `dense` is None, it stays unchanged."""
        values = {"reference": reference} | ({"dense": dense.value} if dense else {})
        described = sa.update(corpora).where(corpora.c.name == corpus).values(values)

        def describe(connection: sa.Connection) -> None:
            manifest_tx.add_missing_corpora(connection, {corpus})
            connection.execute(described)

        await self._write(describe)

    async def finish(
        self, corpus: str, at: datetime, unread: Iterable[tuple[str, str]] = (), checkpoint: Checkpoint | None = None
    ) -> None:
        """Record a refresh's end: its time, each unreadable document with the reason, and the checkpoint, if any."""
        rows = [{"corpus": corpus, "key": key, "reason": reason} for key, reason in dict(unread).items()]
        await self._write(lambda connection: _finish(connection, corpus, at, rows, checkpoint))

    async def checkpoint(self, corpus: str) -> Checkpoint:
        """Return the checkpoint of a corpus's source; an empty one if none is known."""
        query = sa.select(corpora.c.mark, corpora.c.mark_of, corpora.c.edition).where(corpora.c.name == corpus)
        rows = await self._all(query)
        return Checkpoint(*rows[0]) if rows else Checkpoint()

    async def forgotten(self, corpus: str) -> frozenset[str]:
        """Return the keys of forgotten documents; no refresh reads them again."""
        query = sa.select(forgotten.c.key).where(forgotten.c.corpus == corpus)
        rows = await self.database.read_kept(query, [forgotten], corpus)
        return frozenset(row.key for row in rows)

    async def all_forgotten(self) -> tuple[DocumentRef, ...]:
        """Return all forgotten documents, with the names that they had when forgotten, by corpus and key."""
        query = sa.select(forgotten.c.corpus, forgotten.c.key, forgotten.c.title, forgotten.c.url)
        return tuple(DocumentRef(*row) for row in await self._all(query.order_by("corpus", "key")))

    async def find_forgotten(self, address: str) -> tuple[DocumentRef, ...]:
        """Find forgotten documents, as `find` finds existing ones."""
        return await self.database.read(lambda connection: manifest_tx.find_documents(connection, address, forgotten))

    async def forget(self, corpus: str, keys: Collection[str]) -> None:
        """Stop refreshes from reading these documents again. Their passages stay until the documents are removed."""
        await self._write(lambda connection: _forget(connection, corpus, keys))

    async def remember(self, corpus: str, keys: Collection[str]) -> None:
        """Let refreshes read these documents again."""
        await self._write(lambda connection: _remember(connection, corpus, keys))

    async def list_again(self, corpus: str) -> None:
        """Make the next refresh list everything in the source, not only its changes."""
        unmarked = sa.update(corpora).where(corpora.c.name == corpus).values(mark_of="")
        await self.database.write(lambda it: it.execute(unmarked), WritePriority.BATCH)

    async def drop(self, corpus: str) -> None:
        """Delete an emptied corpus and everything recorded about it, except its past refreshes."""
        await self._write(lambda connection: _drop(connection, corpus))

    async def find(self, address: str) -> tuple[DocumentRef, ...]:
        """Find documents by key, exact title or address; a final slash, fragment or revision does not matter."""
        return await self.database.read(lambda connection: manifest_tx.find_documents(connection, address))

    async def failures(self, corpus: str) -> tuple[tuple[str, str], ...]:
        """Return (key, reason) of each document that the last refresh could not read, by key."""
        query = sa.select(failures.c.key, failures.c.reason).where(failures.c.corpus == corpus).order_by("key")
        return tuple((row.key, row.reason) for row in await self._all(query))

    def _version(self, row: _Row) -> StoredVersion:
        version = self._unpack(row)
        return StoredVersion(version.number, version.document, version.body.all())

    def _unpack(self, row: _Row) -> PackedVersion:
        """Return a version. If its passages are not those that were stored, log that and return it without passages."""
        document, body = _document(row), _NOTHING
        try:
            body = self._memory.unpack(row.number, row.seal, document, row.body)
        except BodyDamaged:
            message = (
                "a document was changed outside Footnote and is not quoted: `footnote ingest --only` reads it again"
            )
            log.error(message, extra={"corpus": row.corpus, "document": row.key})  # noqa: TRY400 - a traceback would not help
        return PackedVersion(row.number, document, body, row.seal, is_current=not row.retired)

    async def _write(self, function: Callable[[sa.Connection], None]) -> None:
        await self.database.write(function, WritePriority.BATCH)

    async def _all(self, query: sa.Select[Any]) -> Sequence[_Row]:
        return await self.database.read(lambda connection: connection.execute(query).all())


def _finish(
    connection: sa.Connection,
    corpus: str,
    at: datetime,
    unread: Sequence[Mapping[str, str]],
    checkpoint: Checkpoint | None,
) -> None:
    manifest_tx.add_missing_corpora(connection, {corpus})
    values: dict[str, Any] = {"refreshed_at": at}
    if checkpoint:
        values |= {"mark": checkpoint.mark, "mark_of": checkpoint.digest, "edition": checkpoint.edition}
    connection.execute(sa.update(corpora).where(corpora.c.name == corpus).values(values))
    connection.execute(sa.delete(failures).where(failures.c.corpus == corpus))
    manifest_tx.execute_each(connection, sa.insert(failures), unread)


def _forget(connection: sa.Connection, corpus: str, keys: Collection[str]) -> None:
    web = is_web_corpus(corpus)  # its pages are in no table; their names are their addresses
    named = {key: {"corpus": corpus, "key": key, "title": "", "url": key if web else ""} for key in keys}
    for table in (forgotten, documents):  # a document may have been renamed since it was forgotten before
        for chunk in split_chunks(keys):
            query = sa.select(table.c.corpus, table.c.key, table.c.title, table.c.url)
            of_these = [table.c.corpus == corpus, table.c.key.in_(chunk)]
            if table is documents:
                of_these.append(documents.c.retired == 0)
            rows = connection.execute(query.where(*of_these)).mappings()
            named |= {row["key"]: dict(row) for row in rows}
    _remember(connection, corpus, keys)
    manifest_tx.execute_each(connection, sa.insert(forgotten), named.values())


def _remember(connection: sa.Connection, corpus: str, keys: Collection[str]) -> None:
    for chunk in split_chunks(keys):
        connection.execute(sa.delete(forgotten).where(forgotten.c.corpus == corpus, forgotten.c.key.in_(chunk)))


def _drop(connection: sa.Connection, corpus: str) -> None:
    for table in (failures, forgotten):
        connection.execute(sa.delete(table).where(table.c.corpus == corpus))
    emptied = {"refreshed_at": None, "mark": "", "mark_of": "", "edition": "", "generation": corpora.c.generation + 1}
    connection.execute(sa.update(corpora).where(corpora.c.name == corpus).values(emptied))


def _versions() -> sa.Select[Any]:
    return sa.select(*_VERSION).join_from(documents, bodies, bodies.c.number == documents.c.number)


def _document(row: _Row) -> Document:
    about = (row.title, row.url, row.revision, row.date, row.language, row.fingerprint)
    aliases = tuple(row.aliases.split("\n")) if row.aliases else ()
    return Document(row.corpus, row.key, *about, aliases, row.disambiguation)


def _outline(row: _Row) -> DocumentOutline:
    aliases = row.aliases.count("\n") + 1 if row.aliases else 0
    about = row.number, row.key, row.title, row.revision, row.date
    return DocumentOutline(*about, aliases, row.passages, row.disambiguation)
