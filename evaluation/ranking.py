"""How good rankings are: recall, reciprocal rank and discounted gain; pure."""

import math
from collections.abc import Mapping, Sequence


def recall(ranking: Sequence[str], relevant: Mapping[str, int], k: int) -> float:
    """Return the share of the relevant texts that stand among the first `k`."""
    return len({*ranking[:k]} & relevant.keys()) / len(relevant)


def reciprocal_rank(ranking: Sequence[str], relevant: Mapping[str, int]) -> float:
    """Return 1 over the place of the first relevant text; 0 when there is none."""
    return next((1 / place for place, key in enumerate(ranking, start=1) if key in relevant), 0.0)


def ndcg(ranking: Sequence[str], relevant: Mapping[str, int], k: int) -> float:
    """Return the normalised discounted cumulative gain at `k`, each relevant text counting 1 whatever its grade."""
    gained = sum(1 / math.log2(place + 1) for place, key in enumerate(ranking[:k], start=1) if key in relevant)
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(k, len(relevant)) + 1))
    return gained / ideal
