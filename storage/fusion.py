"""Fuses the scores of two retrievers into one ranking; pure.

Scores are fused, not ranks: each retriever's scores are brought to mean 0 and deviation 1 over its own candidates and
added, which keeps how far ahead the first is of the second. Reciprocal rank fusion, which forgets that, measured
lower on every set tried (see `evaluation/`).
"""

from collections.abc import Mapping
from statistics import fmean, pstdev

Scores = Mapping[str, float]
"""Passage id -> a retriever's own score; higher is better."""


def standardise(scores: Scores) -> dict[str, float]:
    """Return the scores with mean 0 and deviation 1; all 0 where they do not differ."""
    if not scores:
        return {}
    mean, deviation = fmean(scores.values()), pstdev(scores.values())
    return {key: (score - mean) / deviation if deviation else 0.0 for key, score in scores.items()}


def fuse(dense: Scores, lexical: Scores, *, dense_weight: float = 1.0) -> list[tuple[str, float]]:
    """Return (id, fused score) of every candidate, best first; ties in the order of ids.

    A candidate that one retriever did not return gets the least score that it did return: it was not better.
    `dense_weight` says how far the embedder is to be trusted with this query, 0 to 1.
    """
    lists = ((standardise(dense), dense_weight), (standardise(lexical), 1.0))
    floors = [min(scores.values(), default=0.0) for scores, _ in lists]
    fused = {
        key: sum(weight * scores.get(key, floor) for (scores, weight), floor in zip(lists, floors, strict=True))
        for key in {*dense, *lexical}
    }
    return sorted(fused.items(), key=lambda item: (-item[1], item[0]))
