"""Write, remove and search passages: one interface to the manifest and its indexes.

The manifest in SQL decides what exists. Vectors are written before a change is committed to the manifest, and removed
after it, so the dense index may contain more than the manifest, but never less. The lexical index follows the manifest
and records up to which change. Searches see the manifest as it was at that change.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType

import numpy as np

from storage.database.bodies import PackedBody, pack_passages
from storage.database.document_versions import DocumentChange, PackedDocument, VersionChange
from storage.database.refresh_log import Leases, RefreshLog
from storage.database.worker_threads import IndexThreads
from storage.errors import REINDEX_HINT, IndexStale
from storage.indexes.dense import DenseIndex, DenseRebuild
from storage.indexes.embedding import Embedder, Vectors, open_model
from storage.indexes.index_state import find_probe, list_stale_reasons
from storage.indexes.lexical import IndexedVersion, LexicalIndex, index_version
from storage.manifest import Manifest
from storage.search.candidate_search import (
    LAZY_DEPTH,
    SEARCH_ATTEMPTS,
    Candidates,
    CandidateSearch,
    apply_bonus,
)
from storage.search.corpus_embedders import CorpusEmbedders, choose_default, sample_passages
from storage.search.lazy_vectors import LazyVectors, PassageRow
from storage.types import KEPT_VECTORS, CorpusInfo, DenseMode, DocumentId, Hit, Lease, Passage

CANDIDATES = 50  # passages that each retriever offers to the fusion
DISAMBIGUATION_MALUS = 20.0  # deviations subtracted from the score of disambiguation pages, which come last
UPSERT_BATCH = 32  # an upsert holds the interpreter: 24 to 65 ms for so many passages, over a second for thousands
EMBED_BATCH = 64  # passages embedded at a time; larger batches are not faster, and make others wait
REINDEX_DOCUMENTS = 100
FOLLOWED_PASSAGES = 5_000  # per commit of the lexical index while it follows


@dataclass
class Activity:
    """The time of the store's last search, on `time.monotonic()`."""

    last: float = 0.0


