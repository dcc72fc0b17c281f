"""Ask both indexes for candidates and fuse their scores into one ranking.

Scores are fused, not ranks: each retriever's scores are brought to mean 0 and deviation 1 over all candidates and
added, which keeps how far ahead the first is of the second. Reciprocal rank fusion, which forgets that, measured
lower on every set tried (see `evaluation/`).
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import fmean, pstdev

from storage.database.worker_threads import ThreadPool
from storage.indexes.dense import DenseIndex
from storage.indexes.embedding import Embedder
from storage.indexes.lexical import LexicalIndex

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
    return sorted(fused.items(), key=lambda item: (-item[1], item[0]))


def apply_bonus(ranking: Sequence[tuple[str, float]], bonus: Mapping[str, float]) -> list[tuple[str, float]]:
    """Add a bonus to some candidates and rank again; ties in the order of ids."""
    raised = [(key, score + bonus.get(key, 0.0)) for key, score in ranking]
    return sorted(raised, key=lambda item: (-item[1], item[0]))


CorpusGroup = Sequence[str]  # corpora that compete with each other; each group has as many candidates as another


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
    def started(stack: ExitStack) -> "IndexThreads":
        sizes = {"read": 4, "write": 1, "embed": 2, "ingest": 1, "states": 2, "think": 1}
        pools = {name: ThreadPool(f"index-{name}", threads=size) for name, size in sizes.items()}
        return IndexThreads(**{name: stack.enter_context(pool) for name, pool in pools.items()})


@dataclass(frozen=True)
class Retriever:
    """Both indexes, and the embedder of questions."""

    dense: DenseIndex
    lexical: LexicalIndex
    embedder: Embedder
    threads: IndexThreads

    async def candidates(
        self, text: str, groups: Sequence[CorpusGroup], k: int
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return the cosine of the `k` nearest passages of each group, and the BM25 of its `k` best, both by id."""
        near, worded = await asyncio.gather(self._near(text, groups, k), self._worded(text, groups, k))
        return near, worded

    async def _near(self, text: str, groups: Sequence[CorpusGroup], k: int) -> dict[str, float]:
        if self.embedder.knows(text) == 0:
            return {}
        vector = (await self.threads.embed.run(self.embedder.embed, [text]))[0]
        corpora = [corpus for group in groups for corpus in group]
        found = await asyncio.gather(
            *(self.threads.read.run(self.dense.search, corpus, vector, k) for corpus in corpora)
        )
        of = dict(zip(corpora, found, strict=True))
        merged = ({key: cosine for corpus in group for key, cosine in of[corpus].items()} for group in groups)
        return {key: cosine for scores in merged for key, cosine in _take_best(scores, k)}

    async def _worded(self, text: str, groups: Sequence[CorpusGroup], k: int) -> dict[str, float]:
        found = await asyncio.gather(*(self.threads.read.run(self.lexical.search, text, group, k) for group in groups))
        return {key: score for scores in found for key, score in scores.items()}


def group_corpora(corpora: Sequence[str], references: Collection[str]) -> list[CorpusGroup]:
    """Group own corpora apart from works of reference, so that many of these never crowd out few of those."""
    own = [corpus for corpus in corpora if corpus not in references]
    return [group for group in (own, [corpus for corpus in corpora if corpus in references]) if group]


def _take_best(scores: Mapping[str, float], k: int) -> list[tuple[str, float]]:
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
