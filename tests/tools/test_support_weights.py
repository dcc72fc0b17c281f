"""Training of the support check: samples, held-out claims and the weights file."""

import json
from pathlib import Path

import numpy as np
import pytest

from evaluation import EvaluationError
from evaluation.claims.labelled_claims import LabelledClaim
from pipeline.support.scorer import load_scorer, parse_scorer
from storage.types import Verdict
from tools.training.support_weights import (
    ClaimFeatures,
    HeldOutScores,
    collect_features,
    dump_scorer,
    render_training,
    report_training,
    train,
)

PASSAGE = "Ingrid Solberg founded the paper mill in Lauvik in 1921. It closed in May 1987 after a fire."
CLAIMS = [
    LabelledClaim(str(place), source, text, (PASSAGE,), label, f"group {place % 4}")
    for place, (source, text, label) in enumerate([
        ("one", "The mill closed after a fire.", Verdict.SUPPORTS),
        ("one", "Ingrid Solberg founded a mill.", Verdict.SUPPORTS),
        ("one", "Whales sing beneath the ice.", Verdict.NOT_ENOUGH_INFO),
        ("one", "The mill closed in 1988.", Verdict.REFUTES),
        ("two", "The paper mill was founded in 1921.", Verdict.SUPPORTS),
        ("two", "The mill in Lauvik made paper.", Verdict.SUPPORTS),
        ("two", "The mill was sold to Astrid Nygaard.", Verdict.NOT_ENOUGH_INFO),
        ("two", "Bread is baked at night.", Verdict.NOT_ENOUGH_INFO),
    ])
]  # fmt: skip


@pytest.fixture
async def examples() -> ClaimFeatures:
    return await collect_features(CLAIMS)


async def test_training_features_match_the_gate(examples: ClaimFeatures) -> None:
    assert examples.rows.shape == (len(CLAIMS), len(examples.names))
    assert set(load_scorer().names) == set(examples.names)
    assert examples.denied.tolist() == [False, False, False, True, False, False, True, False]
    assert examples.supported.tolist() == [True, True, False, False, True, True, False, False]


async def test_perfect_scores_give_perfect_figures(examples: ClaimFeatures) -> None:
    """Perfect scores give accuracies of 1, and the gate loses nothing and catches everything."""
    perfect = np.where(examples.supported, 0.9, 0.1)
    levels = {"loose": 0.05, "normal": 0.5}
    measured = report_training(examples, HeldOutScores(perfect, perfect), levels)

    assert [each["set"] for each in measured] == ["one", "two"]
    for each in measured:
        assert each["check"]["sets"] == each["auc"] == each["caught_at_2_percent_lost"] == 1.0
        assert each["gate"]["normal"] == {"lost": 0.0, "caught": 1.0}
        assert each["gate"]["loose"] == each["rules"] == {"lost": 0.0, "caught": 0.5}
    assert render_training(measured, levels).count("\n") == 10


def test_written_scorer_is_read_back() -> None:
    scorer = load_scorer()
    again = parse_scorer(json.loads(json.dumps(dump_scorer(scorer))))
    rows = np.random.default_rng(1).normal(scorer.means, scorer.deviations, (20, len(scorer.names)))

    assert np.array_equal(scorer.scores(rows), again.scores(rows))


def test_missing_scikit_learn_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "claims.jsonl"
    rows = [
        {"claim": claim.claim, "evidence": [PASSAGE], "label": claim.label.value, "group": claim.group}
        for claim in CLAIMS
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    try:
        import sklearn  # noqa: F401
    except ImportError:
        with pytest.raises(EvaluationError, match="scikit-learn"):
            train([file], write=False)
        return
    pytest.skip("scikit-learn is installed: the error cannot be seen")