@dataclass(frozen=True)
class PassageStore:
    """The passages: the manifest and both indexes. The threads belong to the code that opened the store."""

    manifest: Manifest
    dense: DenseIndex
    lexical: LexicalIndex
    embedder: Embedder  # of corpora for which none is chosen
    threads: IndexThreads
    own_first: Callable[[], float] = float
    """Deviations added to the fused score of the team's own passages, compared with works of reference."""
    choose: Callable[[str, str], str] = choose_default  # see `CorpusEmbedders`, and the next
    open_model: Callable[[str], Embedder] = open_model
    polite: bool = False  # whether embedding leaves a core for questions
    kept: int = KEPT_VECTORS
    activity: Activity = field(default_factory=Activity, repr=False)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    @cached_property
    def embedders(self) -> CorpusEmbedders:
        return CorpusEmbedders(self.dense, self.embedder, self.choose, self.open_model)

    @cached_property
    def lazy(self) -> LazyVectors:
        pools = self.threads.read, self.threads.write, self.threads.embed
        return LazyVectors(self.manifest, self.dense, self.embedders, *pools, self.kept)

    async def flush(self) -> None:
        """Wait until all pending vectors of lazy corpora are stored."""
        if "lazy" in vars(self):
            await self.lazy.flush()

    @property
    def leases(self) -> Leases:
        return Leases(self.manifest.database)

    @property
    def runs(self) -> RefreshLog:
        return RefreshLog(self.manifest.database)

    async def search(self, text: str, corpora: Sequence[str], k: int) -> tuple[Hit, ...]:
        """Return the `k` best passages of `corpora`, best first, by their fused dense and lexical scores.

        The team's own corpora get a bonus next to works of reference; disambiguation pages get a malus.
        """
        if not corpora or k < 1:
            return ()
        self.activity.last = time.monotonic()
        depth = max(CANDIDATES, k)
        candidates = await self.candidates(text, corpora, depth, max(LAZY_DEPTH, k))
        fused = candidates.fuse(depth)
        listed = candidates.listed
        own_first = self.own_first()
        bonus = {key: own_first for key, (passage, _) in listed.items() if passage.corpus in candidates.preferred}
        malus = {key: -DISAMBIGUATION_MALUS for key, (_, document) in listed.items() if document.disambiguation}
        ranking = apply_bonus(apply_bonus(fused, bonus), malus)[:k]
        return tuple(candidates.make_hit(key, score) for key, score in ranking)

    async def candidates(self, text: str, corpora: Sequence[str], k: int, depth: int = LAZY_DEPTH) -> Candidates:
        """Return the candidates that either index finds; see `CandidateSearch.find`."""
        pools = self.threads.read, self.threads.embed
        read_lazy = lambda rows: self.lazy.read(rows)  # noqa: E731, PLW0108 - only lazy corpora need it
        indexes = CandidateSearch(self.manifest, self.dense, self.lexical, *pools, self.embedders, read_lazy)
        return await indexes.find(text, corpora, k, depth)

    async def compare(self, text: str, others: Sequence[str]) -> tuple[float, ...]:
        """Return the cosines of `text` with each of `others`."""
        return await self.threads.embed.run(self.embedders.compare, text, others) if others else ()

    async def _choose_first(self, corpus: str, passages: Iterable[Passage]) -> None:
        """Choose the embedder of a corpus before its first documents are stored."""
        if await self.threads.read.run(self.dense.count, corpus):
            return
        if not any(info.passages for info in await self.manifest.corpora() if info.name == corpus):
            await self._choose(corpus, passages)

    async def _choose(self, corpus: str, passages: Iterable[Passage]) -> None:
        """Let the chosen model make the vectors of a corpus; those of another are removed."""
        embedder = await self.threads.read.run(self.embedders.choose, corpus, passages)
        if await self.threads.write.run(self.dense.choose, corpus, embedder.name):
            self.lazy.forget_fresh()

    async def apply(self, changes: Sequence[DocumentChange], lease: Lease | None = None) -> frozenset[DocumentId]:
        """Apply changes; a reader sees each document either as before or as after.

        An interruption loses nothing: uncommitted documents keep their old fingerprint, so the next refresh reads them
        again. Returns the conflicts, and raises, as `Manifest.commit` does.
        """
        modes = {info.name: info.dense for info in await self.manifest.catalogue()}
        embedded = [change for change in changes if modes.get(change.corpus) is not DenseMode.OFF]
        touched = [change for change in embedded if change.add or change.drop]
        eager = [change for change in touched if modes.get(change.corpus, DenseMode.EAGER) is DenseMode.EAGER]
        fresh = [(change.document, passage) for change in eager if change.document for passage in change.add]
        for corpus in sorted({passage.corpus for _, passage in fresh}):
            await self._choose_first(corpus, (passage for _, passage in fresh if passage.corpus == corpus))
        # This takes most of the time, so it runs outside the lock.
        vectors = await self._embed(fresh)
        async with self._writing:
            names = [(change.corpus, change.key) for change in touched]
            if names:
                await self.manifest.begin(names, self.lexical.name, lease)
            await self._upsert([passage for _, passage in fresh], vectors)
            packed = await self.threads.think.run(_pack_changes, changes)
            commit = await self.manifest.commit(packed, lease)
            await self._follow()
            gone = [change for change in touched if (change.corpus, change.key) not in commit.conflicts]
            await self._drop([(change.corpus, id_) for change in gone for id_ in change.drop], modes)
            await self._settle(set(names) - commit.conflicts)
            if left := commit.conflicts & set(names):
                await self._mend(sorted(left))
        return commit.conflicts

    async def store_packed(
        self, corpus: str, documents: Sequence[PackedDocument], lease: Lease | None = None
    ) -> frozenset[DocumentId]:
        """Store new versions of packed documents, without vectors. Returns and raises as `apply` does."""
        changes = [
            VersionChange(corpus, packed.document.key, packed.document, packed.passages, packed.body)
            for packed in documents
        ]
        bodies = (PackedBody(packed.document, packed.body) for packed in documents)
        await self._choose_first(corpus, (passage for body in bodies for passage in body.all()))
        async with self._writing:
            commit = await self.manifest.commit(changes, lease)
            ready = {
                number: IndexedVersion(number, corpus, packed.document.language, packed.terms)
                for packed in documents
                if (number := commit.numbers.get((corpus, packed.document.key)))
            }
            await self._follow(ready)
            await self._settle(())
            await self.lazy.drop(corpus, [packed.document.key for packed in documents])
        return commit.conflicts

    async def remove(self, corpus: str, keys: Collection[str], *, erasing: bool = False) -> Mapping[str, int]:
        """Remove documents from searches; with `erasing`, delete their texts. Return the numbers of passages by key."""
        stored = await self.manifest.stored(corpus, keys)
        changes = [VersionChange(corpus, key, None) for key in sorted(stored)]
        await self.manifest.begin([(corpus, key) for key in sorted(stored)], self.lexical.name)
        await self.manifest.commit(changes, erasing=erasing)
        await self.tidy()
        return {key: len(version.passages) for key, version in stored.items()}

    async def words_held(self) -> dict[str, str]:
        """Return the hash of each passage in the lexical index by its id. This reads everything.

        A passage that the manifest does not have is named by its place, with an empty hash.
        """
        places = await self.threads.read.run(self.lexical.places)
        versions_read = await self.manifest.versions({number for number, _ in places})
        versions = {version.number: version for version in versions_read}
        hashes: dict[str, str] = {}
        for number, position in places:
            passages = versions[number].passages if number in versions else ()
            one = passages[position] if position < len(passages) else None
            hashes[one.id if one else f"{number}/{position}"] = one.hash if one else ""
        return hashes

    async def tidy(self) -> None:
        """Update the indexes after removals, unless a writer is active, which will do so itself."""
        if not self._writing.locked():
            await self.recover()

    async def recover(self) -> None:
        """Follow changes by other processes, and finish changes that were interrupted."""
        async with self._writing:
            await self._settle(())  # first, so that nothing that it is about to follow is purged
            await self._follow()
            await self._mend(await self.manifest.unsettled(self.lexical.name))
            await self._settle(())

    async def check(self) -> None:
        """Raise `IndexStale` if an index is incomplete, or was made by another embedder or version."""
        lazy = [info.name for info in await self.manifest.catalogue() if info.dense is DenseMode.LAZY]
        for name in lazy if isinstance(self.dense.place, Path) else ():  # on a server, other homes may be using it
            await self.threads.write.run(self.dense.drop_foreign, name)  # its vectors can be made again
        for attempt in range(SEARCH_ATTEMPTS):
            corpora = await self.manifest.corpora()
            reasons = await self.threads.read.run(list_stale_reasons, self.dense, self.lexical, corpora)
            head = (await self.manifest.lag(self.lexical.followed, 1)).head
            if reasons and (head == self.lexical.followed or attempt == SEARCH_ATTEMPTS - 1):
                raise IndexStale(reasons[0], hint=REINDEX_HINT)
            if not reasons:
                return
            await self.tidy()  # another home committed between the two

    async def embed_missing(self, corpus: str, progress: Callable[[int], Awaitable[None]]) -> None:
        """Embed a corpus's passages that lack vectors, passing their number to `progress`. May be interrupted."""
        if not await self.threads.read.run(self.dense.count, corpus):
            await self._choose(corpus, await sample_passages(self.manifest, corpus))
        done = after = 0
        while versions := await self.manifest.listed(corpus, after=after, limit=REINDEX_DOCUMENTS):
            rows = [(version.document, passage) for version in versions for passage in version.passages]
            known = await self.threads.read.run(self.dense.fitting, [one for _, one in rows]) if rows else {}
            fresh = [row for row in rows if row[1].id not in known]
            vectors = [row for part in await self._embed(fresh) for row in part]
            async with self._writing:  # documents changed meanwhile are skipped
                names = {(corpus, one.document) for _, one in fresh}
                present = await self.manifest.recall({one.id for _, one in fresh}, names)
                current = [(one, row) for (_, one), row in zip(fresh, vectors, strict=True) if one.id in present]
                parts = (current[start : start + EMBED_BATCH] for start in range(0, len(current), EMBED_BATCH))
                batches = [[row for _, row in part] for part in parts]
                await self._upsert([one for one, _ in current], batches)
            after, done = versions[-1].number, done + len(rows)
            await progress(done)

    async def drop_vectors(self, corpus: str) -> None:
        """Remove all vectors of a corpus; from now on, its passages are found only by words."""
        await self.threads.write.run(self.dense.remove, corpus)

    async def probe(self) -> None:
        """Search both indexes for an existing passage, as a question would. Raises `StorageError` if that fails."""
        words = await find_probe(self.manifest)
        await self.search(words, [corpus.name for corpus in await self.manifest.catalogue()] if words else (), 1)

    async def reindex(self, progress: Callable[[int, int], None], *, vectors: bool = True) -> int:
        """Rebuild the indexes from the manifest, reporting (done, total) to `progress`; return the number of passages.

        Vectors of unchanged passages are kept, and an interrupted rebuild continues. Without `vectors`, the dense index
        is not touched, because other homes may be using it.
        """
        async with self._writing:
            corpora = await self.manifest.corpora()
            total = sum(corpus.passages for corpus in corpora)
            done, rebuilt = 0, corpora if vectors else ()
            for unknown in sorted(set(self.dense.corpora()) - {info.name for info in corpora}) if vectors else ():
                await self.threads.write.run(self.dense.remove, unknown)
            for corpus in rebuilt:
                done += await self._rebuild_vectors(corpus, partial(_add_progress, progress, done, total))
            await self.threads.write.run(self.lexical.begin_again)
            await self._settle(())
            await self._follow()
            await self.threads.write.run(self.lexical.switch)
            await self._settle(await self.manifest.unsettled(self.lexical.name) if vectors else ())
            progress(total, total)
            return total

    async def _rebuild_vectors(self, corpus: CorpusInfo, progress: Callable[[int], None]) -> int:
        if corpus.dense is DenseMode.OFF:
            await self.threads.write.run(self.dense.remove, corpus.name)
            return 0
        passages = await sample_passages(self.manifest, corpus.name)
        if corpus.dense is DenseMode.LAZY:
            await self.threads.write.run(self.dense.drop_foreign, corpus.name)
            await self._choose(corpus.name, passages)
            return 0
        embedder = await self.threads.read.run(self.embedders.choose, corpus.name, passages)
        rebuilt = await self.threads.write.run(self.dense.rebuild, corpus.name, embedder.name)
        done = after = 0
        while versions := await self.manifest.listed(corpus.name, after=after, limit=REINDEX_DOCUMENTS):
            rows = [(version.document, passage) for version in versions for passage in version.passages]
            missing = await self.threads.write.run(rebuilt.adopt, [one for _, one in rows])
            fresh = [row for row in rows if row[1].id in missing]
            await self._upsert([one for _, one in fresh], await self._embed(fresh, embedder), rebuilt)
            after, done = versions[-1].number, done + len(rows)
            progress(done)
        await self.threads.write.run(rebuilt.switch)
        return done

    async def _follow(self, ready: Mapping[int, IndexedVersion] = MappingProxyType({})) -> None:
        """Update the lexical index to the last change of the manifest. Versions in `ready` need not be read again."""
        while True:
            lag = await self.manifest.lag(self.lexical.followed, FOLLOWED_PASSAGES)
            if lag.upto == self.lexical.followed:
                return
            versions = await self.manifest.versions([number for number in lag.added if number not in ready])
            read = await self.threads.think.run(
                lambda found: {version.number: index_version(version) for version in found}, versions
            )
            added = [found for number in lag.added if (found := ready.get(number) or read.get(number))]
            await self.threads.write.run(self.lexical.follow, added, lag.retired, lag.upto)

    async def _settle(self, names: Collection[DocumentId]) -> None:
        while not await self.manifest.settle(names, self.lexical.name, self.lexical.followed):
            await self.threads.write.run(self.lexical.clear)

    async def _mend(self, names: Sequence[DocumentId]) -> None:
        """Correct the dense index, so that it has exactly the current passages of these documents."""
        if not names:
            return
        modes = {info.name: info.dense for info in await self.manifest.catalogue()}
        for corpus, key in names:
            vectors = await self.threads.write.run(self.dense.held, corpus, key)
            stored = (await self.manifest.stored(corpus, [key])).get(key)
            passages = {passage.id: passage for passage in stored.passages} if stored else {}
            gone = [one for one, content in vectors.items() if one not in passages or passages[one].hash != content]
            await self._drop([(corpus, id_) for id_ in gone], modes)
            if stored and modes.get(corpus) is DenseMode.EAGER:
                lacking = [
                    (stored.document, passage) for passage in stored.passages if vectors.get(passage.id) != passage.hash
                ]
                await self._upsert([one for _, one in lacking], await self._embed(lacking))
        await self._settle(names)

    async def _embed(self, rows: Sequence[PassageRow], by: Embedder | None = None) -> list[list[Vectors]]:
        """Embed rows in batches, so that other writers can work between them; by default as their corpora are."""
        batches = (rows[start : start + EMBED_BATCH] for start in range(0, len(rows), EMBED_BATCH))
        embed = partial(self.embedders.embed, polite=self.polite, by=by)
        return [await self.threads.ingest.run(embed, batch) for batch in batches]

    async def _upsert(
        self,
        passages: Sequence[Passage],
        vectors: Sequence[Sequence[Vectors]],
        into: "DenseIndex | DenseRebuild | None" = None,
    ) -> None:
        """Write vectors, given in batches of `EMBED_BATCH`."""
        write = (into or self.dense).upsert
        for number, part in enumerate(vectors):
            batch = passages[number * EMBED_BATCH : (number + 1) * EMBED_BATCH]
            for _, run in groupby(zip(batch, part, strict=True), key=lambda row: row[0].corpus):
                rows = list(run)
                for start in range(0, len(rows), UPSERT_BATCH):
                    some = rows[start : start + UPSERT_BATCH]
                    await self.threads.write.run(write, [one for one, _ in some], np.stack([row for _, row in some]))

    async def _drop(self, gone: Sequence[tuple[str, str]], modes: Mapping[str, DenseMode]) -> None:
        for corpus, pairs in groupby(sorted(gone), key=itemgetter(0)):
            if modes.get(corpus) is DenseMode.LAZY:
                await self.lazy.remove(list(pairs))
            else:
                await self.threads.write.run(self.dense.delete, corpus, [key for _, key in pairs])


def _pack_changes(changes: Sequence[DocumentChange]) -> list[VersionChange]:
    return [_pack_change(change) for change in changes]


def _pack_change(change: DocumentChange) -> VersionChange:
    body = pack_passages(change.passages) if change.document else b""
    return VersionChange(change.corpus, change.key, change.document, len(change.passages), body, change.over)


def _add_progress(progress: Callable[[int, int], None], before: int, total: int, done: int) -> None:
    progress(before + done, total)
