"""Measures of scores, compared with values computed by hand and by counting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.claims.claim_metrics import (
    ScoredClaims,
    balanced_accuracy,
    cross_validate_accuracy,
    find_best_threshold,
    find_threshold_losing,
    measure_threshold,
    roc_auc,
)


def scored(kept: list[float], others: list[float]) -> ScoredClaims:
    supported = [True] * len(kept) + [False] * len(others)
    return ScoredClaims(np.array([*kept, *others], float), np.array(supported, bool))


scores = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=12)


def test_balanced_accuracy_is_the_mean_of_both_kinds() -> None:
    """3 of 4 supported accepted and 1 of 2 others refused: (0.75 + 0.5) / 2."""
    accepted = np.array([True, True, True, False, True, False])
    supported = np.array([True, True, True, True, False, False])

    assert balanced_accuracy(accepted, supported) == pytest.approx(0.625)


@pytest.mark.parametrize("supported", [[True, True], [False, False]])
def test_metrics_are_none_if_all_claims_have_the_same_label(supported: list[bool]) -> None:
    source = ScoredClaims(np.array([0.1, 0.9]), np.array(supported))

    assert balanced_accuracy(np.array([True, False]), source.supported) is None
    assert roc_auc(source) is None
    assert measure_threshold(source, 0.5) is None
    assert cross_validate_accuracy(source, ["a", "b"]) is None


@given(scores, scores)
def test_roc_area_is_the_share_of_pairs_ordered_right(kept: list[float], others: list[float]) -> None:
    pairs = [(a > b) + (a == b) / 2 for a in kept for b in others]

    assert roc_auc(scored(kept, others)) == pytest.approx(sum(pairs) / len(pairs))


@given(scores, scores, st.floats(0, 0.99))
def test_next_higher_threshold_would_lose_more_than_the_allowed_share(
    kept: list[float], others: list[float], share: float
) -> None:
    source = scored(kept, others)
    threshold = find_threshold_losing([source], share)
    higher = [value for value in kept if value > threshold]

    assert np.mean(source.kept < threshold) <= share + 1e-9
    assert not higher or np.mean(source.kept < min(higher)) > share - 1e-9


def test_threshold_weighs_claim_sets_equally_whatever_their_size() -> None:
    large, small = scored([0.9] * 100, [0.1] * 100), scored([0.3, 0.3], [0.1])

    assert find_threshold_losing([large, small], 0.1) == pytest.approx(0.3)
    assert find_best_threshold([large, small]) == pytest.approx(0.2)


@given(scores, scores)
def test_no_other_threshold_is_better(kept: list[float], others: list[float]) -> None:
    source = scored(kept, others)

    def accuracy(threshold: float) -> float:
        return balanced_accuracy(source.scores >= threshold, source.supported) or 0.0

    tried = [*kept, *others, 2.0, *((a + b) / 2 for a in kept for b in others)]
    assert accuracy(find_best_threshold([source])) >= max(map(accuracy, tried)) - 1e-9


def test_folds_keep_groups_whole() -> None:
    """Each group's threshold comes from the other: 0.85 accepts none of the first, 0.35 all of the second: 0.5."""
    source = ScoredClaims(np.array([0.4, 0.3, 0.9, 0.8]), np.array([True, False, True, False]))

    assert cross_validate_accuracy(source, ["a", "a", "b", "b"], 2) == pytest.approx(0.5)
