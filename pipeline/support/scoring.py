"""How likely the passages say a sentence: a small network over signs, trained by `footnote evaluate train`. Pure.

Each member is one hidden layer of rectified sums; the score is the mean of their log-odds. numpy is all it needs.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.float64]

OUTERMOST = 4.0
"""Deviations from the mean at which a sign is cut, so that none seen nowhere in training outweighs all others."""
WEIGHTS = "weights.json"


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One network: signs to hidden units to log-odds."""

    inner: Numbers
    """(signs, hidden)"""
    inner_bias: Numbers
    outer: Numbers
    """(hidden,)"""
    outer_bias: float


@dataclass(frozen=True, slots=True, eq=False)
class Scorer:
    """The trained networks, the signs they read, and the scores at which a sentence is taken for supported."""

    names: tuple[str, ...]
    means: Numbers
    deviations: Numbers
    members: tuple[Member, ...]
    thresholds: Mapping[str, float]
    """By strictness: what share of supported sentences each loses is said where they are made."""

    def score(self, signs: Mapping[str, float]) -> float:
        """Return how likely a sentence with these signs is supported, 0 to 1. Every sign must be there."""
        row = np.array([signs[name] for name in self.names])
        return float(self.scores(row[np.newaxis])[0])

    def scores(self, rows: Numbers) -> Numbers:
        """Return the same for many rows of signs, in the order of `names`."""
        scaled = np.clip((rows - self.means) / self.deviations, -OUTERMOST, OUTERMOST)
        odds = np.mean([_odds(member, scaled) for member in self.members], axis=0)
        likely: Numbers = 1 / (1 + np.exp(-odds))
        return likely


@cache
def trained() -> Scorer:
    """Load the scorer that is part of the code."""
    return from_json(json.loads(files(__package__).joinpath(WEIGHTS).read_text(encoding="utf-8")))


def from_json(kept: Mapping[str, Any]) -> Scorer:
    """Read what `to_json` gave."""
    members = tuple(
        Member(np.array(one["inner"]), np.array(one["inner_bias"]), np.array(one["outer"]), one["outer_bias"])
        for one in kept["members"]
    )
    means, deviations = np.array(kept["means"]), np.array(kept["deviations"])
    return Scorer(tuple(kept["names"]), means, deviations, members, kept["thresholds"])


def to_json(scorer: Scorer, digits: int = 4) -> Mapping[str, Any]:
    """Return a scorer as plain values, weights rounded to so many digits."""
    return {
        "names": list(scorer.names),
        "means": _plain(scorer.means, digits),
        "deviations": _plain(scorer.deviations, digits),
        "thresholds": {name: round(value, digits) for name, value in scorer.thresholds.items()},
        "members": [
            {
                "inner": [_plain(row, digits) for row in one.inner],
                "inner_bias": _plain(one.inner_bias, digits),
                "outer": _plain(one.outer, digits),
                "outer_bias": round(one.outer_bias, digits),
            }
            for one in scorer.members
        ],
    }


def _odds(member: Member, scaled: Numbers) -> Numbers:
    hidden = np.maximum(scaled @ member.inner + member.inner_bias, 0)
    odds: Numbers = hidden @ member.outer + member.outer_bias
    return odds


def _plain(values: Sequence[float] | Numbers, digits: int) -> list[float]:
    return [round(float(value), digits) for value in values]
