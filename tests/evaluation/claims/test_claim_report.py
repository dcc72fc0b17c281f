"""Reports, tables and the command, over claims of our own."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evaluation import EvaluationError
from evaluation.claims.claim_report import (
    add_title,
    list_blind_spots,
    report_claims,
    sample_claims,
)
from evaluation.claims.claim_tables import render_claim_tables, render_mistakes
from evaluation.claims.labelled_claims import LabelledClaim
from evaluation.claims.verifiers import ClaimJudgement, JudgedClaim
from evaluation.cli import app
from storage.types import Verdict

SUPPORTS, REFUTES, UNKNOWN = Verdict.SUPPORTS, Verdict.REFUTES, Verdict.NOT_ENOUGH_INFO


def outcome(source: str, score: float, label: Verdict, verdict: Verdict | None = None, group: str = "") -> JudgedClaim:
    claim = LabelledClaim(f"{source}-{score}", source, f"Claim {score}.", ("It says so.",), label, group or str(score))
    return JudgedClaim(claim, ClaimJudgement(score, verdict, ("a reason",)), 2.0)


SCORING = [
    *(outcome("a", score, SUPPORTS) for score in (0.6, 0.9)),
    *(outcome("a", score, UNKNOWN) for score in (0.1, 0.4)),
    *(outcome("b/one", score, SUPPORTS) for score in (0.3, 0.35)),
    *(outcome("b/one", score, REFUTES) for score in (0.2, 0.1)),
    *(outcome("b/two", score, SUPPORTS) for score in (0.3, 0.4)),
]


def test_threshold_is_chosen_on_other_families() -> None:
    """That of `a` is 0.5, which refuses all of `b`; that of `b/one` is 0.25, which accepts one too many of `a`."""
    found = report_claims("x", SCORING)
    first, second, third = found["sources"]

    assert second["by other sets"] == {"threshold": 0.5, "balanced accuracy": 0.5}
    assert first["by other sets"] == {"threshold": 0.25, "balanced accuracy": 0.75}
    assert third["by other sets"] == {"threshold": 0.5, "balanced accuracy": None}
    assert first["decided"] is None
    assert first["auc"] == 1.0
    assert found["mean"]["by other sets"]["balanced accuracy"] == 0.625


def test_caught_shares_use_own_and_other_thresholds() -> None:
    first, second, third = report_claims("x", SCORING)["sources"]

    assert first["caught at lost"] == {"1%": 1.0, "2%": 1.0, "5%": 1.0, "10%": 1.0}
    assert second["lost and caught by other sets"]["2%"] == {"threshold": 0.6, "lost": 1.0, "caught": 1.0}
    assert first["lost and caught by other sets"]["2%"] == {"threshold": 0.3, "lost": 0.0, "caught": 0.5}
    assert third["caught at lost"] == {}


def test_single_set_has_no_threshold_of_others() -> None:
    (found,) = report_claims("x", SCORING[:4])["sources"]

    assert found["by other sets"] is None
    assert found["lost and caught by other sets"] == {}


DECIDING = [
    outcome("a", 0.9, SUPPORTS, SUPPORTS),
    outcome("a", 0.2, SUPPORTS, UNKNOWN),
    outcome("a", 0.8, REFUTES, SUPPORTS),
    outcome("a", 0.7, REFUTES, REFUTES),
    outcome("a", 0.1, UNKNOWN, UNKNOWN),
]


def test_decisions_are_counted() -> None:
    (found,) = report_claims("x", DECIDING)["sources"]

    assert found["decided"]["balanced accuracy"] == pytest.approx(0.5833)
    assert (found["decided"]["lost"], found["decided"]["caught"]) == (0.5, 0.6667)
    assert found["decided"]["accuracy"] == 0.6
    assert found["decided"]["confusion"]["REFUTES"] == {"SUPPORTS": 1, "REFUTES": 1, "NOT ENOUGH INFO": 0}
    assert found["milliseconds"] == {"p50": 2.0, "p95": 2.0}


def test_blind_spots_are_sorted_worst_first() -> None:
    assert [each["score"] for each in list_blind_spots(DECIDING, 5)["false accepts"]] == [0.8]
    assert [each["score"] for each in list_blind_spots(DECIDING, 5)["false drops"]] == [0.2]
    assert [each["score"] for each in list_blind_spots(SCORING, 2)["false accepts"]] == [0.4, 0.2]
    assert [each["score"] for each in list_blind_spots(SCORING, 1)["false drops"]] == [0.3]


def test_tables_show_every_set_and_verifier() -> None:
    printed = render_claim_tables([report_claims("x", SCORING), report_claims("y", SCORING)])

    assert "| a | 4 | 2 | x |" in printed
    assert "| mean |  |  | y |" in printed
    assert "Labels and verdicts" not in printed
    alone = render_claim_tables([report_claims("z", DECIDING)])
    assert "| a | z | REFUTES | 1 | 1 | 0 |" in alone
    assert "mean" not in alone


def test_notes_name_small_sets_and_in_sample_figures() -> None:
    assert "b/two: too few claims to measure" in render_claim_tables([report_claims("x", SCORING)])
    assert "too few" not in render_claim_tables([report_claims("x", DECIDING)])
    assert "Share of unsupported" not in render_claim_tables([report_claims("x", SCORING[:1])])
    assert "|  |" not in render_claim_tables([report_claims("x", SCORING[:1])])
    assert "in-sample" not in render_claim_tables([report_claims("x", DECIDING)])
    assert render_claim_tables([report_claims("x", DECIDING), report_claims("local", DECIDING)]).endswith(
        "prints the held-out ones."
    )


def test_examples_are_rendered_with_reasons() -> None:
    printed = render_mistakes("x", list_blind_spots(DECIDING, 1))

    assert "- a a-0.8, REFUTES, scored 0.800: Claim 0.8." in printed
    assert "because a reason" in printed
    assert "false drops: none" in render_mistakes("x", {"false drops": []})


def test_sample_draws_from_each_source_repeatably() -> None:
    claims = [each.claim for each in SCORING]

    assert sample_claims(claims, 0) == claims
    assert sample_claims(claims, 1) == sample_claims(claims, 1)
    assert [claim.source for claim in sample_claims(claims, 1)] == ["a", "b/one", "b/two"]


def test_title_is_added_above_the_passage() -> None:
    claim = SCORING[0].claim

    assert add_title(claim) is claim
    assert add_title(replace(claim, title="Geese")).evidence == ("Geese\n\nIt says so.",)


def mine(tmp_path: Path) -> Path:
    rows = [
        {"claim": "Geese fly south.", "evidence": "Geese fly south.", "label": "SUPPORTS"},
        {"claim": "Geese swim north.", "evidence": "Geese fly south.", "label": "NOT ENOUGH INFO"},
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_the_command_prints_one_document(tmp_path: Path) -> None:
    asked = ["claims", str(mine(tmp_path)), "--verifier", "overlap", "--examples", "1", "--json"]

    result = CliRunner().invoke(app, asked)

    document = json.loads(result.stdout)
    assert document["schema"] == 1
    assert document["verifiers"][0]["sources"][0]["auc"] == 1.0
    assert document["verifiers"][0]["examples"]["false accepts"][0]["claim"] == "Geese swim north."


def test_the_command_prints_tables(tmp_path: Path) -> None:
    asked = ["claims", str(mine(tmp_path)), "--verifier", "overlap", "--verifier", "majority", "--examples", "1"]

    result = CliRunner().invoke(app, asked)

    assert "| mine | 2 | 1 | majority | 0.500 |" in result.stdout
    assert "**Where overlap is blind**" in result.stdout
    assert "overlap: 2 claims" in result.stderr


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [(["--verifier", "oracle"], "No verifier is called"), (["--form", "poem"], "No form is called")],
)
def test_unknown_verifier_and_form_are_refused(tmp_path: Path, asked: list[str], complaint: str) -> None:
    result = CliRunner().invoke(app, ["claims", str(mine(tmp_path)), *asked])

    assert isinstance(result.exception, EvaluationError)
    assert complaint in str(result.exception)
    assert result.exception.hint.startswith("There are")


def test_data_folder_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "claims").mkdir()
    run = CliRunner()

    unset = run.invoke(app, ["claims"], env={"FOOTNOTE_DATA": ""})
    empty = run.invoke(app, ["claims"], env={"FOOTNOTE_DATA": str(tmp_path)})
    mine(tmp_path / "claims")
    found = run.invoke(app, ["claims", "--verifier", "overlap"], env={"FOOTNOTE_DATA": str(tmp_path)})

    assert "FOOTNOTE_DATA" in unset.exception.hint
    assert "no labelled claims" in str(empty.exception)
    assert "| mine | 2 | 1 | overlap |" in found.stdout


def test_gate_outcomes_are_counted_by_kind() -> None:
    judged = [
        replace(
            outcome("a", score, label, UNKNOWN),
            claim=LabelledClaim(str(score), "a", "It is.", ("So.",), label, "g", kind=kind),
            judged=ClaimJudgement(score, UNKNOWN, sure=sure, judged=asked, quoted=quoted),
        )
        for score, label, kind, sure, asked, quoted in [
            (0.9, SUPPORTS, "plain", True, True, False),
            (0.8, SUPPORTS, "plain", False, False, True),
            (0.1, SUPPORTS, "other", False, False, False),
            (0.9, REFUTES, "other", True, False, False),
            (0.5, REFUTES, "other", False, False, True),
        ]
    ]
    report = report_claims("x", judged)
    gate = report["sources"][0]["gate"]

    assert list(gate) == ["all", "other", "plain"]
    assert (gate["all"]["said"], gate["all"]["quoted"], gate["all"]["said by a judge"]) == (0.3333, 0.3333, 0.6667)
    assert (gate["all"]["caught"], gate["all"]["passed by a lenient judge"]) == (0.5, 0.5)
    assert (gate["all"]["caught by a judge"], gate["all"]["quoted with a judge"]) == (0.5, 0.3333)
    assert gate["plain"]["caught"] is None
    assert "| a | plain | 2 | 0.500 | 0.500 | 1.000 | 0.500 | – |" in render_claim_tables([report])
