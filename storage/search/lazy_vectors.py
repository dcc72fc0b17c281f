"""The vectors of lazy corpora: made when a question needs them, and stored until others are more useful.

A passage that is being embedded for one question is not embedded again for another. Concurrent questions take turns,
with a few passages each. Vectors are written to the dense index after the question has got them. If the process ends
before that, they are made again when needed.

The usefulness of a vector is one number. A use counts half as much after each half-life. The number is the logarithm of
the sum of all uses, counted as if at a fixed moment, so it need not be updated as time passes.
"""

import asyncio
import logging
import math
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

import numpy as np
import sqlalchemy as sa

from storage.clock import Clock, utc_now
from storage.database.document_versions import PassageRef
from storage.database.engine import INSERTS, Database, split_chunks
from storage.database.schema import vector_uses
from storage.database.worker_threads import ThreadPool, WritePriority
from storage.errors import StorageError
from storage.indexes.dense import DenseIndex
from storage.indexes.embedding import Vectors
from storage.manifest import Manifest
from storage.search.corpus_embedders import CorpusEmbedders
from storage.types import DenseMode, Document, Passage

HALF_LIFE = timedelta(days=30)


def add_use(worth: float | None, at: datetime, *, early: float = 0.0) -> float:
    """Return the worth of a vector after one more use.

    With `early`, the use counts as if it were that many half-lives old.
    """
    now = at.timestamp() / HALF_LIFE.total_seconds() - early
    if worth is None:
        return now
    return max(worth, now) + math.log2(1 + 2 ** -abs(worth - now))


@dataclass(frozen=True)
class VectorUses:
    """The uses of stored vectors. Every method is one transaction, and raises `StorageError`."""

    database: Database

    async def note(self, refs: Collection[PassageRef], at: datetime, *, early: float = 0.0) -> None:
        """Record one use of each of these vectors, as `add_use` computes it."""

        def note(connection: sa.Connection) -> None:
            known = _fetch_worths(connection, refs)
            rows = [
                {"corpus": ref.corpus, "id": ref.id, "document": ref.document, "worth": worth}
                for ref in sorted(refs, key=lambda ref: (ref.corpus, ref.id))
                for worth in [add_use(known.get((ref.corpus, ref.id)), at, early=early)]
            ]
            insert = INSERTS[connection.dialect.name](vector_uses)
            changed = {"worth": insert.excluded.worth, "document": insert.excluded.document}
            if rows:
                connection.execute(insert.on_conflict_do_update(index_elements=["corpus", "id"], set_=changed), rows)

        await self.database.write(note, WritePriority.BATCH)

    async def known(self, corpus: str) -> frozenset[str]:
        """Return the ids of a corpus's stored vectors."""
        query = sa.select(vector_uses.c.id).where(vector_uses.c.corpus == corpus)
        return frozenset(row.id for row in await self.database.read(lambda it: it.execute(query).all()))

    async def of_documents(self, corpus: str, keys: Collection[str]) -> tuple[str, ...]:
        """Return the ids of these documents' stored vectors."""
        of_corpus = sa.select(vector_uses.c.id).where(vector_uses.c.corpus == corpus)
        queries = [of_corpus.where(vector_uses.c.document.in_(chunk)) for chunk in split_chunks(keys)]
        rows = await self.database.read(lambda it: [row for query in queries for row in it.execute(query)])
        return tuple(row.id for row in rows)

    async def least_useful(self, corpora: Collection[str], most: int) -> tuple[tuple[str, str], ...]:
        """Return (corpus, id) of the least useful vectors of these corpora, the worst first."""
        query = sa.select(vector_uses.c.corpus, vector_uses.c.id).where(vector_uses.c.corpus.in_(corpora))
        ordered = query.order_by(vector_uses.c.worth, vector_uses.c.id).limit(most)
        rows = await self.database.read(lambda it: it.execute(ordered).all())
        return tuple((row.corpus, row.id) for row in rows)

    async def forget(self, gone: Sequence[tuple[str, str]]) -> None:
        """Forget the uses of removed vectors, named by corpus and id."""
        grouped = {corpus: [key for _, key in rows] for corpus, rows in groupby(sorted(gone), key=lambda row: row[0])}
        deletions = [
            sa.delete(vector_uses).where(vector_uses.c.corpus == corpus, vector_uses.c.id.in_(chunk))
            for corpus, ids in grouped.items()
            for chunk in split_chunks(ids)
        ]
        await self.database.write(lambda it: [it.execute(deletion) for deletion in deletions], WritePriority.BATCH)

    async def forget_others(self, corpora: Collection[str]) -> None:
        """Forget the uses of all corpora except these."""
        gone = sa.delete(vector_uses).where(vector_uses.c.corpus.not_in(corpora))
        await self.database.write(lambda it: it.execute(gone), WritePriority.BATCH)


