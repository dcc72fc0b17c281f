"""Sheets for people hide systems and verdicts; filled sheets are read and compared."""

import csv
from dataclasses import replace

import pytest

from evaluation import EvaluationError
from evaluation.dialogues.dialogue_types import Dialogue, DialogueTurn, JudgedClaim, JudgedTurn
from evaluation.dialogues.judging.agreement import JUDGE, measure_agreement
from evaluation.dialogues.judging.people_sheet import draw_rows, name_row, read_sheet, render_sheet
from storage.types import Verdict
from tests.evaluation.runs import TOPIC

TURNS = (DialogueTurn("How <old>?", "Very.", "answered"), DialogueTurn("=Why?", "It was built first.", "answered"))
DIALOGUE = Dialogue("secret-system/m/001", TOPIC, "secret-system", "m", "u", TURNS)
CLAIMS = tuple(JudgedClaim(f"Claim {n}.", Verdict.SUPPORTS, ("p",), "Hidden reason", ("A passage.",)) for n in range(3))
JUDGED = {(DIALOGUE.id, 1): JudgedTurn(CLAIMS, relevant=4), (DIALOGUE.id, 2): JudgedTurn(CLAIMS[:1], relevant=2)}


def test_sheet_rows_are_random_and_hide_system_and_verdict():
    claims, turns = draw_rows([DIALOGUE], JUDGED, 3, seed=1)
    assert (len(claims), len(turns)) == (3, 2)
    assert (claims, turns) == draw_rows([DIALOGUE], JUDGED, 3, seed=1)
    page = render_sheet(claims, turns)
    for shown in (str(claims), str(turns), page):
        assert "secret-system" not in shown
        assert "Hidden reason" not in shown
    assert all(row["verdict"] == "" for row in claims)
    assert "How &lt;old&gt;?" in page
    assert "How <old>" not in page
    assert "How <old>?\nChatbot: Very." in next(row for row in turns if row["user"] == "=Why?")["before"]
    assert not any(tag in page for tag in ("src=", "http", "@import"))


def write_sheet(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ("row", "verdict", "relevant"))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_filled_sheet_is_compared_with_the_judge(tmp_path):
    key = (DIALOGUE.id, 1)
    rows = [
        {"row": name_row(key, 0), "verdict": "supports", "relevant": ""},
        {"row": name_row(key, 1), "verdict": " not_enough info ", "relevant": ""},
        {"row": name_row(key), "verdict": "", "relevant": "4.0"},
        {"row": name_row((DIALOGUE.id, 2)), "verdict": "", "relevant": "1"},
    ]
    anna = read_sheet(write_sheet(tmp_path / "anna.csv", rows))
    judge = {
        (name_row(key, 0), "verdict"): "SUPPORTS",
        (name_row(key, 1), "verdict"): "SUPPORTS",
        (name_row(key), "relevant"): 4,
        (name_row((DIALOGUE.id, 2)), "relevant"): 2,
    }
    agreement = {column.column: column for column in measure_agreement({JUDGE: judge, "anna": anna})}
    assert {name: (column.rows, column.alike, column.kappa) for name, column in agreement.items()} == {
        "verdict": (2, 1, 0.0),
        "relevant": (2, 1, pytest.approx(1 / 3)),
    }


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"row": "a", "verdict": "TRUE"}, "has the verdict 'TRUE'"),
        ({"row": "a", "relevant": "6"}, "has '6' for relevant"),
        ({"row": "a", "relevant": "good"}, "has 'good' for relevant"),
    ],
)
def test_invalid_label_is_reported_with_its_row(tmp_path, row, fault):
    with pytest.raises(EvaluationError, match=f"row 2 of .*anna.csv {fault}"):
        read_sheet(write_sheet(tmp_path / "anna.csv", [row]))


def test_sheet_with_semicolons_is_read(tmp_path):
    (tmp_path / "anna.csv").write_text('row;claim;verdict\na;"One, two; three";SUPPORTS\n')
    assert read_sheet(tmp_path / "anna.csv") == {("a", "verdict"): "SUPPORTS"}


def test_passages_are_lettered_unlike_citations():
    (row, *_), _ = draw_rows([DIALOGUE], JUDGED, 3, seed=1)
    assert row["passages"] == "(a) A passage."


def test_invalid_sheet_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    with pytest.raises(EvaluationError, match="is not a sheet"):
        read_sheet(tmp_path / "a.csv")
    with pytest.raises(EvaluationError, match="cannot be read"):
        read_sheet(tmp_path / "missing.csv")


def test_model_alone_is_in_the_sheets():
    alone = replace(DIALOGUE, turns=(replace(TURNS[0], status="unchecked"),))
    claims, turns = draw_rows([alone], JUDGED, 9, seed=1)
    assert (len(claims), len(turns)) == (3, 1)
