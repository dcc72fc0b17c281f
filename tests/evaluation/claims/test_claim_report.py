"""Reports, tables and the command, with claims from this file."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from evaluation import EvaluationError
from evaluation.claims.claim_report import (
    list_blind_spots,
    render_claim_tables,
    render_mistakes,
    report_claims,
    sample_claims,
)
from evaluation.claims.labelled_claims import LabelledClaim
from evaluation.claims.verifiers import ClaimJudgement, JudgedClaim
from evaluation.cli import app
from storage.types import Verdict

SUPPORTS, REFUTES, UNKNOWN = Verdict.SUPPORTS, Verdict.REFUTES, Verdict.NOT_ENOUGH_INFO


def make_outcome(source: str, score: float, label: Verdict, verdict: Verdict = SUPPORTS) -> JudgedClaim:
    claim = LabelledClaim(f"{source}-{score}", source, f"Claim {score}.", ("It says so.",), label, str(score))
    return JudgedClaim(claim, ClaimJudgement(score, verdict, ("a reason",)), 2.0)


DECIDING = [
    make_outcome("a", 0.9, SUPPORTS, SUPPORTS),
    make_outcome("a", 0.2, SUPPORTS, UNKNOWN),
    make_outcome("a", 0.8, REFUTES, SUPPORTS),
    make_outcome("a", 0.7, REFUTES, REFUTES),
    make_outcome("a", 0.1, UNKNOWN, UNKNOWN),
]


def test_verdicts_of_a_verifier_are_counted_as_accuracy() -> None:
    (source,) = report_claims("x", DECIDING)["sources"]
    decided = source["decided"]

    assert decided["balanced accuracy"] == pytest.approx(0.5833)
    assert (decided["lost"], decided["caught"], decided["accuracy"]) == (0.5, 0.6667, 0.6)
    assert source["milliseconds"] == {"p50": 2.0, "p95": 2.0}
    assert source["auc"] == pytest.approx(0.6667)


def test_blind_spots_are_sorted_worst_first() -> None:
    listed = [*DECIDING, make_outcome("a", 0.95, REFUTES), make_outcome("a", 0.1, SUPPORTS, UNKNOWN)]
    spots = list_blind_spots(listed, 2)

    assert [[mistake["score"] for mistake in mistakes] for mistakes in spots.values()] == [[0.95, 0.8], [0.1, 0.2]]
    printed = render_mistakes("x", list_blind_spots(DECIDING, 1))
    assert "- a a-0.8, REFUTES, scored 0.800: Claim 0.8." in printed
    assert "because a reason" in printed
    assert "false drops: none" in render_mistakes("x", {"false drops": []})


def test_tables_show_every_set_and_verifier_with_notes() -> None:
    every = [*DECIDING, make_outcome("b", 0.9, SUPPORTS)]
    tables = render_claim_tables([report_claims("x", every), report_claims("y", every)])

    assert "| a | 5 | 2 | x | 0.583 | 0.500 | 0.667 |" in tables
    assert "| b | 1 | 1 | y | – |" in tables
    assert "b: too few claims to measure" in tables
    assert "in-sample" not in tables
    assert render_claim_tables([report_claims("local", DECIDING)]).endswith("prints the held-out ones.")


def test_sample_has_a_claim_of_each_set() -> None:
    claims = [outcome.claim for outcome in (*DECIDING, make_outcome("b", 0.9, SUPPORTS))]

    assert sample_claims(claims, 0) == claims
    assert sample_claims(claims, 1) == sample_claims(claims, 1)
    assert [claim.source for claim in sample_claims(claims, 1)] == ["a", "b"]


@pytest.fixture
def claims(tmp_path: Path) -> Path:
    rows = [
        {"claim": "Geese fly south.", "evidence": "Geese fly south.", "label": "SUPPORTS"},
        {"claim": "Geese swim north.", "evidence": "Geese fly south.", "label": "NOT ENOUGH INFO"},
    ]
    (tmp_path / "claims").mkdir()
    path = tmp_path / "claims" / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def run(*arguments: object, **environment: str) -> Result:
    return CliRunner().invoke(app, ["claims", *map(str, arguments)], env=environment)


def test_command_prints_a_document_or_tables(claims: Path, handbook: Path) -> None:
    document = json.loads(run(claims, "--json", FOOTNOTE_HOME=str(handbook)).stdout)
    printed = run("--examples", "1", FOOTNOTE_DATA=str(claims.parents[1]), FOOTNOTE_HOME=str(handbook))

    (local,) = document["verifiers"]
    assert (document["schema"], local["sources"][0]["auc"]) == (1, 1.0)
    assert "| mine | 2 | 1 | local |" in printed.stdout
    assert "**Where local is blind**" in printed.stdout
    assert "local: 2 claims" in printed.stderr


def test_missing_claims_and_unknown_verifiers_are_refused(claims: Path) -> None:
    unknown = run(claims, "--verifier", "oracle").exception

    assert isinstance(unknown, EvaluationError)
    assert "No verifier is called" in str(unknown)
    assert unknown.hint.startswith("The verifiers are")
    assert "FOOTNOTE_DATA" in run(FOOTNOTE_DATA="").exception.hint
    claims.unlink()
    assert "no labelled claims" in str(run(FOOTNOTE_DATA=str(claims.parents[1])).exception)


def test_claims_that_pass_the_gate_are_counted_by_kind() -> None:
    rows: list[tuple[float, Verdict, str, dict[str, Any]]] = [
        (0.9, SUPPORTS, "plain", {"sure": True, "judged": True}),
        (0.8, SUPPORTS, "plain", {"sure": False, "quoted": True}),
        (0.1, SUPPORTS, "other", {"sure": False}),
        (0.9, REFUTES, "other", {"sure": True}),
        (0.5, REFUTES, "other", {"sure": False, "quoted": True}),
    ]
    outcomes = [
        JudgedClaim(
            LabelledClaim(str(score), "a", "It is.", ("So.",), label, "g", kind=kind),
            ClaimJudgement(score, UNKNOWN, **ways),
            2.0,
        )
        for score, label, kind, ways in rows
    ]
    report = report_claims("x", outcomes)
    gate = report["sources"][0]["gate"]

    assert list(gate) == ["all", "other", "plain"]
    assert (gate["all"]["said"], gate["all"]["quoted"], gate["all"]["said by a judge"]) == (0.3333, 0.3333, 0.6667)
    assert (gate["all"]["caught"], gate["all"]["passed by a lenient judge"]) == (0.5, 0.5)
    assert (gate["all"]["caught by a judge"], gate["all"]["quoted with a judge"]) == (0.5, 0.3333)
    assert gate["plain"]["caught"] is None
    assert "| a | plain | 2 | 0.500 | 0.500 | 1.000 | 0.500 | – |" in render_claim_tables([report])