def _fetch_worths(connection: sa.Connection, refs: Collection[PassageRef]) -> Mapping[tuple[str, str], float]:
    rows = [
        row
        for chunk in split_chunks({ref.id for ref in refs})
        for row in connection.execute(sa.select(vector_uses).where(vector_uses.c.id.in_(chunk)))
    ]
    return {(row.corpus, row.id): row.worth for row in rows}


log = logging.getLogger(__name__)

PassageRow = tuple[Document, Passage]

EMBEDDED_AT_ONCE = 8  # passages of one question before the next question has its turn
WRITTEN_AT_ONCE = 32  # vectors per upsert, which holds the interpreter for some tens of milliseconds
MOST_FRESH = 2_048  # vectors in memory, of 384 numbers each: 3 MB
SLACK = 50  # 1/50 of the vectors is removed at once, so that not every question has to make room
NOTED_AT_ONCE = 256  # uses that are written together


@dataclass(frozen=True)
class LazyVectors:
    """The stored vectors of all lazy corpora; together at most `most`."""

    manifest: Manifest
    dense: DenseIndex
    embedders: CorpusEmbedders
    read_pool: ThreadPool
    write_pool: ThreadPool
    embed_pool: ThreadPool
    most: int
    now: Clock = utc_now
    _running: dict[str, asyncio.Task[dict[str, Vectors]]] = field(default_factory=dict)
    _fresh: dict[str, Vectors] = field(default_factory=dict)  # recently made, some not yet in the index
    _used: set[PassageRef] = field(default_factory=set)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    _keeping: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def uses(self) -> VectorUses:
        return VectorUses(self.manifest.database)

    async def read(self, rows: Sequence[PassageRow]) -> dict[str, Vectors]:
        """Return the vector of each passage by its id. Raises `EmbeddingUnavailable` and `StorageError`."""
        found: dict[str, Vectors] = {}
        for passages in _by_corpus(one for _, one in self._add_fresh(found, rows)):
            known_vectors = await self.read_pool.run(self.dense.fitting, passages)
            found |= {_name(passage): known_vectors[passage.id] for passage in passages if passage.id in known_vectors}
        self._used.update(PassageRef(one.corpus, one.document, one.id) for _, one in rows if _name(one) in found)
        if len(self._used) >= NOTED_AT_ONCE:
            self._start(self._note_uses())
        made: list[PassageRow] = []
        try:
            while missing := self._add_fresh(found, rows):
                mine = [row for row in missing if _key(row) not in self._running][:EMBEDDED_AT_ONCE]
                if mine:
                    made += mine
                    task = self._start(self._embed(mine))
                    self._running.update(dict.fromkeys(map(_key, mine), task))
                else:
                    task = self._running[_key(missing[0])]
                found |= await asyncio.shield(task)
        finally:
            if made:
                self._start(self._keep(made))
        return {one.id: found[_name(one)] for _, one in rows}

    async def fill(self, rows: Sequence[PassageRow], *, early: float) -> int:
        """Embed and store the missing vectors of these rows, and return their number.

        Their first use counts as if it were `early` half-lives old.
        """
        new: list[PassageRow] = []
        for passages in _by_corpus(one for _, one in rows):
            known_vectors = await self.read_pool.run(self.dense.fitting, passages)
            lacking = {passage.id for passage in passages if passage.id not in known_vectors}
            new += [row for row in rows if row[1].id in lacking]
        for start in range(0, len(new), EMBEDDED_AT_ONCE):
            part = new[start : start + EMBEDDED_AT_ONCE]
            await self._start(self._embed(part, polite=True))
            await self._keep(part, early=early)
        return len(new)

    async def room(self) -> int:
        """Return how many more vectors may be stored."""
        return self.most - sum([await self._count(name) for name in await self._lazy()])

    async def drop(self, corpus: str, keys: Sequence[str]) -> None:
        """Remove the vectors of documents that have changed."""
        await self.remove([(corpus, id_) for id_ in await self.uses.of_documents(corpus, keys)])

    async def flush(self) -> None:
        """Store the pending uses of vectors, and wait until all pending vectors are stored, too."""
        if self._used:
            self._start(self._note_uses())
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def forget_fresh(self) -> None:
        """Forget recently made vectors, because another embedder was chosen."""
        self._fresh.clear()

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a task that continues even if its caller stops waiting."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as retrieved; a waiting caller gets it

    async def _embed(self, rows: Sequence[PassageRow], *, polite: bool = False) -> dict[str, Vectors]:
        try:
            vectors = await self.embed_pool.run(self.embedders.embed, rows, polite=polite)
            made = {_key(row): vector for row, vector in zip(rows, vectors, strict=True)}
            self._fresh.update(made)
            return made
        finally:
            for row in rows:
                self._running.pop(_key(row), None)

    async def _keep(self, rows: Sequence[PassageRow], *, early: float = 0.0) -> None:
        """Store new vectors, except those of passages that were removed meanwhile."""
        running = {self._running[_key(row)] for row in rows if _key(row) in self._running}
        await asyncio.gather(*running, return_exceptions=True)
        ready = [row for row in rows if _key(row) in self._fresh]
        try:
            async with self._keeping:
                if self.most:
                    await self._write(ready)
                    refs = [PassageRef(one.corpus, one.document, one.id) for _, one in ready]
                    await self.uses.note(refs, self.now(), early=early)
                    await self._forget_removed(refs)
                    await self._make_room()
        except StorageError as error:
            log.warning("storing vectors failed: %s", error)
        while len(self._fresh) > MOST_FRESH:
            self._fresh.pop(next(iter(self._fresh)))

    def _add_fresh(self, found: dict[str, Vectors], rows: Iterable[PassageRow]) -> list[PassageRow]:
        """Add recently made vectors to `found`, and return the rows that are still missing."""
        missing = [row for row in rows if _key(row) not in found]
        found |= {_key(row): self._fresh[_key(row)] for row in missing if _key(row) in self._fresh}
        return [row for row in missing if _key(row) not in found]

    async def _write(self, rows: Sequence[PassageRow]) -> None:
        for passages in _by_corpus(one for _, one in rows):
            for start in range(0, len(passages), WRITTEN_AT_ONCE):
                part = passages[start : start + WRITTEN_AT_ONCE]
                vectors = np.stack([self._fresh[_name(passage)] for passage in part])
                await self.write_pool.run(self.dense.upsert, part, vectors)

    async def _forget_removed(self, refs: Sequence[PassageRef]) -> None:
        present = await self.manifest.recall({ref.id for ref in refs}, {(ref.corpus, ref.document) for ref in refs})
        await self.remove([(ref.corpus, ref.id) for ref in refs if ref.id not in present])

    async def _make_room(self) -> None:
        counts = {name: await self._count(name) for name in await self._lazy()}
        if (over := sum(counts.values()) - self.most) <= 0:
            return
        over += self.most // SLACK
        await self.uses.forget_others(counts)
        gone = [*await self._unknown(counts)][:over]
        gone += await self.uses.least_useful(counts, over - len(gone)) if over > len(gone) else ()
        await self.remove(gone)

    async def _unknown(self, counts: Mapping[str, int]) -> list[tuple[str, str]]:
        """Return the vectors without recorded uses, for example because their corpus was eager before."""
        found: list[tuple[str, str]] = []
        for corpus, count in counts.items():
            used = await self.uses.known(corpus)
            if count > len(used):
                known_vectors = await self.read_pool.run(self.dense.contents, corpus)
                found += [(corpus, key) for key in sorted(known_vectors.keys() - used)]
        return found

    async def remove(self, gone: Sequence[tuple[str, str]]) -> None:
        """Remove these vectors, named by corpus and id. Unknown ones are ignored."""
        for corpus, rows in groupby(sorted(gone), key=lambda row: row[0]):
            await self.write_pool.run(self.dense.delete, corpus, [one for _, one in rows])
        if gone:
            await self.uses.forget(gone)

    async def _note_uses(self) -> None:
        used = frozenset(self._used)
        self._used.clear()
        try:
            await self.uses.note(used, self.now())
        except StorageError as error:
            log.warning("counting uses of vectors failed: %s", error)

    async def _lazy(self) -> list[str]:
        return [corpus.name for corpus in await self.manifest.catalogue() if corpus.dense is DenseMode.LAZY]

    async def _count(self, corpus: str) -> int:
        return await self.read_pool.run(self.dense.count, corpus)


def _name(passage: Passage) -> str:
    return f"{passage.id}/{passage.hash}"


def _key(row: PassageRow) -> str:
    return _name(row[1])


def _by_corpus(passages: Iterable[Passage]) -> list[list[Passage]]:
    ordered = sorted({passage.id: passage for passage in passages}.values(), key=lambda one: one.corpus)
    return [list(group) for _, group in groupby(ordered, key=lambda one: one.corpus)]
