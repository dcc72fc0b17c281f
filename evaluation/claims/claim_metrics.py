"""Measure how well scores separate supported claims from others: accuracy, curves, thresholds. Pure.

A claim is accepted if its score reaches a threshold. If a threshold is chosen on several sources, all sources count
equally.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_TRACE = 1e-12  # tolerance of sums of shares


@dataclass(frozen=True, slots=True)
class ScoredClaims:
    """The scores of a source's claims, and whether each claim is supported."""

    scores: Floats
    supported: Booleans

    @property
    def kept(self) -> Floats:
        return self.scores[self.supported]

    @property
    def others(self) -> Floats:
        return self.scores[~self.supported]

    @property
    def both(self) -> bool:
        """Whether there are supported claims and others; most measures need both."""
        return bool(self.supported.any() and not self.supported.all())


@dataclass(frozen=True, slots=True)
class ThresholdPoint:
    """A threshold, and what it does to the claims of a source."""

    threshold: float
    lost: float  # the share of supported claims below it
    caught: float  # the share of other claims below it


def balanced_accuracy(accepted: Booleans, supported: Booleans) -> float | None:
    """Return the mean of two shares: supported claims accepted, and other claims refused; None if a kind is missing."""
    if supported.all() or not supported.any():
        return None
    return float((accepted[supported].mean() + (~accepted[~supported]).mean()) / 2)


def roc_auc(scored: ScoredClaims) -> float | None:
    """Return how often a supported claim scores above another claim; ties count half. None if a kind is missing."""
    if not scored.both:
        return None
    below = np.searchsorted(np.sort(scored.others), scored.kept, side="left")
    up_to = np.searchsorted(np.sort(scored.others), scored.kept, side="right")
    return float((below + up_to).mean() / 2 / len(scored.others))


def measure_threshold(scored: ScoredClaims, threshold: float) -> ThresholdPoint | None:
    """Return what a threshold does to a source's claims; None if all of them are of one kind."""
    if not scored.both:
        return None
    return ThresholdPoint(threshold, float((scored.kept < threshold).mean()), float((scored.others < threshold).mean()))


def find_threshold_losing(sources: Sequence[ScoredClaims], share: float) -> float:
    """Return the highest threshold that rejects at most a `share` of the supported claims of these sources."""
    scores = [source.kept for source in sources if len(source.kept)]
    values, weights = _weigh(scores)
    below = np.cumsum(weights) - weights
    return float(values[np.flatnonzero(below <= share + _TRACE)[-1]])


def find_best_threshold(sources: Sequence[ScoredClaims]) -> float:
    """Return the threshold with the best balanced accuracy over the sources that have claims of both kinds.

    It is halfway between two scores. If several thresholds are equally good, the lowest is returned.
    """
    usable = [source for source in sources if source.both]
    kept, kept_weights = _weigh([source.kept for source in usable])
    others, other_weights = _weigh([source.others for source in usable])
    values = np.unique(np.concatenate([kept, others]))
    edges = np.concatenate([values[:1], (values[1:] + values[:-1]) / 2, [np.nextafter(values[-1], np.inf)]])
    accuracies = (1 - _weight_below(edges, kept, kept_weights) + _weight_below(edges, others, other_weights)) / 2
    return float(edges[np.flatnonzero(accuracies >= accuracies.max() - _TRACE)[0]])


def cross_validate_accuracy(scored: ScoredClaims, groups: Sequence[str], count: int = 5) -> float | None:
    """Return the balanced accuracy of thresholds that are each chosen on the other folds; None if impossible.

    All claims of a group are in the same fold.
    """
    fold = assign_folds(groups, count)
    accepted = np.zeros(len(groups), bool)
    for number in range(count):
        here, rest = fold == number, fold != number
        chosen_on = ScoredClaims(scored.scores[rest], scored.supported[rest])
        if here.any() and not chosen_on.both:
            return None
        if here.any():
            accepted[here] = scored.scores[here] >= find_best_threshold([chosen_on])
    return balanced_accuracy(accepted, scored.supported)


def _weigh(parts: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return the distinct values of all parts, sorted, and their weights. All parts weigh the same; the sum is 1."""
    weights = np.concatenate([np.full(len(part), 1 / len(part) / len(parts)) for part in parts])
    values, places = np.unique(np.concatenate(parts), return_inverse=True)
    summed: Floats = np.bincount(places, weights).astype(np.float64)
    return values, summed


def _weight_below(edges: Floats, values: Floats, weights: Floats) -> Floats:
    """Return the total weight of the values below each edge."""
    total = np.concatenate([[0.0], np.cumsum(weights)])
    weights_below: Floats = total[np.searchsorted(values, edges, side="left")]
    return weights_below


def assign_folds(groups: Sequence[str], count: int) -> NDArray[np.int64]:
    """Return the fold of each member. The groups are assigned to folds in turn, in order of appearance."""
    numbers = {group: place % count for place, group in enumerate(dict.fromkeys(groups))}
    return np.array([numbers[group] for group in groups])
