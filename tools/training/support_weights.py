"""Train the support check's weights on labelled claims, and measure them on held-out claims."""

import asyncio
import json
import sys
import warnings
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
from evaluation.reports.printing import AsJson, format_figure, print_report, render_table, round_figure
from pipeline.support.scorer import OUTERMOST, WEIGHTS, Scorer, ScorerMember
from pipeline.support.support_check import analyse_sentence
from storage.indexes.embedding import TokenStates
from storage.indexes.packaged_embedder import open_minilm
from tools.training.answer_weights import Booleans, Floats

_NEWS = 1_000


@dataclass(frozen=True)
class ClaimFeatures:
    """The claims and their features, with one row for each claim."""

    claims: Sequence[LabelledClaim]
    names: tuple[str, ...]
    rows: Floats
    """(claims, names)"""
    denied: Booleans
    """Whether a rule rejects the claim."""

    @property
    def supported(self) -> Booleans:
        """Whether each claim is supported by its evidence."""
        return np.array([claim.supported for claim in self.claims])

    @property
    def groups(self) -> list[str]:
        """The group of each claim. All claims of a group are used either for training or for testing."""
        return [f"{claim.family}/{claim.group}" for claim in self.claims]

    @property
    def sources(self) -> tuple[str, ...]:
        """The sets that the claims come from, in order."""
        return tuple(dict.fromkeys(claim.source for claim in self.claims))

    @property
    def overlap(self) -> Floats:
        """The share of each claim's content terms that occur in its evidence; this is a baseline."""
        return self._column("overlap")

    @property
    def likeness(self) -> Floats:
        """The cosine of each claim with the most similar sentence of its evidence; this is a baseline."""
        return self._column("cosine")

    def _column(self, name: str) -> NDArray[np.float64]:
        column: Floats = self.rows[:, self.names.index(name)]
        return column


async def collect_features(claims: Sequence[LabelledClaim]) -> ClaimFeatures:
    """Compute the features of every claim as the gate's support check does."""
    reader = open_minilm()

    async def read(texts: Sequence[str]) -> tuple[TokenStates, ...]:
        return reader.read(texts)

    rows, denied = [], []
    for place, claim in enumerate(claims):
        analysis = await analyse_sentence(claim.claim, build_evidence(claim.evidence, title=claim.title), read)
        rows.append(analysis.features)
        denied.append(bool(analysis.against))
        if place % _NEWS == 0:
            print(f"{place:,} of {len(claims):,} claims", file=sys.stderr)
    names = tuple(dict.fromkeys(name for row in rows for name in row))  # a text without tokens has fewer
    values = np.array([[row.get(name, 0.0) for name in names] for row in rows])
    return ClaimFeatures(claims, names, values, np.array(denied))


_LOST_SHARE = 0.02


@dataclass(frozen=True)
class HeldOutScores:
    """Scores of claims, given by networks that were not trained on these claims."""

    folds: Floats
    """From networks trained without the claims of the same article or question."""
    sets: Floats
    """From networks trained without the sets of the same family."""


def score_source(examples: ClaimFeatures, source: str, scores: Floats, *, passing: bool = False) -> ScoredClaims:
    """Return the scores of one set. With `passing`, claims that a rule rejects are left out."""
    here = np.array([claim.source == source for claim in examples.claims])
    here = here & ~examples.denied if passing else here
    return ScoredClaims(scores[here], examples.supported[here])


