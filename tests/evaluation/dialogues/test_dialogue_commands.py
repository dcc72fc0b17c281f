"""One command holds dialogues, judges them and writes the report; it asks before it spends money."""

import csv
import json

import pytest
from typer.testing import CliRunner

from bot.cli.entry_point import app
from tests.handbook import copy_home


@pytest.fixture
def run(handbook, tmp_path):
    copy_home(handbook, tmp_path / "home")
    settings = tmp_path / "footnote.toml"
    settings.write_text(f'home = "{tmp_path}/home"\n')

    def call(*arguments, more=""):
        settings.write_text(f'home = "{tmp_path}/home"\n{more}')
        return CliRunner().invoke(app, ["--config", str(settings), "evaluate", *arguments], prog_name="footnote")

    return call


def test_dialogues_command_writes_report_and_sheets_and_reports_incomplete_runs(run, tmp_path):
    (tmp_path / "topics").write_text("Annual leave\n")
    topics, folder = str(tmp_path / "topics"), str(tmp_path / "run")
    arguments = ["dialogues", "--system", "extractive", "--alone", "--topics", topics, "--turns", "1", "--out", folder]
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    assert "rules replace a model: the judge" in done.stderr
    assert {file.name for file in (tmp_path / "run").iterdir()} >= {"run.json", "report.html", "judgements.jsonl"}
    assert run("sheet", str(tmp_path / "run")).exit_code == 0
    with (tmp_path / "run" / "sheet-claims-3.csv").open(newline="") as file:
        rows = [{**row, "verdict": "supports"} for row in csv.DictReader(file)]
    with (tmp_path / "anna.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    report = json.loads(run("agreement", str(tmp_path / "run"), str(tmp_path / "anna.csv"), "--json").stdout)
    (compared,) = report["agreement"]
    assert (compared["column"], 0 < compared["rows"] < len(rows)) == ("verdict", True)  # less the planted checks
    empty = run("agreement", str(tmp_path / "run"), str(tmp_path / "run" / "sheet-turns-3.csv"))
    assert empty.exit_code == 1
    assert "There is no judgement in sheet-turns-3" in empty.stderr

    lines = tmp_path / "run" / "dialogues.jsonl"
    lines.write_text("".join(lines.read_text().splitlines(keepends=True)[1:]))
    lacking = run("judge", str(tmp_path / "run"))
    assert lacking.exit_code == 1
    assert "1 of 2 turns were not held" in lacking.stderr
    assert "The run is not whole" in (tmp_path / "run" / "report.md").read_text()
    expected = json.loads(run(*arguments, "--estimate", "--json").stdout)["expected"]
    assert expected["calls"] == round(expected["calls"], 4)
    (tmp_path / "run" / "run.json").rename(tmp_path / "kept.json")
    lost = run(*arguments)
    assert lost.exit_code == 1
    assert "whose run.json is missing" in lost.stderr
    (tmp_path / "kept.json").rename(tmp_path / "run" / "run.json")
    assert run(*arguments).exit_code == 0
    assert len(lines.read_text().splitlines()) == 2


def test_expensive_run_asks_for_confirmation(run, tmp_path):
    model = '[model]\nname = "m"\nbase_url = "http://127.0.0.1:9"\n[model.prices.m]\nprompt = 1000\ncompletion = 1000\n'
    arguments = ["dialogues", "--count", "1", "--turns", "1", "--out", str(tmp_path / "run")]
    estimate = run(*arguments, "--estimate", more=model)
    assert estimate.exit_code == 0
    assert "it costs" in estimate.stderr
    stood_in = run(*arguments, "--user", "stand-in", "--judge", "stand-in", more=model.replace("= 1000", "= 100000"))
    assert "That is more than [evaluation] ask_above" in stood_in.stderr, stood_in.stderr
    refused = run(*arguments, more=model)
    assert refused.exit_code == 1
    assert "Nothing was changed" in refused.stderr, refused.stderr
    assert not (tmp_path / "run").exists()
