"""Fuses the scores of two retrievers into one ranking; pure.

Scores are fused, not ranks: each retriever's scores are brought to mean 0 and deviation 1 over all candidates and
added, which keeps how far ahead the first is of the second. Reciprocal rank fusion, which forgets that, measured
lower on every set tried (see `evaluation/`).
"""

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean, pstdev

Scores = Mapping[str, float]
"""Passage id -> a retriever's own score; higher is better, and 0 is nothing in common."""


def completed(scores: Scores, candidates: Collection[str], asked: int) -> dict[str, float]:
    """Return a score for every candidate, of which the retriever was asked for its best `asked`.

    One that it left out was no better than the last it returned; and if it returned fewer than it was asked for, it
    has nothing in common with the query.
    """
    floor = min(scores.values(), default=0.0) if len(scores) >= asked else 0.0
    return {key: scores.get(key, floor) for key in candidates}


def standardise(scores: Scores) -> dict[str, float]:
    """Return the scores with mean 0 and deviation 1; all 0 where they do not differ."""
    if not scores:
        return {}
    mean, deviation = fmean(scores.values()), pstdev(scores.values())
    return {key: (score - mean) / deviation if deviation else 0.0 for key, score in scores.items()}


def fuse(dense: Scores, lexical: Scores, *, asked: int, dense_weight: float = 1.0) -> list[tuple[str, float]]:
    """Return (id, fused score) of every candidate, best first; ties in the order of ids.

    `asked` is how many candidates each retriever was asked for; `dense_weight` says how far the embedder is to be
    trusted with this query, 0 to 1.
    """
    candidates = {*dense, *lexical}
    near = standardise(completed(dense, candidates, asked))
    worded = standardise(completed(lexical, candidates, asked))
    fused = {key: dense_weight * near[key] + worded[key] for key in candidates}
    return sorted(fused.items(), key=lambda item: (-item[1], item[0]))


def preferring(ranking: Sequence[tuple[str, float]], bonus: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return a ranking in which some candidates have gained a bonus, best first; ties in the order of ids."""
    raised = [(key, score + bonus.get(key, 0.0)) for key, score in ranking]
    return sorted(raised, key=lambda item: (-item[1], item[0]))
