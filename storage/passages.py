"""Write, remove and search passages: one face over the manifest and its indexes.

The manifest in SQL says what exists. An index may hold more (a write that was cut short, a removal that is still to be
swept), never less: indexes are written before the manifest and cleaned after it, and what the manifest does not list
is never returned.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from storage.database.refresh_log import Leases, RefreshLog
from storage.errors import REINDEX_HINT, IndexStale
from storage.indexes import indexed_text
from storage.indexes.candidate_search import (
    CorpusGroup,
    IndexThreads,
    Retriever,
    apply_bonus,
    fuse_scores,
    group_corpora,
)
from storage.indexes.dense import ChromaLocation, DenseIndex
from storage.indexes.embedding import Embedder, Vectors
from storage.indexes.lexical import LexicalIndex
from storage.manifest import Manifest
from storage.types import CorpusInfo, Document, DocumentChange, Hit, Lease, Passage

PassageRow = tuple[Document, Passage]

CANDIDATES = 50  # how many passages each retriever offers to the fusion
DISAMBIGUATION_MALUS = 20.0  # deviations of the fused score that disambiguation pages lose, so that they come last
UPSERT_BATCH = 32  # an upsert holds the interpreter: 24 to 65 ms for this many passages, over a second for thousands
EMBED_BATCH = 64  # passages whose vectors are made at a time; more are not made faster, and keep others waiting
REINDEX_PAGE = 1_000
SEARCH_ATTEMPTS = 4  # how often a search is made at most while a refresh commits to the same corpora

_Scores = dict[str, float]
_Candidates = tuple[CorpusGroup, list[CorpusGroup], _Scores, _Scores, dict[str, tuple[Passage, Document]]]


@dataclass(frozen=True)
class PassageStore:
    """Passages, by the manifest and both indexes. Its threads belong to whoever opened it."""

    manifest: Manifest
    dense: DenseIndex
    lexical: LexicalIndex
    embedder: Embedder
    threads: IndexThreads
    own_first: float = 0.0
    """Deviations of the fused score that the team's own passages gain over those of works of reference."""
    polite: bool = False  # leave a core for questions while passages are being embedded
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    @property
    def leases(self) -> Leases:
        return Leases(self.manifest.database)

    @property
    def runs(self) -> RefreshLog:
        return RefreshLog(self.manifest.database)

    async def search(self, text: str, corpora: Sequence[str], k: int) -> tuple[Hit, ...]:
        """Return the `k` best passages of `corpora`, best first, by dense and lexical score fused."""
        if not corpora or k < 1:
            return ()
        wanted = max(CANDIDATES, k)
        own, reference, dense, lexical, listed = await self._candidates(text, corpora, wanted)
        dense, lexical = _keep_listed(dense, listed), _keep_listed(lexical, listed)
        fused = fuse_scores(dense, lexical, asked=wanted, dense_weight=self.embedder.knows(text))
        bonus = {key: self.own_first for key, (passage, _) in listed.items() if reference and passage.corpus in own}
        malus = {key: -DISAMBIGUATION_MALUS for key, (_, document) in listed.items() if document.disambiguation}
        ranking = apply_bonus(apply_bonus(fused, bonus), malus)[:k]
        return tuple(
            Hit(*listed[key], score=score, dense=dense.get(key, 0.0), lexical=lexical.get(key, 0.0))
            for key, score in ranking
        )

    async def _candidates(self, text: str, corpora: Sequence[str], wanted: int) -> _Candidates:
        """Return what both indexes offer, joined with the manifest at one moment.

        A commit between the two would lose both versions of a document; so where candidates are no longer listed and a
        corpus has moved on, the indexes are asked again.
        """
        retriever = Retriever(self.dense, self.lexical, self.embedder, self.threads)
        catalogue = await self.manifest.catalogue()
        for more in reversed(range(SEARCH_ATTEMPTS)):
            own, *reference = group_corpora(corpora, {corpus.name for corpus in catalogue if corpus.reference})
            dense, lexical = await retriever.candidates(text, [own, *reference], wanted)
            found = {*dense, *lexical}
            listed = await self.manifest.join(found, corpora)
            if not more or len(listed) == len(found):
                break
            before, catalogue = catalogue, await self.manifest.catalogue()
            if catalogue == before:
                break
        return own, reference, dense, lexical, listed

    async def compare(self, text: str, others: Sequence[str]) -> tuple[float, ...]:
        """Return the cosine of `text` with each of `others`."""
        if not others:
            return ()
        vectors = await self.threads.embed.run(self.embedder.embed, [text, *others])
        return tuple(float(cosine) for cosine in vectors[1:] @ vectors[0])

    async def apply(self, changes: Sequence[DocumentChange], lease: Lease | None = None) -> tuple[DocumentChange, ...]:
        """Apply changes to one corpus: a reader sees each document as it was or as it is, never half.

        Cut short at any moment, nothing is lost: the documents concerned lose their fingerprint, and the next refresh
        reads them again. Returns the conflicts, and raises, as `Manifest.commit` does.
        """
        rows = [(change.document, passage) for change in changes if change.document for passage in change.add]
        # This takes most of the time, and whoever writes one document meanwhile does not wait for it.
        vectors = await self._embed(rows)
        async with self._writing:
            await self.manifest.begin(changes, lease)
            await self._write(rows, vectors)
            conflicts = await self.manifest.commit(changes, lease)
            await self._sweep()
        return conflicts

    async def tidy(self) -> None:
        """Remove from the indexes what is no longer listed, unless a writer is at work, which will do it."""
        if not self._writing.locked():
            await self.recover()

    async def recover(self) -> None:
        """Finish what an interrupted process left half done; with nothing to do it costs one query."""
        async with self._writing:
            await self._sweep()

    async def check(self) -> None:
        """Raise `IndexStale` where an index is missing, incomplete, or was made with another embedder or version."""
        corpora = await self.manifest.corpora()
        if reasons := await self.threads.read.run(_stale_reasons, self.dense, self.lexical, corpora):
            raise IndexStale(reasons[0], hint=REINDEX_HINT)

    async def reindex(self, progress: Callable[[int, int], None]) -> int:
        """Rebuild both indexes from the manifest, telling `progress` (done, total), and return their size."""
        async with self._writing:
            corpora = await self.manifest.corpora()
            gone = await self.manifest.unlisted()
            await self.manifest.purge([key for _, key in gone])
            await self.threads.write.run(self._clear)
            total, done = sum(corpus.passages for corpus in corpora), 0
            for corpus in corpora:
                after = ""
                while page := await self.manifest.listed(corpus.name, after=after, limit=REINDEX_PAGE):
                    rows = [(document, passage) for passage, document in page]
                    await self._write(rows, await self._embed(rows))
                    after, done = page[-1][0].id, done + len(page)
                    progress(done, total)
            return done

    async def _embed(self, rows: Sequence[PassageRow]) -> list[Vectors]:
        """Embed rows in batches, so that other writers get their turn in between."""
        batches = (
            [indexed_text(document, passage) for document, passage in rows[start : start + EMBED_BATCH]]
            for start in range(0, len(rows), EMBED_BATCH)
        )
        return [await self.threads.ingest.run(self.embedder.embed, texts, polite=self.polite) for texts in batches]

    async def _write(self, rows: Sequence[PassageRow], vectors: Sequence[Vectors]) -> None:
        """Write rows of one corpus into both indexes; their vectors come in batches of `EMBED_BATCH`."""
        for number, part in enumerate(vectors):
            batch = rows[number * EMBED_BATCH : (number + 1) * EMBED_BATCH]
            await self._upsert([passage for _, passage in batch], part)
        if rows:
            await self.threads.write.run(self.lexical.write, rows)

    async def _upsert(self, passages: Sequence[Passage], vectors: Vectors) -> None:
        for start in range(0, len(passages), UPSERT_BATCH):
            part = passages[start : start + UPSERT_BATCH]
            ids, hashes = [passage.id for passage in part], [passage.hash for passage in part]
            vectors_of = vectors[start : start + UPSERT_BATCH]
            await self.threads.write.run(self.dense.upsert, part[0].corpus, ids, hashes, vectors_of)

    async def _sweep(self) -> None:
        gone = sorted(await self.manifest.unlisted())
        if not gone:
            return
        for corpus, pairs in groupby(gone, key=itemgetter(0)):
            await self.threads.write.run(self.dense.delete, corpus, [key for _, key in pairs])
        await self.threads.write.run(self.lexical.delete, [key for _, key in gone])
        await self.manifest.purge([key for _, key in gone])

    def _clear(self) -> None:
        for corpus in self.dense.corpora():
            self.dense.remove(corpus)
        self.lexical.clear()


