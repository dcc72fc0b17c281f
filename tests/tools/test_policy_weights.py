"""The policy learns the feature that shows when more evidence is worth its price."""

import pytest

from pipeline.stages.augmentation.policies import PolicySigns
from tools.training.policy_weights import PRICE, RecordedTurn, acquires, cross_validate, fit_policy


def recorded(place: int) -> RecordedTurn:
    """Return a turn; in every fourth turn, a feature shows that the passages lack the answer."""
    lacks = place % 4 == 0
    signs = PolicySigns(0.5, float(lacks), 0.01 * (place % 7), 0.1, 0.0, 0.0, 0.0)
    return RecordedTurn(f"talk {place // 3}", signs, float(not lacks), 1.0)


def test_learned_policy_earns_the_best_reward() -> None:
    turns = [recorded(place) for place in range(120)]
    report = cross_validate(turns)

    assert report["never"] == {"utility": 0.75, "calls": 0.0, "reward": 0.75}
    assert report["always"] == {"utility": 1.0, "calls": 1.0, "reward": 1 - PRICE}
    assert report["learned"] == report["best possible"] == {"utility": 1.0, "calls": 0.25, "reward": 1 - PRICE / 4}


def test_fit_is_deterministic_and_decides_by_its_weights() -> None:
    turns = [recorded(place) for place in range(40)]
    weights = fit_policy(turns)

    assert weights == pytest.approx(fit_policy(turns))
    assert [acquires(weights, turn) for turn in turns] == [turn.gain > 0 for turn in turns]
