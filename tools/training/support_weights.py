"""Train the support check's weights on labelled claims, and measure them on claims held out."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import pipeline.support as code
from evaluation import EvaluationError
from evaluation.claims.claim_formats import read_all
from evaluation.claims.claim_metrics import (
    ScoredClaims,
    assign_folds,
    balanced_accuracy,
    cross_validate_accuracy,
    find_best_threshold,
    find_threshold_losing,
    measure_threshold,
    roc_auc,
)
from evaluation.claims.labelled_claims import LabelledClaim
from evaluation.claims.verifiers import build_evidence
from pipeline.support.scorer import OUTERMOST, WEIGHTS, Scorer, ScorerMember
from pipeline.support.support_check import analyse_sentence
from storage.indexes.embedding import TokenStates
from storage.indexes.minilm import open_token_states
from tools.training.answer_weights import Booleans, Floats

_NEWS = 1_000


@dataclass(frozen=True)
class ClaimFeatures:
    """The claims and their features, one row for each claim."""

    claims: Sequence[LabelledClaim]
    names: tuple[str, ...]
    rows: Floats
    """(claims, names)"""
    denied: Booleans
    """Whether a rule decides against it."""

    @property
    def supported(self) -> Booleans:
        """Which claims their evidence supports."""
        return np.array([claim.supported for claim in self.claims])

    @property
    def groups(self) -> list[str]:
        """Groups of claims that belong together, in training or in testing."""
        return [f"{claim.family}/{claim.group}" for claim in self.claims]

    @property
    def sources(self) -> tuple[str, ...]:
        """The sets, in order."""
        return tuple(dict.fromkeys(claim.source for claim in self.claims))

    @property
    def overlap(self) -> Floats:
        """The share of each claim's content terms found in its evidence: a baseline."""
        return self._column("overlap")

    @property
    def likeness(self) -> Floats:
        """The cosine of each claim with the nearest sentence read: a baseline."""
        return self._column("cosine")

    def _column(self, name: str) -> NDArray[np.float64]:
        column: Floats = self.rows[:, self.names.index(name)]
        return column


async def collect_features(claims: Sequence[LabelledClaim]) -> ClaimFeatures:
    """Compute the features of every claim as the check at the gate does."""
    reader = open_token_states()

    async def read(texts: Sequence[str]) -> tuple[TokenStates, ...]:
        return reader.read(texts)

    rows, denied = [], []
    for place, claim in enumerate(claims):
        analysis = await analyse_sentence(claim.claim, build_evidence(claim.evidence, title=claim.title), read)
        rows.append(analysis.features)
        denied.append(bool(analysis.against))
        if place % _NEWS == 0:
            print(f"{place:,} of {len(claims):,} claims", file=sys.stderr)
    names = tuple(rows[0])
    return ClaimFeatures(claims, names, np.array([[row[name] for name in names] for row in rows]), np.array(denied))


_LOST_SHARE = 0.02


@dataclass(frozen=True)
class HeldOutScores:
    """Scores of claims by networks that did not see them."""

    folds: Floats
    """Fitted without the claims of the same article or question."""
    sets: Floats
    """Fitted without the sets of the same family."""


def score_source(examples: ClaimFeatures, source: str, scores: Floats, *, passing: bool = False) -> ScoredClaims:
    """Return the scores of one set; with `passing`, of the claims that no rule decides against."""
    here = np.array([claim.source == source for claim in examples.claims])
    here = here & ~examples.denied if passing else here
    return ScoredClaims(scores[here], examples.supported[here])


