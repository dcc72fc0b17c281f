"""What a report says of a verifier over labelled claims: numbers by source, and where it is blind. Pure.

A threshold "by other sets" is chosen on the sources of all other families; "by folds", on the other folds of the same
set, whose groups stay whole. So neither has seen what it is measured on. What is caught at a loss of its own set has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

import numpy as np

from evaluation.claims.judging import Outcome
from evaluation.claims.measures import (
    Scored,
    balanced_accuracy,
    best_threshold,
    by_folds,
    confusion,
    point,
    roc_auc,
    threshold_losing,
)
from storage.types import Verdict

LOST = (0.01, 0.02, 0.05, 0.1)
"""Shares of supported claims lost, at which is told how many of the others are caught."""


def report(verifier: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the report on one verifier, by source in order of appearance; numbers that mean nothing are None."""
    sources = {source: _of(source, outcomes) for source in dict.fromkeys(each.claim.source for each in outcomes)}
    reports = [_source_report(name, sources) for name in sources]
    return {"verifier": verifier, "sources": reports, "mean": _mean(reports)}


def blind(outcomes: Sequence[Outcome], most: int) -> dict[str, list[dict[str, Any]]]:
    """Return the worst false accepts, those scored highest, and the worst false drops, those scored lowest.

    Of a verifier that decides, only claims that it decides wrongly count.
    """
    accepts = [each for each in outcomes if not each.claim.supported and _accepted(each) is not False]
    drops = [each for each in outcomes if each.claim.supported and _accepted(each) is not True]
    return {
        "false accepts": [_shown(each) for each in sorted(accepts, key=_score, reverse=True)[:most]],
        "false drops": [_shown(each) for each in sorted(drops, key=_score)[:most]],
    }


def _of(source: str, outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [each for each in outcomes if each.claim.source == source]


def _source_report(name: str, sources: Mapping[str, Sequence[Outcome]]) -> dict[str, Any]:
    outcomes = sources[name]
    family = outcomes[0].claim.family
    others = [_scored(rest) for rest in sources.values() if rest[0].claim.family != family]
    here = _scored(outcomes)
    own = {_percent(share): point(here, threshold_losing([here], share)) for share in LOST} if here.both else {}
    return {
        "source": name,
        "claims": len(outcomes),
        "supported": int(here.supported.sum()),
        "decided": _decided(outcomes),
        "by folds": _rounded(by_folds(here, [each.claim.group for each in outcomes])),
        "by other sets": _best_of_others(here, [other for other in others if other.both]),
        "auc": _rounded(roc_auc(here)),
        "caught at lost": {share: _rounded(at.caught) for share, at in own.items() if at},
        "lost and caught by other sets": _curve_of_others(here, [other for other in others if len(other.kept)]),
        "milliseconds": _milliseconds(outcomes),
    }


def _decided(outcomes: Sequence[Outcome]) -> dict[str, Any] | None:
    """Return how good a verifier's own decisions are; None if it leaves them to a threshold."""
    verdicts = [each.judged.verdict for each in outcomes]
    made = [verdict for verdict in verdicts if verdict is not None]
    if len(made) < len(verdicts):
        return None
    accepted = np.array([verdict is Verdict.SUPPORTS for verdict in made])
    supported = _scored(outcomes).supported
    return {
        "balanced accuracy": _rounded(balanced_accuracy(accepted, supported)),
        "accuracy": _rounded(float((accepted == supported).mean())),
        "lost": _rounded(_share(~accepted[supported])),
        "caught": _rounded(_share(~accepted[~supported])),
        "confusion": confusion([each.claim.label for each in outcomes], made),
    }


def _best_of_others(here: Scored, others: Sequence[Scored]) -> dict[str, Any] | None:
    if not others:
        return None
    threshold = best_threshold(others)
    accuracy = balanced_accuracy(here.scores >= threshold, here.supported)
    return {"threshold": _rounded(threshold), "balanced accuracy": _rounded(accuracy)}


def _curve_of_others(here: Scored, others: Sequence[Scored]) -> dict[str, Any]:
    if not others:
        return {}
    found = {_percent(share): point(here, threshold_losing(others, share)) for share in LOST}
    return {share: {name: _rounded(value) for name, value in asdict(at).items()} for share, at in found.items() if at}


def _mean(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the means over sources of what they all have, each counting the same."""

    def over(*path: str) -> float | None:
        values = [_at(each, path) for each in reports]
        known = [value for value in values if value is not None]
        return _rounded(fmean(known)) if known else None

    return {
        "decided": {name: over("decided", name) for name in ("balanced accuracy", "lost", "caught")},
        "by folds": over("by folds"),
        "by other sets": {"balanced accuracy": over("by other sets", "balanced accuracy")},
        "auc": over("auc"),
        "caught at lost": {_percent(share): over("caught at lost", _percent(share)) for share in LOST},
        "lost and caught by other sets": {
            _percent(share): {
                name: over("lost and caught by other sets", _percent(share), name) for name in ("lost", "caught")
            }
            for share in LOST
        },
    }


def _at(found: Any, path: Sequence[str]) -> Any:
    for name in path:
        found = (found or {}).get(name)
    return found


def _scored(outcomes: Sequence[Outcome]) -> Scored:
    scores = np.array([each.judged.score for each in outcomes], dtype=np.float64)
    return Scored(scores, np.array([each.claim.supported for each in outcomes], dtype=bool))


def _milliseconds(outcomes: Sequence[Outcome]) -> dict[str, float]:
    taken = [each.milliseconds for each in outcomes]
    return {"p50": round(float(np.quantile(taken, 0.5)), 3), "p95": round(float(np.quantile(taken, 0.95)), 3)}


def _accepted(outcome: Outcome) -> bool | None:
    return None if outcome.judged.verdict is None else outcome.judged.verdict is Verdict.SUPPORTS


def _score(outcome: Outcome) -> float:
    return outcome.judged.score


def _shown(outcome: Outcome) -> dict[str, Any]:
    claim, judged = outcome.claim, outcome.judged
    return {
        "source": claim.source,
        "id": claim.id,
        "claim": claim.claim,
        "evidence": list(claim.evidence),
        "label": claim.label.value,
        "score": _rounded(judged.score),
        "reasons": list(judged.reasons),
    }


def _share(values: Any) -> float | None:
    return float(values.mean()) if len(values) else None


def _percent(share: float) -> str:
    return f"{share:.0%}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
