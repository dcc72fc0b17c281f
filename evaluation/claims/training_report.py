"""How the trained check does on claims that it did not see, beside what knows nothing of meaning. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.claims.gathering import Gathered
from evaluation.claims.measures import (
    Scored,
    balanced_accuracy,
    best_threshold,
    by_folds,
    point,
    roc_auc,
    threshold_losing,
)
from evaluation.fitting import Floats

_LOST = 0.02


@dataclass(frozen=True)
class Held:
    """Scores of claims by networks that did not see them."""

    folds: Floats
    """Fitted without the claims of the same article or question."""
    sets: Floats
    """Fitted without the sets of the same family."""


def of_source(examples: Gathered, source: str, scores: Floats, *, passing: bool = False) -> Scored:
    """Return the scores of one set; with `passing`, of the claims that no rule decides against."""
    here = np.array([claim.source == source for claim in examples.claims])
    here = here & ~examples.denied if passing else here
    return Scored(scores[here], examples.supported[here])


def report(examples: Gathered, held: Held, levels: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the figures of each set. Balanced accuracies are of the score alone; `gate` is of rules and score."""
    return [_of_set(examples, held, levels, source) for source in examples.sources]


def _of_set(examples: Gathered, held: Held, levels: Mapping[str, float], source: str) -> dict[str, Any]:
    here = np.array([claim.source == source for claim in examples.claims])
    groups = [group for group, inside in zip(examples.groups, here, strict=True) if inside]
    scored = of_source(examples, source, held.folds)
    return {
        "set": source,
        "claims": len(groups),
        "supported": int(scored.supported.sum()),
        "majority": 0.5,
        "overlap": _accuracies(examples, source, examples.overlap, examples.overlap, groups),
        "likeness": _accuracies(examples, source, examples.likeness, examples.likeness, groups),
        "check": _accuracies(examples, source, held.folds, held.sets, groups),
        "auc": _rounded(roc_auc(scored)),
        "caught_at_2_percent_lost": _caught(scored),
        "caught_at_2_percent_lost_by_overlap": _caught(of_source(examples, source, examples.overlap)),
        "gate": {level: _gate(examples, held, here, threshold) for level, threshold in levels.items()},
        "rules": _gate(examples, held, here, 0.0),
    }


def _accuracies(
    examples: Gathered, source: str, scores: Floats, unseen: Floats, groups: Sequence[str]
) -> dict[str, float | None]:
    """Return the balanced accuracy by thresholds of the set's other articles, and by the threshold of other sets."""
    family = source.partition("/")[0]
    others = [of_source(examples, one, scores) for one in examples.sources if one.partition("/")[0] != family]
    here, apart = of_source(examples, source, scores), of_source(examples, source, unseen)
    by_others = balanced_accuracy(apart.scores >= best_threshold(others), apart.supported) if others else None
    return {"articles": _rounded(by_folds(here, groups)), "sets": _rounded(by_others)}


def _caught(scored: Scored) -> float | None:
    found = point(scored, threshold_losing([scored], _LOST))
    return _rounded(found.caught if found else None)


def _gate(examples: Gathered, held: Held, here: Any, threshold: float) -> dict[str, float | None]:
    dropped = examples.denied[here] | (held.folds[here] < threshold)
    supported = examples.supported[here]
    return {"lost": _rounded(float(dropped[supported].mean())), "caught": _rounded(float(dropped[~supported].mean()))}


def table(measured: Sequence[Mapping[str, Any]], levels: Mapping[str, float]) -> str:
    """Return the figures as two tables."""
    told = ", ".join(f"{name} {value:.3f}" for name, value in levels.items())
    accuracy = [
        [
            each["set"],
            f"{each['claims']:,} ({each['supported']:,})",
            "0.500",
            *_both(each["overlap"]),
            *_both(each["likeness"]),
            *_both(each["check"]),
            _told(each["auc"]),
        ]
        for each in measured
    ]
    caught = [
        [each["set"], _told(each["caught_at_2_percent_lost_by_overlap"]), _told(each["caught_at_2_percent_lost"])]
        + [_told(each[part][of]) for part in ("rules",) for of in ("lost", "caught")]
        + [_told(each["gate"][level][of]) for level in levels for of in ("lost", "caught")]
        for each in measured
    ]
    names = ["set", "claims (supported)", "majority"]
    names += [f"{who}: {how}" for who in ("overlap", "likeness", "check") for how in ("articles", "sets")] + ["AUC"]
    gates = [f"{level}: {of}" for level in ("rules", *levels) for of in ("lost", "caught")]
    heads = ["set", "overlap: caught at 2% lost", "check: caught at 2% lost", *gates]
    return f"Thresholds: {told}\n\n{_markdown(names, accuracy)}\n\n{_markdown(heads, caught)}"


def _both(found: Mapping[str, float | None]) -> tuple[str, str]:
    return _told(found["articles"]), _told(found["sets"])


def _told(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _markdown(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (names, ["---"] * len(names), *rows))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
