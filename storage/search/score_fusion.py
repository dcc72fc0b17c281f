"""Fuse the scores of both retrievers to one ranking.

Scores are fused, not ranks: each retriever's are brought to mean 0 and deviation 1 over all candidates and added, which
keeps how far ahead the first is. Reciprocal rank fusion measured lower on every set tried.
"""

import math
from collections.abc import Collection, Mapping, Sequence

CorpusGroup = Sequence[str]  # corpora that compete with each other; each group has as many candidates as another
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
    values = scores.values()
    if not scores or min(values) == max(values):
        return dict.fromkeys(scores, 0.0)
    # Not by `statistics.pstdev`: its fractions take a hundred times as long, for a last digit.
    mean = math.fsum(values) / len(scores)
    deviation = math.hypot(*(score - mean for score in values)) / math.sqrt(len(scores))
    return {key: (score - mean) / deviation if deviation else 0.0 for key, score in scores.items()}


def fuse_scores(
    dense: Scores,
    lexical: Scores,
    *,
    asked: int,
    dense_weight: float = 1.0,
    left_out: Collection[str] = frozenset(),
    unasked: Collection[str] = frozenset(),
) -> list[tuple[str, float]]:
    """Return (id, fused score) of every candidate but those `left_out`, best first; ties in the order of ids.

    Each retriever was asked for `asked` candidates; `dense_weight`, 0 to 1, is how far to trust the embedder. How near
    the `unasked` are is unknown: they are taken to be as near as the others on average.
    """
    candidates = {*dense, *lexical}.difference(left_out)
    near = standardise_scores(complete_scores(dense, candidates.difference(unasked), asked))
    worded = standardise_scores(complete_scores(lexical, candidates, asked))
    fused = {key: dense_weight * near.get(key, 0.0) + worded[key] for key in candidates}
    return sorted(fused.items(), key=rank_key)


def apply_bonus(ranking: Sequence[tuple[str, float]], bonus: Mapping[str, float]) -> list[tuple[str, float]]:
    """Add a bonus to some candidates and rank again; ties in the order of ids."""
    return sorted(((key, score + bonus.get(key, 0.0)) for key, score in ranking), key=rank_key)


def rank_key(item: tuple[str, float]) -> tuple[float, str]:
    """Order (id, score) by score, the best first; ties in the order of ids."""
    return -item[1], item[0]


def group_corpora(corpora: Sequence[str], references: Collection[str]) -> list[CorpusGroup]:
    """Group own corpora apart from works of reference, so that many of these never crowd out few of those."""
    own = [corpus for corpus in corpora if corpus not in references]
    return [group for group in (own, [corpus for corpus in corpora if corpus in references]) if group]
