"""`footnote evaluate train`: fits the scorer of the local support check to labelled claims; it is part of the code.

Ten small networks, each on claims drawn anew so that every set weighs the same and in it either label. The
thresholds and the figures printed are of scores by networks that saw no claim of the same article or question
(`folds`), or none of the same set (`other_sets`). One seed, one result.
"""

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import pipeline.support as code
from evaluation.claims.gathering import Gathered, gathered
from evaluation.claims.measures import best_threshold, threshold_losing
from evaluation.claims.reading import read_all
from evaluation.claims.training_report import Held, of_source, report, table
from evaluation.errors import EvaluationError
from evaluation.fitting import Floats, folds
from pipeline.support.scoring import OUTERMOST, WEIGHTS, Member, Scorer, to_json

MEMBERS, HIDDEN, RIDGE, PACE, ROUNDS = 10, 16, 3.0, 0.003, 40
FOLDS = 5
LOST = {"loose": 0.005, "normal": 0.02}
"""The share of supported claims that a level may lose, every set weighing the same; `strict` is the most accurate."""


def train(
    paths: Annotated[list[Path], typer.Argument(help="Files of labelled claims, or folders.")],
    home: Annotated[Path, typer.Option(help="Where the model of words is kept.")] = Path(".footnote"),
    seed: Annotated[int, typer.Option(help="The same seed gives the same weights.")] = 7,
    write: Annotated[bool, typer.Option(help="Write the weights into the code.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Fit the local support check to labelled claims, and print how it does on claims that it did not see.

    Needs scikit-learn, which nothing else does: `make train`.

    Example: footnote evaluate train data/claims
    """
    examples = asyncio.run(gathered(read_all(paths), home))
    held = _held(examples, seed)
    levels = _thresholds(examples, held)
    scorer = replace(_fitted(examples, np.arange(len(examples.claims)), seed), thresholds=levels)
    measured = report(examples, held, levels)
    print(json.dumps({"schema": 1, "thresholds": levels, "sets": measured}) if as_json else table(measured, levels))
    if write:
        path = Path(str(code.__file__)).parent / WEIGHTS
        path.write_text(json.dumps(to_json(scorer), separators=(",", ":")) + "\n", encoding="utf-8")
        print(f"wrote {path.name}", file=sys.stderr)


def _held(examples: Gathered, seed: int) -> Held:
    fold = folds(examples.groups, FOLDS)
    families = np.array([claim.family for claim in examples.claims])
    return Held(_scores_unseen(examples, fold, seed), _scores_unseen(examples, families, seed))


def _scores_unseen(examples: Gathered, parts: Any, seed: int) -> Floats:
    """Score each part by networks fitted to all others."""
    scores = np.zeros(len(examples.claims))
    for part in np.unique(parts):
        print(f"without {part}", file=sys.stderr)
        here = parts == part
        scores[here] = _fitted(examples, np.flatnonzero(~here), seed).scores(examples.rows[here])
    return scores


def _fitted(examples: Gathered, places: Any, seed: int) -> Scorer:
    try:
        from sklearn.neural_network import MLPClassifier
    except ImportError as error:
        raise EvaluationError("scikit-learn is not installed.", hint="Run `make train`.") from error
    rows, supported = examples.rows[places], examples.supported[places]
    means, deviations = rows.mean(axis=0), rows.std(axis=0)
    deviations = np.where(deviations > 1e-9, deviations, 1.0)
    scaled = np.clip((rows - means) / deviations, -OUTERMOST, OUTERMOST)
    chances, rng = _chances(examples, places), np.random.default_rng(seed)
    members = []
    for number in range(MEMBERS):
        drawn = rng.choice(len(places), len(places), p=chances)
        network = MLPClassifier(
            (HIDDEN,), alpha=RIDGE, learning_rate_init=PACE, max_iter=ROUNDS, n_iter_no_change=ROUNDS, tol=0.0,
            random_state=seed + number,
        )  # fmt: skip
        _quietly(network, scaled[drawn], supported[drawn])
        members.append(_member(network))
    return Scorer(examples.names, means, deviations, tuple(members), {})


def _quietly(network: Any, rows: Floats, supported: Any) -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that so few rounds do not converge: stopping early is meant
        network.fit(rows, supported)


def _member(network: Any) -> Member:
    inner, outer = network.coefs_
    return Member(inner, network.intercepts_[0], outer[:, 0], float(network.intercepts_[1][0]))


def _chances(examples: Gathered, places: Any) -> Floats:
    """Return how likely each claim is drawn: every set as often as another, and in it either label."""
    kinds = [(examples.claims[place].source, bool(examples.supported[place])) for place in places]
    counts = {kind: kinds.count(kind) for kind in set(kinds)}
    weights = np.array([1 / counts[kind] for kind in kinds])
    chances: Floats = weights / weights.sum()
    return chances


def _thresholds(examples: Gathered, held: Held) -> dict[str, float]:
    """Return the score that each level asks for, chosen on claims whose details the rules find."""
    passed = [of_source(examples, source, held.folds, passing=True) for source in examples.sources]
    every = [of_source(examples, source, held.folds) for source in examples.sources]
    levels = {name: threshold_losing(passed, share) for name, share in LOST.items()}
    return {**levels, "strict": best_threshold(every)}
