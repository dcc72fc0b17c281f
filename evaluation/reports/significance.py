"""Compute intervals, paired tests and the agreement between judges.

Resampling draws dialogues, because the turns and claims of one dialogue are not independent.
"""

import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
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

    def __format__(self, form: str) -> str:
        """Return the estimate with its bounds, each in this format; alone if they do not differ from it."""
        shown = format(self.value, form)
        alone = self.low == self.high == self.value
        return shown if alone else f"{shown} ({self.low:{form}} to {self.high:{form}})"


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The mean lead of the first of two systems on common topics, and two-sided p-values.

    There is no p-value for fewer than two topics, or if the systems do not differ at all.
    """

    difference: float
    topics: int
    t_test: float | None  # paired, unlike that of the papers; also None if all differences are equal
    randomised: float | None  # by flipping the signs of the differences, which assumes no distribution


def estimate_share(
    parts: Sequence[float], wholes: Sequence[float], seed: int = 0, *, proportion: bool = False
) -> Interval | None:
    """Estimate the sum of `parts` divided by the sum of `wholes`, one of each per dialogue; None if all wholes are 0.

    In a `proportion`, each part is a number of cases out of its whole. A proportion of 0 or 1 gets Wilson's interval,
    in which dialogues are the trials (Brown, Cai, DasGupta 2001), because resamples of equal values do not vary.
    """
    above, below = np.asarray(parts, float), np.asarray(wholes, float)
    if not below.sum():
        return None
    value = float(above.sum() / below.sum())
    usable = below > 0  # a resample of dialogues without a whole would have no share
    above, below = above[usable], below[usable]
    stats = import_measures("scipy.stats")
    if proportion and value in {0.0, 1.0}:
        bounds = stats.binomtest(int(value) * len(above), len(above)).proportion_ci(CONFIDENCE, method="wilson")
        return Interval(value, float(bounds.low), float(bounds.high), int(below.sum()))
    if len(above) < 2:
        return Interval(value, value, value, int(below.sum()))
    drawn = stats.bootstrap(
        (above, below),
        lambda part, whole, axis=-1: part.sum(axis) / whole.sum(axis),
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(value, float(drawn.low), float(drawn.high), int(below.sum()))


def compare_paired(first: Sequence[float], second: Sequence[float], seed: int = 0) -> PairedTest:
    """Test whether two systems differ, by their values on the same topics. Raises `ValueError` for unequal lengths."""
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
    """Return p-values adjusted for the number of tests (Benjamini and Hochberg)."""
    if not pvalues:
        return ()
    return tuple(map(float, import_measures("scipy.stats").false_discovery_control(pvalues)))


def estimate_alpha(dialogues: Iterable[Sequence[Sequence[Hashable]]], seed: int = 0) -> Interval | None:
    """Estimate the agreement of raters beyond chance, from the labels of each unit of each dialogue.

    This is Krippendorff's alpha for nominal labels, some of which may be missing ("Computing Krippendorff's
    Alpha-Reliability", 2011, section D). It is None without two labels of a unit, or if all labels are the same.
    """
    rated = [counts for units in dialogues if (counts := [Counter(unit) for unit in units if len(unit) > 1])]
    labels = {label for counts in rated for count in counts for label in count}
    if len(labels) < 2:
        return None
    sums = np.array([[sum(map(_disagree, c)), *(sum(n[label] for n in c) for label in labels)] for c in rated], float)
    drawn = np.random.default_rng(seed).multinomial(len(sums), [1 / len(sums)] * len(sums), RESAMPLES)
    apart, *times = (np.vstack((np.ones((1, len(sums))), drawn)) @ sums).T
    total = np.sum(times, axis=0)
    with np.errstate(invalid="ignore"):  # a resample may have only one label
        alpha = 1 - apart * (total - 1) / (total**2 - np.square(times).sum(axis=0))
    low, high = np.nanquantile(alpha[1:], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(alpha[0]), float(low), float(high), sum(map(len, rated)))


def _disagree(unit: Counter[Hashable]) -> float:
    """Return the ordered pairs of different labels of a unit, divided by its number of labels less one."""
    return (unit.total() ** 2 - sum(times**2 for times in unit.values())) / (unit.total() - 1)
