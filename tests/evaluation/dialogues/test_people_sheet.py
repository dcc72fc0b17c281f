"""Sheets for people hide systems and verdicts; filled sheets are read and compared."""

import csv
import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from evaluation import EvaluationError
from evaluation.cli import app
from evaluation.dialogues.dialogue_types import Dialogue, DialogueTurn, JudgedClaim, JudgedTurn
from evaluation.dialogues.judging import people_sheet
from evaluation.dialogues.judging.agreement import JUDGE, measure_agreement, take_vote
from evaluation.dialogues.judging.people_sheet import draw_rows, list_checks, name_row, read_sheet
from evaluation.dialogues.run_folder import RunFolder
from evaluation.reports.run_report import build_figures
from storage.types import Verdict
from tests.evaluation.runs import MANIFEST, TOPIC

TURNS = (DialogueTurn("How <old>?", "Very.", "answered"), DialogueTurn("=Why?", "It was built first.", "answered"))
DIALOGUE = Dialogue("secret-system/m/001", TOPIC, "secret-system", "m", "u", TURNS)
CLAIMS = tuple(JudgedClaim(f"Claim {n}.", Verdict.SUPPORTS, ("p",), "Hidden reason", ("A passage.",)) for n in range(3))
JUDGED = {(DIALOGUE.id, 1): JudgedTurn(CLAIMS, relevant=4), (DIALOGUE.id, 2): JudgedTurn(CLAIMS[:1], relevant=2)}


def test_sheet_rows_are_random_and_hide_system_and_verdict():
    claims, turns = draw_rows([DIALOGUE], JUDGED, 3, seed=1)
    assert (len(claims), len(turns)) == (3, 2)
    assert (claims, turns) == draw_rows([DIALOGUE], JUDGED, 3, seed=1)
    page = people_sheet.render_sheet(claims, turns, 1)
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
    dialogues = {row: DIALOGUE.id for row, _ in judge}
    agreement = {column.column: column for column in measure_agreement({JUDGE: judge, "anna": anna}, dialogues)}
    assert {name: (column.rows, column.alike, column.alpha.value) for name, column in agreement.items()} == {
        "verdict": (2, 1, 0.0),
        "relevant": (2, 1, pytest.approx(0.4)),
    }


@pytest.mark.parametrize(("column", "label"), [("verdict", "TRUE"), ("relevant", "6"), ("relevant", "good")])
def test_invalid_label_is_reported_with_its_row(tmp_path, column, label):
    with pytest.raises(EvaluationError, match=f"row 2 of .*anna.csv has .*'{label}'"):
        read_sheet(write_sheet(tmp_path / "anna.csv", [{"row": "a", column: label}]))


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


OTHER = replace(DIALOGUE, id="secret-system/m/002", topic=replace(TOPIC, title="Ferry"))
FERRY = tuple(replace(claim, passages=("Ferry\nThe ferry leaves at nine.",)) for claim in CLAIMS)
TWO_TOPICS = {**JUDGED, (OTHER.id, 1): JudgedTurn(FERRY, relevant=3)}


def test_checks_have_a_known_verdict_and_look_like_claims():
    claims, _ = draw_rows([DIALOGUE, OTHER], TWO_TOPICS, 3, seed=1)
    checks = {row["row"]: row for row in people_sheet.plant_checks([DIALOGUE, OTHER], TWO_TOPICS, claims, 1)}
    known = {row: verdict for (row, _), verdict in list_checks(TWO_TOPICS).items() if row in checks}
    assert sorted(known.values()) == ["NOT ENOUGH INFO"] * 2 + ["SUPPORTS"] * 2
    for row, verdict in known.items():
        assert checks[row].keys() == claims[0].keys()
        assert (checks[row]["claim"] in checks[row]["passages"]) == (verdict == "SUPPORTS")
        assert checks[row]["claim"] in checks[row]["said"] or verdict != "SUPPORTS"
    places = [(key, at) for key, judged in TWO_TOPICS.items() for at in range(len(judged.claims))]
    drawn = [place for place in places if name_row(*place) in {row["row"] for row in claims}]
    assert len(drawn) == 3
    assert not checks.keys() & {name_row(*place, verdict) for place in drawn for verdict in Verdict}


def test_vote_takes_majority_and_adjudicator_settles_ties_and_lack_of_information():
    votes = {"a": "SSN", "b": "SN", "c": "NR", "d": "S", "e": "SNR", "f": "SR", "g": "NNS", "h": "NN"}
    full = {"S": "SUPPORTS", "N": "NOT ENOUGH INFO", "R": "REFUTES"}
    sheets = [{(row, "verdict"): full[given[at]] for row, given in votes.items() if at < len(given)} for at in range(3)]
    adjudicated = {(row, "verdict"): full[label] for row, label in {"f": "S", "a": "R", "h": "S"}.items()}
    vote, left = take_vote(sheets, adjudicated)
    assert {row: verdict[0] for (row, _), verdict in vote.items()} == dict(zip("abcefgh", "SNRRSNS", strict=True))
    assert {row for row, _ in left} == {*"bcefgh"}


def test_careless_rater_is_dropped_and_the_vote_becomes_a_column_of_the_report(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.write_manifest(MANIFEST)
    for talk in (DIALOGUE, OTHER):
        folder.append_turn(replace(talk, turns=()), TURNS[0])
        folder.append_judgement((talk.id, 1), TWO_TOPICS[talk.id, 1])

    def call(name, *words):
        return CliRunner().invoke(app, [name, str(folder.path), *map(str, words)])

    def measure():
        return {row["measure"]: (row["value"], row["count"]) for row in build_figures(folder)}

    assert call("sheet", "--count", 4).exit_code == 0
    orders = {(folder.path / f"sheet-claims-{place}.csv").read_text() for place in (1, 2, 3)}
    assert len(orders) == 3
    checks, sheets = list_checks(folder.read_judgements()), []
    for place, name in enumerate(("anna", "ben", "careless"), start=1):
        with (folder.path / f"sheet-claims-{place}.csv").open(newline="") as file:
            rows = sorted(row["row"] for row in csv.DictReader(file))
        labels = dict.fromkeys(rows, "SUPPORTS")
        if name != "careless":
            labels |= dict.fromkeys([row for row in rows if (row, "verdict") not in checks][:place], "REFUTES")
            labels |= {row: checks[row, "verdict"] for row in rows if (row, "verdict") in checks}
        filled = [{"row": row, "verdict": label} for row, label in labels.items()]
        sheets.append(write_sheet(tmp_path / f"{name}.csv", filled))
    assert json.loads(call("agreement", *sheets, "--json").stdout)["dropped"] == ["careless"]
    report = (folder.path / "report.md").read_text()
    assert "Dropped: careless (2 of 4 checks failed)" in report
    assert "| Factual, by people | the same claims | all claims |" in report
    assert measure() | {"factual_people": (0.5, 4), "factual_sample": (1, 4), "factual": (1, 6)} == measure()

    with (folder.path / "sheet-ties.csv").open(newline="") as file:
        (tie,) = csv.DictReader(file)
    write_sheet(folder.path / "sheet-ties.csv", [{"row": tie["row"], "verdict": "SUPPORTS"}])
    assert "1 tie or lack of information, 1 adjudicated" in call("agreement", *sheets).stdout
    assert measure()["factual_people"] == (0.75, 4)
    assert call("agreement", sheets[0]).exit_code == 0
    assert "factual_people" not in measure()  # one rater is no vote
