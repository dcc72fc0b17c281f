"""Write, remove and search passages: one face over the manifest and its indexes.

The manifest in SQL says what exists. An index may hold more (an interrupted write, a removal still to be swept),
never less: indexes are written before the manifest and cleaned after it, and what it does not list is never returned.

A search fuses scores, not ranks: each retriever's are brought to mean 0 and deviation 1 over all candidates and added,
which keeps how far ahead the first is. Reciprocal rank fusion measured lower on every set tried.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import groupby
from math import inf
from operator import itemgetter
from pathlib import Path
from statistics import fmean, pstdev

from storage.database.refresh_log import Leases, RefreshLog
from storage.database.worker_threads import ThreadPool
from storage.errors import REINDEX_HINT, DatabaseUnusable, IndexStale, StorageError
from storage.home_folder import holds_passages
from storage.indexes.dense import ChromaLocation, DenseIndex
from storage.indexes.embedding import Embedder, VectorMemory, Vectors, indexed_text
from storage.indexes.lexical import CHECKED_BYTES, LexicalIndex
from storage.manifest import Manifest
from storage.types import CorpusInfo, Document, DocumentChange, Hit, Lease, Passage

PassageRow = tuple[Document, Passage]

CANDIDATES = 50  # how many passages each retriever offers to the fusion
DISAMBIGUATION_MALUS = 20.0  # deviations of the fused score that disambiguation pages lose, so that they come last
UPSERT_BATCH = 32  # an upsert holds the interpreter: 24 to 65 ms for this many passages, over a second for thousands
EMBED_BATCH = 64  # passages whose vectors are made at a time; more are not made faster, and keep others waiting
REINDEX_PAGE = 1_000
PROBE_WORDS = 8  # of a passage of each corpus, to find out whether a search works
SEARCH_ATTEMPTS = 4  # how often a search is made at most while a refresh commits to the same corpora

_Scores = dict[str, float]

CorpusGroup = Sequence[str]  # corpora that compete with each other; each group has as many candidates as another

_Candidates = tuple[CorpusGroup, list[CorpusGroup], _Scores, _Scores, dict[str, tuple[Passage, Document]]]


@dataclass(frozen=True)
class IndexThreads:
    """The threads for the store's blocking calls; they end with the stack they were started in."""

    read: ThreadPool
    write: ThreadPool
    embed: ThreadPool
    ingest: ThreadPool
    states: ThreadPool
    think: ThreadPool
    """One thread for computing in Python: more would keep the interpreter from each other and the writer."""

    @staticmethod
    def start(stack: ExitStack) -> "IndexThreads":
        sizes = {"read": 4, "write": 1, "embed": 2, "ingest": 1, "states": 2, "think": 1}
        pools = {name: ThreadPool(f"index-{name}", threads=size) for name, size in sizes.items()}
        return IndexThreads(**{name: stack.enter_context(pool) for name, pool in pools.items()})


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
    _vectors: VectorMemory = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_vectors", VectorMemory(self.embedder))

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
        own, reference, dense, lexical, listed = await self._listed_candidates(text, corpora, wanted)
        dense, lexical = _keep_listed(dense, listed), _keep_listed(lexical, listed)
        fused = fuse_scores(dense, lexical, asked=wanted, dense_weight=self.embedder.knows(text))
        bonus = {key: self.own_first for key, (passage, _) in listed.items() if reference and passage.corpus in own}
        malus = {key: -DISAMBIGUATION_MALUS for key, (_, document) in listed.items() if document.disambiguation}
        ranking = apply_bonus(apply_bonus(fused, bonus), malus)[:k]
        return tuple(
            Hit(*listed[key], score=score, dense=dense.get(key, 0.0), lexical=lexical.get(key, 0.0))
            for key, score in ranking
        )

    async def _listed_candidates(self, text: str, corpora: Sequence[str], wanted: int) -> _Candidates:
        """Return what both indexes offer, joined with the manifest at one moment.

        A commit between the two would lose both versions of a document; so where candidates are no longer listed and a
        corpus has moved on, the indexes are asked again.
        """
        catalogue = await self.manifest.catalogue()
        for more in reversed(range(SEARCH_ATTEMPTS)):
            own, *reference = group_corpora(corpora, {corpus.name for corpus in catalogue if corpus.reference})
            dense, lexical = await self.candidates(text, [own, *reference], wanted)
            found = {*dense, *lexical}
            listed = await self.manifest.join(found, corpora)
            if not more or len(listed) == len(found):
                break
            before, catalogue = catalogue, await self.manifest.catalogue()
            if catalogue == before:
                break
        return own, reference, dense, lexical, listed

    async def candidates(self, text: str, groups: Sequence[CorpusGroup], k: int) -> tuple[_Scores, _Scores]:
        """Return the cosine of the `k` nearest passages of each group, and the BM25 of its `k` best, both by id."""
        near, worded = await asyncio.gather(self._near(text, groups, k), self._worded(text, groups, k))
        return near, worded

    async def _near(self, text: str, groups: Sequence[CorpusGroup], k: int) -> _Scores:
        if self.embedder.knows(text) == 0:
            return {}
        vector = (await self.threads.embed.run(self._vectors.embed, [text]))[0]
        corpora = [corpus for group in groups for corpus in group]
        searches = (self.threads.read.run(self.dense.search, corpus, vector, k) for corpus in corpora)
        of = dict(zip(corpora, await asyncio.gather(*searches), strict=True))
        merged = ([item for corpus in group for item in of[corpus].items()] for group in groups)
        return {key: cosine for scores in merged for key, cosine in sorted(scores, key=_rank)[:k]}

    async def _worded(self, text: str, groups: Sequence[CorpusGroup], k: int) -> _Scores:
        found = await asyncio.gather(*(self.threads.read.run(self.lexical.search, text, group, k) for group in groups))
        return {key: score for scores in found for key, score in scores.items()}

    async def compare(self, text: str, others: Sequence[str]) -> tuple[float, ...]:
        """Return the cosine of `text` with each of `others`."""
        if not others:
            return ()
        vectors = await self.threads.embed.run(self._vectors.embed, [text, *others])
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

    async def probe(self) -> None:
        """Search both indexes for what is listed, as a question would. Raises `StorageError` where that fails."""
        words = await find_probe(self.manifest)
        await self.search(words, [corpus.name for corpus in await self.manifest.catalogue()] if words else (), 1)

    async def reindex(self, progress: Callable[[int, int], None]) -> int:
        """Rebuild both indexes from the manifest, telling `progress` (done, total), and return their size."""
        async with self._writing:
            corpora = await self.manifest.corpora()
            gone = await self.manifest.unlisted()
            await self.threads.write.run(self._clear)
            await self.manifest.purge([key for _, key in gone])
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