def report_training(examples: ClaimFeatures, held: HeldOutScores, levels: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the figures of each set. Balanced accuracies are of the score alone; `gate` is of rules and score."""
    return [_of_set(examples, held, levels, source) for source in examples.sources]


def _of_set(examples: ClaimFeatures, held: HeldOutScores, levels: Mapping[str, float], source: str) -> dict[str, Any]:
    here = np.array([claim.source == source for claim in examples.claims])
    groups = [group for group, inside in zip(examples.groups, here, strict=True) if inside]
    scored = score_source(examples, source, held.folds)
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
        "caught_at_2_percent_lost_by_overlap": _caught(score_source(examples, source, examples.overlap)),
        "gate": {level: _gate(examples, held, here, threshold) for level, threshold in levels.items()},
        "rules": _gate(examples, held, here, 0.0),
    }


def _accuracies(
    examples: ClaimFeatures, source: str, scores: Floats, unseen: Floats, groups: Sequence[str]
) -> dict[str, float | None]:
    """Return the balanced accuracy by thresholds of the set's other articles, and by the threshold of other sets."""
    family = source.partition("/")[0]
    others = [
        score_source(examples, source, scores) for source in examples.sources if source.partition("/")[0] != family
    ]
    here, apart = score_source(examples, source, scores), score_source(examples, source, unseen)
    by_others = balanced_accuracy(apart.scores >= find_best_threshold(others), apart.supported) if others else None
    return {"articles": _rounded(cross_validate_accuracy(here, groups)), "sets": _rounded(by_others)}


def _caught(scored: ScoredClaims) -> float | None:
    point = measure_threshold(scored, find_threshold_losing([scored], _LOST_SHARE))
    return _rounded(point.caught if point else None)


def _gate(examples: ClaimFeatures, held: HeldOutScores, here: Any, threshold: float) -> dict[str, float | None]:
    dropped = examples.denied[here] | (held.folds[here] < threshold)
    supported = examples.supported[here]
    return {"lost": _rounded(float(dropped[supported].mean())), "caught": _rounded(float(dropped[~supported].mean()))}


def render_training(measured: Sequence[Mapping[str, Any]], levels: Mapping[str, float]) -> str:
    """Return the figures as two tables."""
    thresholds = ", ".join(f"{name} {value:.3f}" for name, value in levels.items())
    accuracy = [
        [
            row["set"],
            f"{row['claims']:,} ({row['supported']:,})",
            "0.500",
            *_both(row["overlap"]),
            *_both(row["likeness"]),
            *_both(row["check"]),
            _told(row["auc"]),
        ]
        for row in measured
    ]
    caught = [
        [row["set"], _told(row["caught_at_2_percent_lost_by_overlap"]), _told(row["caught_at_2_percent_lost"])]
        + [_told(row[part][of]) for part in ("rules",) for of in ("lost", "caught")]
        + [_told(row["gate"][level][of]) for level in levels for of in ("lost", "caught")]
        for row in measured
    ]
    names = ["set", "claims (supported)", "majority"]
    names += [f"{who}: {how}" for who in ("overlap", "likeness", "check") for how in ("articles", "sets")] + ["AUC"]
    gates = [f"{level}: {of}" for level in ("rules", *levels) for of in ("lost", "caught")]
    heads = ["set", "overlap: caught at 2% lost", "check: caught at 2% lost", *gates]
    return f"Thresholds: {thresholds}\n\n{_markdown(names, accuracy)}\n\n{_markdown(heads, caught)}"


def _both(shares: Mapping[str, float | None]) -> tuple[str, str]:
    return _told(shares["articles"]), _told(shares["sets"])


def _told(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _markdown(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (names, ["---"] * len(names), *rows))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


MEMBERS, HIDDEN, RIDGE, PACE, ROUNDS = 10, 16, 3.0, 0.003, 40
FOLDS = 5
LOST = {"loose": 0.005, "normal": 0.02}
"""The share of supported claims that a level may lose, every set weighing the same; `strict` is the most accurate."""


def train(
    paths: Annotated[list[Path], typer.Argument(help="Files of labelled claims, or folders.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same weights.")] = 7,
    write: Annotated[bool, typer.Option(help="Write the weights into the code.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Fit the local support check to labelled claims, and print its accuracy on held-out claims.

    Needs scikit-learn, which nothing else does: `make train`.

    Example: python -m tools.training.support_weights data/claims
    """
    examples = asyncio.run(collect_features(read_all(paths)))
    held_out = _score_held_out(examples, seed)
    levels = _thresholds(examples, held_out)
    scorer = replace(_fit_scorer(examples, np.arange(len(examples.claims)), seed), thresholds=levels)
    measured = report_training(examples, held_out, levels)
    print(
        json.dumps({"schema": 1, "thresholds": levels, "sets": measured})
        if as_json
        else render_training(measured, levels)
    )
    if write:
        path = Path(str(code.__file__)).parent / WEIGHTS
        path.write_text(json.dumps(dump_scorer(scorer), separators=(",", ":")) + "\n", encoding="utf-8")
        print(f"wrote {path.name}", file=sys.stderr)


def _score_held_out(examples: ClaimFeatures, seed: int) -> HeldOutScores:
    fold = assign_folds(examples.groups, FOLDS)
    families = np.array([claim.family for claim in examples.claims])
    return HeldOutScores(_scores_unseen(examples, fold, seed), _scores_unseen(examples, families, seed))


def _scores_unseen(examples: ClaimFeatures, parts: Any, seed: int) -> Floats:
    """Score each part by networks fitted to all others."""
    scores = np.zeros(len(examples.claims))
    for part in np.unique(parts):
        print(f"without {part}", file=sys.stderr)
        here = parts == part
        scores[here] = _fit_scorer(examples, np.flatnonzero(~here), seed).scores(examples.rows[here])
    return scores


def _fit_scorer(examples: ClaimFeatures, places: Any, seed: int) -> Scorer:
    try:
        from sklearn.neural_network import MLPClassifier
    except ImportError as error:
        raise EvaluationError("scikit-learn is not installed.", hint="Run `make train`.") from error
    rows, supported = examples.rows[places], examples.supported[places]
    means, deviations = rows.mean(axis=0), rows.std(axis=0)
    deviations = np.where(deviations > 1e-9, deviations, 1.0)
    scaled = np.clip((rows - means) / deviations, -OUTERMOST, OUTERMOST)
    chances, rng = _predict(examples, places), np.random.default_rng(seed)
    members = []
    for number in range(MEMBERS):
        drawn = rng.choice(len(places), len(places), p=chances)
        network = MLPClassifier(
            (HIDDEN,), alpha=RIDGE, learning_rate_init=PACE, max_iter=ROUNDS, n_iter_no_change=ROUNDS, tol=0.0,
            random_state=seed + number,
        )  # fmt: skip
        _ignore_warnings(network, scaled[drawn], supported[drawn])
        members.append(_fit_member(network))
    return Scorer(examples.names, means, deviations, tuple(members), {})


def _ignore_warnings(network: Any, rows: Floats, supported: Any) -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that so few rounds do not converge: stopping early is meant
        network.fit(rows, supported)


def _fit_member(network: Any) -> ScorerMember:
    inner, outer = network.coefs_
    return ScorerMember(inner, network.intercepts_[0], outer[:, 0], float(network.intercepts_[1][0]))


def _predict(examples: ClaimFeatures, places: Any) -> Floats:
    """Return the probability of drawing each claim: equal for all sets, and within a set for both labels."""
    kinds = [(examples.claims[place].source, bool(examples.supported[place])) for place in places]
    counts = {kind: kinds.count(kind) for kind in set(kinds)}
    weights = np.array([1 / counts[kind] for kind in kinds])
    chances: Floats = weights / weights.sum()
    return chances


def _thresholds(examples: ClaimFeatures, held: HeldOutScores) -> dict[str, float]:
    """Return the score that each level asks for, chosen on claims whose details the rules find."""
    passed = [score_source(examples, source, held.folds, passing=True) for source in examples.sources]
    scored = [score_source(examples, source, held.folds) for source in examples.sources]
    levels = {name: find_threshold_losing(passed, share) for name, share in LOST.items()}
    return {**levels, "strict": find_best_threshold(scored)}


def dump_scorer(scorer: Scorer, digits: int = 4) -> Mapping[str, Any]:
    """Return a scorer as plain values, weights rounded to so many digits."""
    return {
        "names": list(scorer.names),
        "means": _round_values(scorer.means, digits),
        "deviations": _round_values(scorer.deviations, digits),
        "thresholds": {name: round(value, digits) for name, value in scorer.thresholds.items()},
        "members": [
            {
                "inner": [_round_values(row, digits) for row in member.inner],
                "inner_bias": _round_values(member.inner_bias, digits),
                "outer": _round_values(member.outer, digits),
                "outer_bias": round(member.outer_bias, digits),
            }
            for member in scorer.members
        ],
    }


def _round_values(values: Sequence[float] | Floats, digits: int) -> list[float]:
    return [round(float(value), digits) for value in values]


if __name__ == "__main__":
    typer.run(train)
