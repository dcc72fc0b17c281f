"""`footnote doctor` at the command line: what it prints, and how it fails."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bot.cli.command_context import CliState
from bot.cli.entry_point import app
from pipeline.errors import ModelUnavailable
from tests.bot.doctor.gold import GoldLLM, opens
from tests.bot.fake_services import FakeServices

MODEL = '[model]\nname = "gold"\nbase_url = "http://127.0.0.1:1/v1"\n'
SEVEN = f'system = "wikichat"\n{MODEL}'


def run(*arguments: str, llm: GoldLLM | None = None, settings: str = MODEL) -> Result:
    Path("footnote.toml").write_text(settings, encoding="utf-8")
    services = replace(FakeServices().build(), open_model=opens(llm or GoldLLM()))
    return CliRunner().invoke(app, ("doctor", *arguments), obj=CliState(services=services), prog_name="footnote")


@pytest.mark.parametrize(("settings", "kinds"), [
    (SEVEN, ("query", "summarise", "generate", "split", "verify", "draft", "feedback", "refine")),
    (MODEL, ("query", "bullets", "claims", "verify", "verdicts", "answer")),
])  # fmt: skip
def test_model_report_has_tables_for_each_kind_of_call(settings: str, kinds: tuple[str, ...]) -> None:
    result = run("--model", "--limit", "2", settings=settings)

    assert result.exit_code == 0
    assert "gold at 127.0.0.1:1, 8 calls at once" in result.stdout
    for kind in kinds:
        assert f"\n{kind} " in result.stdout
    assert "called NOT ENOUGH INFO" in result.stdout
    assert "an answer takes about " in result.stdout
    assert "there is nothing to change." in result.stdout
    assert "doctor: started" in result.stderr


def test_model_report_as_json_has_all_figures() -> None:
    document = json.loads(run("--model", "--stage", "verify", "--json").stdout)
    (way,) = document["ways"]
    verify = way["kinds"]["verify"]

    assert document["schema"] == 1
    assert (document["model"], document["server"]) == ("gold", "127.0.0.1:1")
    assert (document["advice"], document["settings"], document["turn_seconds"]) == ([], [], None)
    assert (way["way"], way["offered"], way["cut_short"]) == ("as set", True, {})
    assert (verify["cases"], verify["right"], verify["prompt_tokens"]) == (30, 30, 42_000)
    assert {"expected": "REFUTES", "given": "REFUTES", "count": 10} in verify["verdicts"]
    assert set(verify["seconds"]) == {"median", "p95"}


def test_advice_is_followed_by_lines_for_the_settings() -> None:
    result = run("--model", "--stage", "verify", llm=GoldLLM(_agreeing), settings=SEVEN)

    assert "verdicts are right; of 40 claims without support" in result.stdout
    assert '    [model]\n    stages = { verify = { name = "NAME OF A STRONGER MODEL" } }' in result.stdout


@pytest.mark.parametrize(("settings", "arguments", "status", "message"), [
    ("", ["--model"], 1, "No model is configured"),
    (f"{MODEL}student = true", ["--model", "--stage", "refine"], 1, "makes no model calls at this stage"),
    (MODEL, ["--model", "--stage", "revise"], 2, "There is no stage 'revise'; there are: query"),
    (MODEL, ["--model", "--limit", "0"], 2, "--limit"),
    (MODEL, ["--compare"], 2, "add --model"),
    (MODEL, ["--stage", "verify"], 2, "add --model"),
])  # fmt: skip
def test_examination_without_model_or_calls_is_refused(
    settings: str, arguments: list[str], status: int, message: str
) -> None:
    result = run(*arguments, settings=settings)

    assert (result.exit_code, result.stdout) == (status, "")
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_model_without_replies_is_reported_in_one_line() -> None:
    gone = ModelUnavailable("the model server does not accept the key (401)", hint="check api_key of the model")
    result = run("--model", llm=GoldLLM(lambda *_: gone))
    document = json.loads(run("--model", "--json", llm=GoldLLM(lambda *_: gone)).stdout)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == (
        "footnote: the model server does not accept the key (401) — check api_key of the model"
    )
    assert document["error"]["kind"] == "model_unavailable"


@pytest.mark.parametrize("first", [0, 20])
def test_ctrl_c_prints_the_measurements_so_far(first: int) -> None:
    result = run("--model", "--stage", "split", "--json", llm=GoldLLM(stopped_after=first), settings=SEVEN)

    assert result.exit_code == 130
    assert "stopped" in result.stderr
    if not first:
        assert result.stdout == ""
    else:
        split = json.loads(result.stdout)["ways"][0]["kinds"]["split"]
        assert (split["cases"], split["right"]) == (20, 20)


FREE_PORT = "[http]\nport = 0\n"


def test_doctor_prints_a_line_per_check_and_creates_nothing() -> None:
    result = run(settings=FREE_PORT)
    lines = result.stdout.splitlines()

    assert result.exit_code == 0
    assert lines[0] == "ok    Settings: footnote.toml can be read."
    assert all(line.startswith("ok    ") for line in lines)
    assert len(lines) >= 10
    assert not Path(".footnote").exists()


def test_failed_check_exits_with_1() -> None:
    Path(".footnote").mkdir()
    Path(".footnote/footnote.db").write_bytes(b"garbage" * 4_000)
    result = run(settings=FREE_PORT)
    (failed,) = [line for line in result.stdout.splitlines() if line.startswith("FAIL")]

    assert result.exit_code == 1
    assert "damaged" in failed
    assert failed.endswith("Restore it from a backup, or move the whole folder away and ingest again.")
    assert "ok    Port: " in result.stdout


@pytest.mark.parametrize(("settings", "healthy", "level", "message"), [
    (FREE_PORT, True, "ok", "Settings: footnote.toml can be read."),
    ("timezon = 'UTC'", False, "fail", "footnote.toml, line 1: there is no setting `timezon`."),
    ("timezone = ", False, "fail", "footnote.toml is not valid TOML"),
])  # fmt: skip
def test_results_as_json_have_level_text_and_hint(settings: str, *, healthy: bool, level: str, message: str) -> None:
    result = run("--json", settings=settings)
    document = json.loads(result.stdout)

    assert (document["schema"], document["healthy"], result.exit_code) == (1, healthy, 0 if healthy else 1)
    assert document["findings"][0]["level"] == level
    assert message in document["findings"][0]["what"]
    assert all(set(finding) == {"level", "what", "hint"} for finding in document["findings"])


@pytest.mark.parametrize("broken", ["timezon = 'UTC'", "timezone = ", "[slack]\nmod = 'http'"])
def test_swapped_tokens_and_exposed_secrets_are_found_with_an_invalid_file(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xapp-1-A1-2-hush")
    Path("footnote.env").touch(mode=0o644)
    findings = json.loads(run("--json", settings=broken).stdout)["findings"]

    assert [finding["level"] for finding in findings] == ["fail", "fail", "warn", "skip"]
    assert "SLACK_BOT_TOKEN holds an app token" in findings[1]["what"]
    assert "footnote.env" in findings[2]["what"]
    assert "hush" not in str(findings)


def _agreeing(*_: Any) -> str:
    return "Reasoning: Sure.\nSentences: 1\nVerdict: SUPPORTS"