async def find_probe(manifest: Manifest) -> str:
    """Return words to search for: the first of a passage of each corpus. Empty where nothing is listed."""
    firsts = [await manifest.listed(corpus.name, limit=1) for corpus in await manifest.catalogue()]
    return " ".join(word for first in firsts for passage, _ in first for word in passage.text.split()[:PROBE_WORDS])


def find_stale_indexes(
    home: Path, chroma: ChromaLocation, embedder: Embedder, corpora: Sequence[CorpusInfo], probe: str
) -> tuple[str, ...]:
    """Return why the indexes of a home do not fit what is listed, if they do not. Only its owner may ask. Blocks.

    Raises `IndexStale` where a search for `probe` fails.
    """
    folders = [home / "lexical", *([chroma] if isinstance(chroma, Path) else [])]
    if missing := [folder for folder in folders if not folder.exists()]:
        return (
            tuple(f"{folder} is missing." for folder in missing) if any(corpus.passages for corpus in corpora) else ()
        )
    with closing(DenseIndex(chroma, embedder=embedder.name)) as dense, closing(LexicalIndex(folders[0])) as lexical:
        if not (reasons := _stale_reasons(dense, lexical, corpora, most=inf)) and probe:
            filled = [corpus.name for corpus in corpora if corpus.passages]
            lexical.search(probe, filled, 1)
            vector = embedder.embed([probe])[0]
            for name in filled:
                dense.search(name, vector, 1)
        return reasons