def report_training(examples: ClaimFeatures, held: HeldOutScores, levels: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the figures of each set: balanced accuracies of the score alone, and under `gate`, of rules and score."""
    return [_report_set(examples, held, levels, source) for source in examples.sources]


def _report_set(
    examples: ClaimFeatures, held: HeldOutScores, levels: Mapping[str, float], source: str
) -> dict[str, Any]:
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
        "auc": round_figure(roc_auc(scored), 3),
        "caught_at_2_percent_lost": _measure_caught(scored),
        "caught_at_2_percent_lost_by_overlap": _measure_caught(score_source(examples, source, examples.overlap)),
        "gate": {level: _measure_gate(examples, held, here, threshold) for level, threshold in levels.items()},
        "rules": _measure_gate(examples, held, here, 0.0),
    }


def _accuracies(
    examples: ClaimFeatures, source: str, scores: Floats, unseen: Floats, groups: Sequence[str]
) -> dict[str, float | None]:
    """Return balanced accuracies: with thresholds from other articles of the set, and with one from other sets."""
    family = source.partition("/")[0]
    others = [
        score_source(examples, source, scores) for source in examples.sources if source.partition("/")[0] != family
    ]
    here, apart = score_source(examples, source, scores), score_source(examples, source, unseen)
    by_others = balanced_accuracy(apart.scores >= find_best_threshold(others), apart.supported) if others else None
    return {"articles": round_figure(cross_validate_accuracy(here, groups), 3), "sets": round_figure(by_others, 3)}


def _measure_caught(scored: ScoredClaims) -> float | None:
    point = measure_threshold(scored, find_threshold_losing([scored], _LOST_SHARE))
    return round_figure(point.caught if point else None, 3)


def _measure_gate(examples: ClaimFeatures, held: HeldOutScores, here: Any, threshold: float) -> dict[str, float]:
    dropped = examples.denied[here] | (held.folds[here] < threshold)
    supported = examples.supported[here]
    return {"lost": round(float(dropped[supported].mean()), 3), "caught": round(float(dropped[~supported].mean()), 3)}


def render_training(measured: Sequence[Mapping[str, Any]], levels: Mapping[str, float]) -> str:
    """Return the figures as two tables."""
    thresholds = ", ".join(f"{name} {value:.3f}" for name, value in levels.items())
    parts = [(score, held_out) for score in ("overlap", "likeness", "check") for held_out in ("articles", "sets")]
    gates = [(level, share) for level in ("rules", *levels) for share in ("lost", "caught")]
    accuracy = [
        [
            row["set"],
            f"{row['claims']:,} ({row['supported']:,})",
            *map(format_figure, (row["majority"], *(row[score][held_out] for score, held_out in parts), row["auc"])),
        ]
        for row in measured
    ]
    caught = [
        [
            row["set"],
            *map(format_figure, (row["caught_at_2_percent_lost_by_overlap"], row["caught_at_2_percent_lost"])),
            *(format_figure(({"rules": row["rules"]} | row["gate"])[level][share]) for level, share in gates),
        ]
        for row in measured
    ]
    names = ["set", "claims (supported)", "majority", *map(": ".join, parts), "AUC"]
    heads = ["set", "overlap: caught at 2% lost", "check: caught at 2% lost", *map(": ".join, gates)]
    return f"Thresholds: {thresholds}\n\n{render_table(names, accuracy)}\n\n{render_table(heads, caught)}"


MEMBERS, HIDDEN, RIDGE, PACE, ROUNDS = 10, 16, 3.0, 0.003, 40
FOLDS = 5
LOST = {"loose": 0.005, "normal": 0.02}
"""The share of supported claims that a level may lose, with equal weight for every set.

`strict` uses the most accurate threshold instead.
"""


def train(
    paths: Annotated[list[Path], typer.Argument(help="Files of labelled claims, or folders.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same weights.")] = 7,
    write: Annotated[bool, typer.Option(help="Write the weights into the code.")] = True,
    as_json: AsJson = False,
) -> None:
    """Fit the local support check to labelled claims, and print its accuracy on held-out claims.

    Only this command needs scikit-learn: `make train`.

    Example: python -m tools.training.support_weights data/claims
    """
    examples = asyncio.run(collect_features(read_all(paths)))
    held_out = _score_held_out(examples, seed)
    levels = _choose_thresholds(examples, held_out)
    scorer = replace(_fit_scorer(examples, np.arange(len(examples.claims)), seed), thresholds=levels)
    measured = report_training(examples, held_out, levels)
    print_report({"thresholds": levels, "sets": measured}, render_training(measured, levels), as_json=as_json)
    if write:
        path = Path(str(code.__file__)).parent / WEIGHTS
        path.write_text(json.dumps(dump_scorer(scorer), separators=(",", ":")) + "\n", encoding="utf-8")
        print(f"wrote {path.name}", file=sys.stderr)


def _score_held_out(examples: ClaimFeatures, seed: int) -> HeldOutScores:
    fold = assign_folds(examples.groups, FOLDS)
    families = np.array([claim.family for claim in examples.claims])
    return HeldOutScores(_score_parts(examples, fold, seed), _score_parts(examples, families, seed))


def _score_parts(examples: ClaimFeatures, parts: Any, seed: int) -> Floats:
    """Score the claims of each part with networks that are fitted to all other parts."""
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
    chances, rng = _weigh_draws(examples, places), np.random.default_rng(seed)
    members = []
    for number in range(MEMBERS):
        drawn = rng.choice(len(places), len(places), p=chances)
        network = MLPClassifier(
            (HIDDEN,), alpha=RIDGE, learning_rate_init=PACE, max_iter=ROUNDS, n_iter_no_change=ROUNDS, tol=0.0,
            random_state=seed + number,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that so few rounds do not converge: the early stop is intended
            network.fit(scaled[drawn], supported[drawn])
        (inner, outer), (inner_bias, outer_bias) = network.coefs_, network.intercepts_
        members.append(ScorerMember(inner, inner_bias, outer[:, 0], float(outer_bias[0])))
    return Scorer(examples.names, means, deviations, tuple(members), {})


def _weigh_draws(examples: ClaimFeatures, places: Any) -> Floats:
    """Return the probability of drawing each claim; the labels of each set have equal probabilities."""
    kinds = [(examples.claims[place].source, bool(examples.supported[place])) for place in places]
    counts = {kind: kinds.count(kind) for kind in set(kinds)}
    weights = np.array([1 / counts[kind] for kind in kinds])
    chances: Floats = weights / weights.sum()
    return chances


def _choose_thresholds(examples: ClaimFeatures, held: HeldOutScores) -> dict[str, float]:
    """Return the score that each level requires: on claims that no rule rejects; for `strict`, on unseen sets."""
    passed = [score_source(examples, source, held.folds, passing=True) for source in examples.sources]
    scored = [score_source(examples, source, held.sets) for source in examples.sources]
    levels = {name: find_threshold_losing(passed, share) for name, share in LOST.items()}
    return {**levels, "strict": find_best_threshold(scored)}


def dump_scorer(scorer: Scorer, digits: int = 4) -> Mapping[str, Any]:
    """Return a scorer as JSON values. Its weights are rounded to `digits` digits."""
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