def find_stale_indexes(
    home: Path, chroma: ChromaLocation, embedder: str, corpora: Sequence[CorpusInfo]
) -> tuple[str, ...]:
    """Return why the indexes of a home do not fit what is listed, if they do not. Only its owner may ask. Blocks."""
    folders = [home / "lexical", *([chroma] if isinstance(chroma, Path) else [])]
    if missing := [folder for folder in folders if not folder.exists()]:
        return (
            tuple(f"{folder} is missing." for folder in missing) if any(corpus.passages for corpus in corpora) else ()
        )
    with closing(DenseIndex(chroma, embedder=embedder)) as dense, closing(LexicalIndex(folders[0])) as lexical:
        return _stale_reasons(dense, lexical, corpora)


def _stale_reasons(dense: DenseIndex, lexical: LexicalIndex, corpora: Sequence[CorpusInfo]) -> tuple[str, ...]:
    reasons = [dense.stale(corpus.name, corpus.passages) for corpus in corpora]
    expected, count = sum(corpus.passages for corpus in corpora), lexical.count()
    short = f"The lexical index holds {count:,} of {expected:,} passages." if count < expected else ""
    return tuple(filter(None, (*reasons, short)))


def _keep_listed(scores: dict[str, float], listed: dict[str, tuple[Passage, Document]]) -> dict[str, float]:
    return {key: score for key, score in scores.items() if key in listed}
