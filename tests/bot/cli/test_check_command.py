"""`footnote check`: verdicts of the real service, and invalid claims."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bot.cli.command_context import CliState
from bot.cli.entry_point import app
from tests.bot.fake_services import FakeServices
from tests.handbook import copy_home


def run(*arguments: str, services: FakeServices | None = None, typed: str = "") -> Result:
    invocation = CliState(services=services.build()) if services else None
    return CliRunner().invoke(app, arguments, obj=invocation, input=typed, prog_name="footnote")


@pytest.fixture(scope="module")
def home(handbook: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(copy_home(handbook, tmp_path_factory.mktemp("home")))


@pytest.mark.parametrize(("claim", "verdict", "quote"), [
    ("Ebbline costs 95 euros a month.", "SUPPORTS", "Ebbline costs 95 euros a month"),
    ("Ebbline costs 65 euros a month.", "REFUTES", "Ebbline costs 95 euros a month"),
    ("Ebbline was praised by the king of Norway.", "NOT ENOUGH INFO", ""),
    ("Der Zuschuss zum Deutschlandticket beträgt 50 Euro im Monat.", "REFUTES", "beträgt 30 Euro im Monat"),
])  # fmt: skip
def test_local_check_gives_the_verdict_without_a_model(
    claim: str, verdict: str, quote: str, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOOTNOTE_HOME", home)
    document = json.loads(run("check", claim, "--json").stdout)

    assert (document["claim"], document["verdict"]) == (claim, verdict)
    assert quote in "".join(shown["quote"] for shown in document["evidence"])
    assert document["reasoning"]
    shown = json.loads(run("audit", "show", document["answer_id"], "--json").stdout)
    assert shown["entries"][0]["body"]["task"] == "check"
    assert json.loads(run("audit", "verify", "--json").stdout)["findings"] == []


@pytest.mark.parametrize("claim", ["", "Is it?", "It is. It was."])
def test_invalid_claim_is_reported_in_one_line(claim: str, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOOTNOTE_HOME", home)
    result = run("check", claim, "--json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["kind"] == "not_a_claim"
    assert result.stderr.count("\n") == 1
