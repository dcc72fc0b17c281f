"""How often and how lately each vector was of use that a lazy corpus keeps: one number a vector, bounded like these.

A use counts half as much after each half-life. The number is the logarithm of what all uses count at a fixed moment: so
nothing has to be lowered as time passes, and of two vectors the one with the lesser number is the less useful, always.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

import sqlalchemy as sa

from storage.database.engine import INSERTS, Database, split_chunks
from storage.database.schema import vector_uses
from storage.database.worker_threads import WritePriority
from storage.types import PassageRef

HALF_LIFE = timedelta(days=30)


def add_use(worth: float | None, at: datetime, *, early: float = 0.0) -> float:
    """Return the worth of a vector after a use; one that counts as if it were so many half-lives `early`."""
    now = at.timestamp() / HALF_LIFE.total_seconds() - early
    if worth is None:
        return now
    return max(worth, now) + math.log2(1 + 2 ** -abs(worth - now))


@dataclass(frozen=True)
class VectorUses:
    """The uses of kept vectors. Every method is one transaction, and raises `StorageError`."""

    database: Database

    async def note(self, refs: Collection[PassageRef], at: datetime, *, early: float = 0.0) -> None:
        """Count a use of each of these, as `add_use` does."""

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
        """Return the ids of what is kept of a corpus."""
        query = sa.select(vector_uses.c.id).where(vector_uses.c.corpus == corpus)
        return frozenset(row.id for row in await self.database.read(lambda it: it.execute(query).all()))

    async def of_documents(self, corpus: str, keys: Collection[str]) -> tuple[str, ...]:
        """Return the ids of what is kept of these documents."""
        of_corpus = sa.select(vector_uses.c.id).where(vector_uses.c.corpus == corpus)
        queries = [of_corpus.where(vector_uses.c.document.in_(chunk)) for chunk in split_chunks(keys)]
        rows = await self.database.read(lambda it: [row for query in queries for row in it.execute(query)])
        return tuple(row.id for row in rows)

    async def least_useful(self, corpora: Collection[str], most: int) -> tuple[tuple[str, str], ...]:
        """Return corpus and id of the least useful vectors of these corpora, the worst first."""
        query = sa.select(vector_uses.c.corpus, vector_uses.c.id).where(vector_uses.c.corpus.in_(corpora))
        ordered = query.order_by(vector_uses.c.worth, vector_uses.c.id).limit(most)
        rows = await self.database.read(lambda it: it.execute(ordered).all())
        return tuple((row.corpus, row.id) for row in rows)

    async def forget(self, gone: Sequence[tuple[str, str]]) -> None:
        """Forget vectors that are kept no more, by corpus and id."""
        grouped = {corpus: [key for _, key in rows] for corpus, rows in groupby(sorted(gone), key=lambda row: row[0])}
        deletions = [
            sa.delete(vector_uses).where(vector_uses.c.corpus == corpus, vector_uses.c.id.in_(chunk))
            for corpus, ids in grouped.items()
            for chunk in split_chunks(ids)
        ]
        await self.database.write(lambda it: [it.execute(one) for one in deletions], WritePriority.BATCH)

    async def forget_others(self, corpora: Collection[str]) -> None:
        """Forget the vectors of all corpora but these."""
        gone = sa.delete(vector_uses).where(vector_uses.c.corpus.not_in(corpora))
        await self.database.write(lambda it: it.execute(gone), WritePriority.BATCH)


def _fetch_worths(connection: sa.Connection, refs: Collection[PassageRef]) -> Mapping[tuple[str, str], float]:
    rows = [
        row
        for chunk in split_chunks({ref.id for ref in refs})
        for row in connection.execute(sa.select(vector_uses).where(vector_uses.c.id.in_(chunk)))
    ]
    return {(row.corpus, row.id): row.worth for row in rows}
