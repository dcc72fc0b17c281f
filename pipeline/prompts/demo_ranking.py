"""Rank worked examples by words and by meaning on one scale, and choose diverse ones among the best.

Hybrid scores and Diverse Example Retrieval (DER) are those of "Exploring In-Context Learning for Knowledge Grounded
Dialog Generation" (2023).
"""

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from pipeline.kit import Compare
from pipeline.types import Demonstration, RankedDemo
from storage.language.words import content_terms

DENSE_SHARE = 0.5  # the weight of meaning in a score; the rest is shared words
MAX_COMPARED = 100  # examples compared by meaning, chosen by words: each costs an embedding
SATURATION, LENGTH_SHARE = 1.2, 0.75  # BM25's k1 and b


def score_by_words(query: str, texts: Sequence[str]) -> tuple[float, ...]:
    """Return the BM25 score of each text for a query, computed over these texts. Pure."""
    counted = [Counter(content_terms(text)) for text in texts]
    mean = sum(counts.total() for counts in counted) / len(counted) if counted else 0.0
    scores = [0.0] * len(counted)
    for term in set(content_terms(query)):
        having = sum(term in counts for counts in counted)
        rarity = math.log(1 + (len(counted) - having + 0.5) / (having + 0.5))
        for place, counts in enumerate(counted):
            length = 1 - LENGTH_SHARE + LENGTH_SHARE * counts.total() / mean if mean else 1.0
            scores[place] += rarity * counts[term] * (SATURATION + 1) / (counts[term] + SATURATION * length)
    return tuple(scores)


def rescale(scores: Sequence[float]) -> tuple[float, ...]:
    """Return scores from 0 for the lowest to 1 for the highest; all 0 if they are equal. Pure."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return tuple((score - low) / (high - low) if high > low else 0.0 for score in scores)


def combine_scores(dense: Sequence[float], sparse: Sequence[float]) -> tuple[float, ...]:
    """Return the weighted mean of both scores of each text, after rescaling each kind. Pure."""
    both = zip(rescale(dense), rescale(sparse), strict=True)
    return tuple(DENSE_SHARE * one + (1 - DENSE_SHARE) * other for one, other in both)


async def rank_demos(query: str, pool: Sequence[Demonstration], k: int, compare: Compare) -> tuple[RankedDemo, ...]:
    """Return the `k` examples nearest to a query, best first, but pinned ones before all others."""
    if not pool or k <= 0:
        return ()
    sparse = score_by_words(query, [demo.searched for demo in pool])
    if len(pool) > MAX_COMPARED:
        nearest = sorted(range(len(pool)), key=lambda place: (pool[place].pinned, sparse[place]), reverse=True)
        compared = sorted(nearest[:MAX_COMPARED])
        pool, sparse = [pool[place] for place in compared], tuple(sparse[place] for place in compared)
    scores = combine_scores(await compare(query, [demo.searched for demo in pool]), sparse)
    ranked = [RankedDemo(one, 1.0 if one.pinned else score) for one, score in zip(pool, scores, strict=True)]
    return tuple(sorted(ranked, key=lambda one: (one.demo.pinned, one.score), reverse=True)[:k])


def find_next(scores: Sequence[float], distances: Sequence[float], relevance: float) -> int:
    """Return the index of the next example, by its score and by its distance from the last chosen one. Pure."""
    values = [(1 - relevance) * away + relevance * score for score, away in zip(scores, distances, strict=True)]
    return values.index(max(values))


async def choose_diverse(
    ranked: Sequence[RankedDemo], count: int, relevance: float, compare: Compare
) -> tuple[Demonstration, ...]:
    """Return `count` examples: first all pinned ones, or the best if none is pinned.

    Each further example is near the question, but far from the one chosen before it.
    """
    pinned = [candidate.demo for candidate in ranked if candidate.demo.pinned]
    chosen = pinned or [candidate.demo for candidate in ranked[:1]]
    left = [candidate for candidate in ranked if candidate.demo not in chosen]
    while left and len(chosen) < count:
        near = await compare(chosen[-1].searched, [candidate.demo.searched for candidate in left])
        place = find_next([candidate.score for candidate in left], [1 - cosine for cosine in near], relevance)
        chosen.append(left.pop(place).demo)
    return tuple(chosen[:count])


@dataclass(slots=True)
class TurnDemos:
    """The `Demos` of one turn, over a pool that is loaded on first use."""

    load: Callable[[], Awaitable[Sequence[Demonstration]]]
    compare: Compare
    shown: tuple[Demonstration, ...] = ()
    _pool: Sequence[Demonstration] | None = field(default=None, init=False)

    async def __call__(self, query: str, k: int) -> tuple[RankedDemo, ...]:
        if self._pool is None:
            self._pool = await self.load()
        return await rank_demos(query, self._pool, k, self.compare)

    def show(self, chosen: Sequence[Demonstration]) -> None:
        self.shown = tuple(chosen)
