"""Small regressions in numpy: which of several candidates is right, and whether anything is. Pure and seedless."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_STEPS = 250
_PACE = 0.05


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidates of one question: a row of features each, which of them are right, and how much it counts."""

    features: Floats
    right: Booleans
    weight: float = 1.0


def fit_choice(choices: Sequence[Choice], *, ridge: float = 0.002) -> Floats:
    """Return the weights under which right candidates are most likely to be chosen (a conditional logit).

    Every choice must have a right candidate.
    """
    scale = _scale(np.vstack([choice.features for choice in choices]))
    most = max(len(choice.right) for choice in choices)
    rows = np.zeros((len(choices), most, len(scale)))
    right = np.zeros((len(choices), most), bool)
    absent = np.full((len(choices), most), -1e9)
    for place, choice in enumerate(choices):
        size = len(choice.right)
        rows[place, :size], right[place, :size], absent[place, :size] = choice.features / scale, choice.right, 0.0
    shares = np.array([choice.weight for choice in choices])
    shares /= shares.sum()

    def gradient(weights: Floats) -> Floats:
        likely = _softmax(rows @ weights + absent)
        wanted = likely * right / (likely * right).sum(axis=1, keepdims=True)
        slope: Floats = np.einsum("i,ij,ijk->k", shares, likely - wanted, rows) + 2 * ridge * weights
        return slope

    found: Floats = _descend(gradient, len(scale)) / scale
    return found


def fit_judge(signs: Floats, true: Booleans, weights: Floats, *, ridge: float = 1.0) -> Floats:
    """Return bias and weights of a logistic regression, found by Newton's method."""
    scale, middle = _scale(signs), signs.mean(axis=0)
    rows = np.hstack([np.ones((len(signs), 1)), (signs - middle) / scale])
    penalty = np.diag([1e-6, *np.full(signs.shape[1], ridge)])  # a trace on the bias: few examples leave it open
    found = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        likely = 1 / (1 + np.exp(-rows @ found))
        slope = rows.T @ (weights * (likely - true)) + penalty @ found
        curve = (rows * (weights * likely * (1 - likely))[:, None]).T @ rows + penalty
        step = np.linalg.solve(curve, slope)
        found -= step
        if np.abs(step).max() < 1e-9:
            break
    slopes = found[1:] / scale
    return np.concatenate([found[:1] - slopes @ middle, slopes])


def folds(groups: Sequence[str], count: int) -> NDArray[np.int64]:
    """Give each group's members one fold, groups in order of appearance in turn."""
    numbers = {group: place % count for place, group in enumerate(dict.fromkeys(groups))}
    return np.array([numbers[group] for group in groups])


def _scale(rows: Floats) -> Floats:
    """Return each column's deviation; 1 for one that never varies."""
    deviations: Floats = rows.std(axis=0)
    return np.where(deviations > 1e-9, deviations, 1.0)


def _softmax(scores: Floats) -> Floats:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Floats = raised / raised.sum(axis=1, keepdims=True)
    return shares


def _descend(gradient: Callable[[Floats], Floats], size: int) -> Floats:
    """Walk down by Adam from zero."""
    weights, mean, square = np.zeros(size), np.zeros(size), np.zeros(size)
    for step in range(1, _STEPS + 1):
        slope = gradient(weights)
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope * slope
        weights -= _PACE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return weights