_LOST_HINT = (
    "Nothing was changed. Restore it from a backup; or, to begin anew, move the folders chroma and lexical away and"
    " ingest again."
)


def refuse_lost_database(home: Path, chroma: ChromaLocation) -> None:
    """Raise `DatabaseUnusable` where SQLite's file is missing or empty, and the indexes beside it are not. Blocks.

    They never hold a passage that the database does not know: so it was lost.
    """
    file = home / "footnote.db"
    if holds_passages(file):
        return
    try:
        held = _count_indexed(home, chroma)
    except StorageError:
        held = 1  # what was never used is not damaged
    if held:
        raise DatabaseUnusable(f"{file} is missing or empty, but the indexes beside it are not.", hint=_LOST_HINT)


def _count_indexed(home: Path, chroma: ChromaLocation) -> int:
    folder, held = home / "lexical", 0
    if folder.exists():
        with closing(LexicalIndex(folder)) as lexical:
            held = lexical.count()
    if not held and isinstance(chroma, Path) and chroma.exists():
        with closing(DenseIndex(chroma, embedder="")) as dense:
            held = dense.total()
    return held


def _stale_reasons(
    dense: DenseIndex, lexical: LexicalIndex, corpora: Sequence[CorpusInfo], *, most: float = CHECKED_BYTES
) -> tuple[str, ...]:
    reasons = [dense.stale(corpus.name, corpus.passages) for corpus in corpora]
    expected = sum(corpus.passages for corpus in corpora)
    return tuple(filter(None, (*reasons, lexical.stale(expected, most=most))))


def _keep_listed(scores: dict[str, float], listed: dict[str, tuple[Passage, Document]]) -> dict[str, float]:
    return {key: score for key, score in scores.items() if key in listed}


Scores = Mapping[str, float]  # passage id -> a retriever's own score; higher is better, and 0 is nothing in common


def complete_scores(scores: Scores, candidates: Collection[str], asked: int) -> dict[str, float]:
    """Return a score for every candidate of a retriever that was asked for its best `asked`.

    One that it left out was no better than the last it returned; where it returned fewer, the rest have nothing in
    common with the query.
    """
    floor = min(scores.values(), default=0.0) if len(scores) >= asked else 0.0
    return {key: scores.get(key, floor) for key in candidates}


def standardise_scores(scores: Scores) -> dict[str, float]:
    """Return the scores with mean 0 and deviation 1; all 0 where they do not differ."""
    if not scores:
        return {}
    mean, deviation = fmean(scores.values()), pstdev(scores.values())
    return {key: (score - mean) / deviation if deviation else 0.0 for key, score in scores.items()}


def fuse_scores(dense: Scores, lexical: Scores, *, asked: int, dense_weight: float = 1.0) -> list[tuple[str, float]]:
    """Return (id, fused score) of every candidate, best first; ties in the order of ids.

    Each retriever was asked for `asked` candidates; `dense_weight`, 0 to 1, is how far to trust the embedder.
    """
    candidates = {*dense, *lexical}
    near = standardise_scores(complete_scores(dense, candidates, asked))
    worded = standardise_scores(complete_scores(lexical, candidates, asked))
    fused = {key: dense_weight * near[key] + worded[key] for key in candidates}
    return sorted(fused.items(), key=_rank)


def apply_bonus(ranking: Sequence[tuple[str, float]], bonus: Mapping[str, float]) -> list[tuple[str, float]]:
    """Add a bonus to some candidates and rank again; ties in the order of ids."""
    return sorted(((key, score + bonus.get(key, 0.0)) for key, score in ranking), key=_rank)


def _rank(item: tuple[str, float]) -> tuple[float, str]:
    return -item[1], item[0]


def group_corpora(corpora: Sequence[str], references: Collection[str]) -> list[CorpusGroup]:
    """Group own corpora apart from works of reference, so that many of these never crowd out few of those."""
    own = [corpus for corpus in corpora if corpus not in references]
    return [group for group in (own, [corpus for corpus in corpora if corpus in references]) if group]
