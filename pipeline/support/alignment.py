"""Signs of support from meaning: how well each token of a sentence aligns with a token of the passages. Pure.

Each token is compared with all tokens of the sentences read, by the cosine of their states at three heights of the
model; a word that means something else shows as a token that nothing aligns with well, however alike the rest is.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.support.states import Floats, States

HEIGHTS = ("word", "middle", "top")
FIRST_WORD = 1_996
"""Below it the vocabulary holds marks, single characters and digits."""
SAME_WORD = 0.9
"""A cosine between words as they stand in the table above which they are taken for one word."""
FAR = (0.55, 0.7, 0.6)
"""Cosines below which a token aligns with nothing, at each height."""
_FLAT = 1.0

Signs = dict[str, float]


def alignment(sentence: States, source: Sequence[States]) -> Mapping[str, float]:
    """Return the signs by name. `source` are the sentences of the passages that were read; none gives all zeros."""
    source = [one for one in source if len(one.ids)]
    if not len(sentence.ids) or not source:
        return dict.fromkeys(NAMES, 0.0)
    content = sentence.ids >= FIRST_WORD
    content = content if content.any() else np.ones(len(sentence.ids), bool)
    best: list[Floats] = []
    signs: Signs = {}
    for place, height in enumerate(HEIGHTS):
        cosines = [sentence.layers[place] @ one.layers[place].T for one in source]
        best.append(np.concatenate(cosines, axis=1).max(axis=1))
        found = _of_height(cosines, best[-1], _weights(sentence.ids), content, FAR[place])
        signs.update({f"{name}_{height}": value for name, value in found.items()})
    signs.update(_unmatched(best, content))
    signs.update(_whole(sentence, source, content, best))
    return signs


def _weights(ids: NDArray[np.int32]) -> Floats:
    """Return how much each token counts: the rarer a word, the more."""
    rarity = np.clip(np.log(np.maximum(ids, 1) / 1_000.0), 0.3, 4.0)
    return np.where(ids < FIRST_WORD, 0.15, rarity).astype(np.float32)


def _of_height(
    cosines: Sequence[Floats], best: Floats, weights: Floats, content: NDArray[np.bool_], far: float
) -> Signs:
    single = [float((one.max(axis=1) * weights).sum() / weights.sum()) for one in cosines]
    closest = cosines[int(np.argmax(single))]
    worst = np.sort(best[content])
    places = closest.argmax(axis=1)[content]
    steps = np.diff(places)
    return {
        "mean": float((best * weights).sum() / weights.sum()),
        "mean_single": max(single),
        "least": float(worst[0]),
        "least_two": float(worst[:2].mean()),
        "least_three": float(worst[:3].mean()),
        "far": float((worst < far).sum()),
        "least_single": float(closest.max(axis=1)[content].min()),
        "back": float(closest.max(axis=0).mean()),
        "in_order": float((steps > 0).mean()) if len(steps) else _FLAT,
        "jumps": float(np.abs(steps - 1).mean() / 10) if len(steps) else 0.0,
    }


def _unmatched(best: Sequence[Floats], content: NDArray[np.bool_]) -> Signs:
    """Return how near the words that do not occur themselves come, and how alike those that do are in context."""
    new, same = content & (best[0] < SAME_WORD), content & (best[0] >= SAME_WORD)
    signs: Signs = {"new_share": float(new.sum() / content.sum()), "new": float(new.sum())}
    for height, cosines in zip(HEIGHTS, best, strict=True):
        signs[f"new_least_{height}"] = float(cosines[new].min()) if new.any() else _FLAT
        signs[f"new_mean_{height}"] = float(cosines[new].mean()) if new.any() else _FLAT
    signs["same_mean"] = float(best[-1][same].mean()) if same.any() else _FLAT
    signs["same_least"] = float(best[-1][same].min()) if same.any() else _FLAT
    return signs


def _whole(sentence: States, source: Sequence[States], content: NDArray[np.bool_], best: Sequence[Floats]) -> Signs:
    """Return how alike the whole sentence is to the nearest one, and which of its tokens lead away from that."""
    cosines = np.array([float(one.mean @ sentence.mean) for one in source])
    nearest = source[int(cosines.argmax())].mean
    towards = sentence.layers[-1] @ nearest
    ordered = np.sort(towards[content])
    gaps = np.sort((towards - sentence.layers[-1] @ sentence.mean)[content])
    new = content & (best[0] < SAME_WORD)
    return {
        "cosine": float(cosines.max()),
        "cosine_two": float(np.sort(cosines)[-2:].mean()),
        "towards_least": float(ordered[0]),
        "towards_least_three": float(ordered[:3].mean()),
        "towards_mean": float(towards.mean()),
        "gap_least": float(gaps[0]),
        "gap_least_three": float(gaps[:3].mean()),
        "gap_mean": float(gaps.mean()),
        "new_towards": float(towards[new].mean()) if new.any() else _FLAT,
    }


NAMES = (
    *(
        f"{name}_{height}"
        for height in HEIGHTS
        for name in (
            "mean",
            "mean_single",
            "least",
            "least_two",
            "least_three",
            "far",
            "least_single",
            "back",
            "in_order",
            "jumps",
        )
    ),
    "new_share",
    "new",
    *(f"new_{kind}_{height}" for height in HEIGHTS for kind in ("least", "mean")),
    "same_mean",
    "same_least",
    "cosine",
    "cosine_two",
    "towards_least",
    "towards_least_three",
    "towards_mean",
    "gap_least",
    "gap_least_three",
    "gap_mean",
    "new_towards",
)
"""Every sign that `alignment` gives, in its order."""
