"""Reports, tables and the command, with claims from this file."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from evaluation import EvaluationError
from evaluation.claims.claim_report import add_title, list_blind_spots, report_claims, sample_claims
from evaluation.claims.claim_tables import render_claim_tables, render_mistakes
from evaluation.claims.labelled_claims import LabelledClaim
from evaluation.claims.verifiers import ClaimJudgement, JudgedClaim
from evaluation.cli import app
from storage.types import Verdict

SUPPORTS, REFUTES, UNKNOWN = Verdict.SUPPORTS, Verdict.REFUTES, Verdict.NOT_ENOUGH_INFO


def make_outcome(source: str, score: float, label: Verdict, verdict: Verdict | None = None) -> JudgedClaim:
    claim = LabelledClaim(f"{source}-{score}", source, f"Claim {score}.", ("It says so.",), label, str(score))
    return JudgedClaim(claim, ClaimJudgement(score, verdict, ("a reason",)), 2.0)


SCORING = [
    *(make_outcome("a", score, SUPPORTS) for score in (0.6, 0.9)),
    *(make_outcome("a", score, UNKNOWN) for score in (0.1, 0.4)),
    *(make_outcome("b/one", score, SUPPORTS) for score in (0.3, 0.35)),
    *(make_outcome("b/one", score, REFUTES) for score in (0.2, 0.1)),
    *(make_outcome("b/two", score, SUPPORTS) for score in (0.3, 0.4)),
]
DECIDING = [
    make_outcome("a", 0.9, SUPPORTS, SUPPORTS),
    make_outcome("a", 0.2, SUPPORTS, UNKNOWN),
    make_outcome("a", 0.8, REFUTES, SUPPORTS),
    make_outcome("a", 0.7, REFUTES, REFUTES),
    make_outcome("a", 0.1, UNKNOWN, UNKNOWN),
]


def test_threshold_of_a_claim_set_is_chosen_on_other_families_of_sets() -> None:
    """The threshold of `a`, 0.5, refuses all of `b`; that of `b/one`, 0.25, accepts one of `a` wrongly."""
    report = report_claims("x", SCORING)
    first, second, third = report["sources"]

    assert second["by other sets"] == {"threshold": 0.5, "balanced accuracy": 0.5}
    assert first["by other sets"] == {"threshold": 0.25, "balanced accuracy": 0.75}
    assert third["by other sets"] == {"threshold": 0.5, "balanced accuracy": None}
    assert (first["decided"], first["auc"]) == (None, 1.0)
    assert report["mean"]["by other sets"]["balanced accuracy"] == 0.625
    assert first["caught at lost"] == {"1%": 1.0, "2%": 1.0, "5%": 1.0, "10%": 1.0}
    assert second["lost and caught by other sets"]["2%"] == {"threshold": 0.6, "lost": 1.0, "caught": 1.0}
    assert first["lost and caught by other sets"]["2%"] == {"threshold": 0.3, "lost": 0.0, "caught": 0.5}
    assert third["caught at lost"] == {}
    (alone,) = report_claims("x", SCORING[:4])["sources"]
    assert (alone["by other sets"], alone["lost and caught by other sets"]) == (None, {})


def test_verdicts_of_a_verifier_are_counted_as_accuracy_and_confusion() -> None:
    (source,) = report_claims("x", DECIDING)["sources"]
    decided = source["decided"]

    assert decided["balanced accuracy"] == pytest.approx(0.5833)
    assert (decided["lost"], decided["caught"], decided["accuracy"]) == (0.5, 0.6667, 0.6)
    assert decided["confusion"]["REFUTES"] == {"SUPPORTS": 1, "REFUTES": 1, "NOT ENOUGH INFO": 0}
    assert source["milliseconds"] == {"p50": 2.0, "p95": 2.0}


def test_blind_spots_are_sorted_worst_first() -> None:
    def scores(outcomes: list[JudgedClaim], kind: str, most: int) -> list[float]:
        return [mistake["score"] for mistake in list_blind_spots(outcomes, most)[kind]]

    assert (scores(DECIDING, "false accepts", 5), scores(DECIDING, "false drops", 5)) == ([0.8], [0.2])
    assert (scores(SCORING, "false accepts", 2), scores(SCORING, "false drops", 1)) == ([0.4, 0.2], [0.3])
    printed = render_mistakes("x", list_blind_spots(DECIDING, 1))
    assert "- a a-0.8, REFUTES, scored 0.800: Claim 0.8." in printed
    assert "because a reason" in printed
    assert "false drops: none" in render_mistakes("x", {"false drops": []})


def test_tables_show_every_set_and_verifier_with_notes() -> None:
    scoring = render_claim_tables([report_claims("x", SCORING), report_claims("y", SCORING)])
    deciding = render_claim_tables([report_claims("z", DECIDING)])
    single = render_claim_tables([report_claims("x", SCORING[:1])])

    assert "| a | 4 | 2 | x |" in scoring
    assert "| mean |  |  | y |" in scoring
    assert "b/two: too few claims to measure" in scoring
    assert "Labels and verdicts" not in scoring
    assert "| a | z | REFUTES | 1 | 1 | 0 |" in deciding
    assert not any(words in deciding for words in ("mean", "too few", "in-sample"))
    assert not any(words in single for words in ("Share of unsupported", "|  |"))
    assert render_claim_tables([report_claims("local", DECIDING)]).endswith("prints the held-out ones.")


def test_sample_has_a_claim_of_each_set_and_title_precedes_the_evidence() -> None:
    claims = [outcome.claim for outcome in SCORING]

    assert sample_claims(claims, 0) == claims
    assert sample_claims(claims, 1) == sample_claims(claims, 1)
    assert [claim.source for claim in sample_claims(claims, 1)] == ["a", "b/one", "b/two"]
    assert add_title(claims[0]) is claims[0]
    assert add_title(replace(claims[0], title="Geese")).evidence == ("Geese\n\nIt says so.",)


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


def test_command_prints_a_document_or_tables(claims: Path) -> None:
    document = json.loads(run(claims, "--verifier", "overlap", "--examples", "1", "--json").stdout)
    printed = run(claims, "--verifier", "overlap", "--verifier", "majority", "--examples", "1")

    (overlap,) = document["verifiers"]
    assert (document["schema"], overlap["sources"][0]["auc"]) == (1, 1.0)
    assert overlap["examples"]["false accepts"][0]["claim"] == "Geese swim north."
    assert "| mine | 2 | 1 | majority | 0.500 |" in printed.stdout
    assert "**Where overlap is blind**" in printed.stdout
    assert "overlap: 2 claims" in printed.stderr


@pytest.mark.parametrize(
    ("options", "complaint"),
    [(["--verifier", "oracle"], "No verifier is called"), (["--form", "poem"], "No format is called")],
)
def test_unknown_verifier_and_form_are_refused(claims: Path, options: list[str], complaint: str) -> None:
    result = run(claims, *options)

    assert isinstance(result.exception, EvaluationError)
    assert complaint in str(result.exception)
    assert result.exception.hint.startswith(("The verifiers are", "The formats are"))


def test_claims_are_read_from_the_footnote_data_folder_by_default(claims: Path) -> None:
    folder = str(claims.parents[1])

    assert "| mine | 2 | 1 | overlap |" in run("--verifier", "overlap", FOOTNOTE_DATA=folder).stdout
    assert "FOOTNOTE_DATA" in run(FOOTNOTE_DATA="").exception.hint
    claims.unlink()
    assert "no labelled claims" in str(run(FOOTNOTE_DATA=folder).exception)


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
