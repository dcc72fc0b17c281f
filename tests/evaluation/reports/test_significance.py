"""Shares with intervals, paired tests and kappa, compared with values by hand and from scipy."""

import numpy as np
import pytest

from evaluation import EvaluationError
from evaluation.reports.libraries import import_measures
from evaluation.reports.significance import adjust_for_many, compare_paired, estimate_alpha, estimate_share

FIRST = [0.9, 1.0, 0.8, 0.95, 1.0, 0.7, 0.85, 0.9]
SECOND = [0.6, 0.9, 0.85, 0.7, 0.8, 0.6, 0.8, 0.75]


def test_share_of_dialogues_weighs_each_claim_equally():
    share = estimate_share([9, 1], [10, 2])
    assert share is not None
    assert share.value == pytest.approx(10 / 12)
    assert share.low <= share.value <= share.high
    assert share.count == 12


def test_interval_of_a_mean_matches_the_normal_distribution():
    from scipy import stats

    drawn = np.random.default_rng(7).normal(3.0, 1.0, 400)
    mean = estimate_share(drawn, [1] * len(drawn))
    expected = stats.norm.interval(0.95, drawn.mean(), stats.sem(drawn))
    assert mean is not None
    assert (mean.low, mean.high) == pytest.approx(expected, abs=0.02)


def test_interval_covers_the_true_share():
    drawn = np.random.default_rng(3)
    hits = 0
    for _ in range(60):
        wholes = drawn.integers(1, 6, 30)
        share = estimate_share(drawn.binomial(wholes, 0.8), wholes)
        hits += share.low <= 0.8 <= share.high
    assert hits >= 52  # of 60: 95% of them are 57


def test_the_same_seed_gives_the_same_interval():
    assert estimate_share(FIRST, [1] * 8, seed=4) == estimate_share(FIRST, [1] * 8, seed=4)


@pytest.mark.parametrize(("parts", "wholes"), [([], []), ([0, 0], [0, 0])])
def test_empty_sample_has_no_share(parts, wholes):
    assert estimate_share(parts, wholes) is None


def test_one_dialogue_has_no_spread():
    assert estimate_share([3, 0], [4, 0]) == estimate_share([3], [4])
    assert f"{estimate_share([3], [4]):.2f}" == "0.75"


def test_paired_systems_are_tested_as_scipy_does():
    from scipy import stats

    comparison = compare_paired(FIRST, SECOND)
    assert comparison.difference == pytest.approx(1.1 / 8)
    assert comparison.t_test == pytest.approx(stats.ttest_rel(FIRST, SECOND).pvalue)
    # All 2^8 ways to flip the signs: by hand, those that are at least as far from 0.
    differences = np.subtract(FIRST, SECOND)
    signs = 1 - 2 * ((np.arange(256)[:, None] >> np.arange(8)) & 1)
    means = (signs * differences).mean(axis=1)
    expected = (np.abs(means) >= abs(differences.mean()) - 1e-12).mean()
    assert comparison.randomised == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(("first", "second"), [([], []), ([1.0], [0.5]), ([1.0, 1.0], [1.0, 1.0])])
def test_untestable_pairs_have_no_p_value(first, second):
    comparison = compare_paired(first, second)
    assert (comparison.t_test, comparison.randomised) == (None, None)


def test_constant_lead_is_significant():
    comparison = compare_paired([1.0] * 15, [0.0] * 15)
    assert comparison.t_test is None
    assert comparison.randomised is not None
    assert comparison.randomised < 0.001


def test_paired_test_needs_equal_lengths():
    with pytest.raises(ValueError, match="both"):
        compare_paired([1.0], [1.0, 2.0])


def test_many_comparisons_are_adjusted():
    assert adjust_for_many([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.04, 0.04))
    assert adjust_for_many([]) == ()


def test_alpha_equals_the_published_value_although_ratings_are_missing():
    # Krippendorff 2011, section D: four observers, twelve units
    raters = "123321412...", "1233224125.3", ".3332342251.", "12332441251."
    units = [[label for label in unit if label != "."] for unit in zip(*raters, strict=True)]
    alpha = estimate_alpha([[unit] for unit in units])
    assert alpha.value == pytest.approx(0.743, abs=0.0005)
    assert alpha.count == 11
    assert alpha.low < alpha.value < alpha.high


@pytest.mark.parametrize(("units", "expected"), [(["aa", "bb"], 1), (["ab", "ba"], -0.5), (["aa", "b"], None)])
def test_alpha_at_its_ends_and_without_variation(units, expected):
    alpha = estimate_alpha([units])
    assert (alpha and alpha.value) == expected


def test_missing_library_is_named():
    with pytest.raises(EvaluationError, match="nowhere is not installed") as caught:
        import_measures("nowhere.at.all")
    assert "make evaluation" in caught.value.hint


@pytest.mark.parametrize(("parts", "low", "high"), [([1.0] * 39, 0.910, 1.0), ([0.0] * 39, 0.0, 0.090)])
def test_extreme_proportion_has_a_wilson_interval(parts, low, high):
    estimate = estimate_share(parts, [1.0] * 39, proportion=True)
    assert (estimate.low, estimate.high) == (pytest.approx(low, abs=0.001), pytest.approx(high, abs=0.001))
    plain = estimate_share(parts, [1.0] * 39)
    assert plain.low == plain.high
