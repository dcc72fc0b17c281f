"""Compute intervals, paired tests and agreement between judges, mostly with scipy.

Resampling draws dialogues, not turns or claims, because those of one dialogue are not independent.
"""

import warnings
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.reports.libraries import import_measures

RESAMPLES = 2_000
CONFIDENCE = 0.95
SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate between the bounds of its 95% interval."""

    value: float
    low: float
    high: float
    count: int  # the number of claims or turns


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The mean lead of the first of two systems on common topics, and the two-sided p-values of both tests.

    `t_test` is the test of the papers; `randomised` flips the signs of the differences and assumes no distribution.
    None with fewer than two topics or equal differences.
    """

    difference: float
    topics: int
    t_test: float | None
    randomised: float | None


def estimate_share(
    parts: Sequence[float], wholes: Sequence[float], seed: int = 0, *, proportion: bool = False
) -> Interval | None:
    """Estimate the sum of `parts` over the sum of `wholes`, a pair per dialogue; None if the wholes are 0.

    A mean over turns is a share, too: the sum of the values through the number of turns. Of a `proportion`, whose parts
    are some of their wholes, all or nothing has an interval as well: Wilson's, of so many trials as there are dialogues
    (Brown, Cai, DasGupta 2001), because every resample of equal values is the same.
    """
    above, below = np.asarray(parts, float), np.asarray(wholes, float)
    if not below.sum():
        return None
    value = float(above.sum() / below.sum())
    kept = below > 0  # a sample of dialogues without a whole would have no share
    above, below = above[kept], below[kept]
    stats = import_measures("scipy.stats")
    if proportion and value in {0.0, 1.0}:
        bounds = stats.binomtest(int(value) * len(above), len(above)).proportion_ci(CONFIDENCE, method="wilson")
        return Interval(value, float(bounds.low), float(bounds.high), int(below.sum()))
    if len(above) < 2:
        return Interval(value, value, value, int(below.sum()))
    drawn = stats.bootstrap(
        (above, below),
        lambda one, other, axis=-1: one.sum(axis) / other.sum(axis),
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(value, float(drawn.low), float(drawn.high), int(below.sum()))


def compare_paired(first: Sequence[float], second: Sequence[float], seed: int = 0) -> PairedTest:
    """Test whether two systems differ, by their values at the same topics. Raises `ValueError` for unequal lengths."""
    differences = np.asarray(first, float) - np.asarray(second, float)
    if len(first) != len(second):
        raise ValueError("a paired test needs both values of each topic")
    mean, count = (float(differences.mean()) if len(differences) else 0.0), len(differences)
    if count < 2 or not differences.any():
        return PairedTest(mean, count, None, None)
    stats = import_measures("scipy.stats")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # differences that are nearly the same
        by_t = float(stats.ttest_rel(first, second).pvalue) if np.ptp(differences) else None
    flipped = stats.permutation_test(
        (differences,),
        lambda values, axis=-1: values.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=4 * RESAMPLES,
        rng=np.random.default_rng(seed),
    )
    return PairedTest(mean, count, by_t, float(flipped.pvalue))


def adjust_for_many(pvalues: Sequence[float]) -> tuple[float, ...]:
    """Return p-values adjusted for the number of comparisons (Benjamini and Hochberg)."""
    if not pvalues:
        return ()
    return tuple(map(float, import_measures("scipy.stats").false_discovery_control(pvalues)))


def cohens_kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> float | None:
    """Return the agreement of two judges beyond chance; None if it is not defined.

    Cohen, "A coefficient of agreement for nominal scales" (1960). Where both give one and the same label to all, chance
    alone agrees, and kappa is not defined.
    """
    if not pairs:
        return None
    first, second = Counter(label for label, _ in pairs), Counter(other for _, other in pairs)
    agreed = sum(label == other for label, other in pairs) / len(pairs)
    chance = _chance(first, second, len(pairs))
    return None if chance >= 1 else (agreed - chance) / (1 - chance)


def _chance(first: Mapping[Hashable, int], second: Mapping[Hashable, int], count: int) -> float:
    return sum(times * second.get(label, 0) for label, times in first.items()) / count**2
