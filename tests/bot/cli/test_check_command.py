"""`footnote check`: what it asks of the house, what it prints, and that it works on the real one."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bot.cli.command_context import CliState
from bot.cli.entry_point import app
from pipeline.types import Answer, AnsweredSentence, Status
from storage.types import CheckedClaim, Claim, Verdict, VerdictReason
from tests.bot.cli.commands import NO_MODEL_USED
from tests.bot.fake_services import FakeServices, answered, citation
from tests.handbook import copy_home

CLAIM = "The quay opens at eight."


DIFFERENT = VerdictReason("contradicted", ("eight", "seven"))


def found(*because: VerdictReason, reasoning: str = "says “eight”; the passage says “seven”") -> Any:
    checked = CheckedClaim(Claim(CLAIM, origin="user"), Verdict.REFUTES, ("p1",), reasoning, because=because)
    said = Answer(
        Status.ANSWERED, (AnsweredSentence("The quay opens at seven.", (1,)),), (citation(),), claims=(checked,)
    )
    return answered(answer=said, text=f"REFUTES: {reasoning}")


def run(*arguments: str, house: FakeServices | None = None, typed: str = "") -> Result:
    invocation = CliState(services=house.doors()) if house else None
    return CliRunner().invoke(app, arguments, obj=invocation, input=typed, prog_name="footnote")


def test_a_verdict_is_shown_with_why_and_its_evidence() -> None:
    house = FakeServices(answer=found(DIFFERENT))
    result = run("check", CLAIM, "--corpus", "handbook", "--system", "extractive", house=house)

    assert result.exit_code == 0
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        "REFUTES  The quay opens at eight.",
        "It says “eight”; the documents say “seven”.",
        "",
        "[1] Harbour › Hours · 2026-03-01",
        "    https://example.com/harbour.md",
        "    “The quay opens at seven.”",
    ]
    (asked,) = house.asked
    assert (asked.text, asked.corpora, asked.system) == (CLAIM, ("handbook",), "extractive")


def test_as_json_it_is_the_document_of_the_contract() -> None:
    document = json.loads(
        run("check", "-", "--json", house=FakeServices(answer=found(DIFFERENT)), typed=f"{CLAIM}\n").stdout
    )

    assert document == {
        "schema": 1,
        "answer_id": "abc123",
        "claim": CLAIM,
        "verdict": "REFUTES",
        "reasoning": "says “eight”; the passage says “seven”",
        "evidence": [
            {
                "title": "Harbour",
                "url": "https://example.com/harbour.md",
                "quote": "The quay opens at seven.",
                "passage_id": "p1",
            }
        ],
        "system": "extractive",
        "model": None,
        "usage": NO_MODEL_USED,
        "seconds": 0.25,
    }


def test_what_a_model_reasons_is_not_shown() -> None:
    house = FakeServices(answer=found(reasoning="\x1b[2JAsk @channel, see https://evil.example [1]"))
    shown = run("check", CLAIM, house=house).stdout
    document = json.loads(run("check", CLAIM, "--json", house=house).stdout)

    assert document["reasoning"] == "The documents say otherwise: “The quay opens at seven.”"
    assert document["reasoning"] in shown
    assert not any(word in shown for word in ("@channel", "evil", "\x1b"))


@pytest.fixture(scope="module")
def home(handbook: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(copy_home(handbook, tmp_path_factory.mktemp("home")))


@pytest.mark.parametrize(
    ("claim", "verdict", "quote"),
    [
        ("Ebbline costs 95 euros a month.", "SUPPORTS", "Ebbline costs 95 euros a month"),
        ("Ebbline costs 65 euros a month.", "REFUTES", "Ebbline costs 95 euros a month"),
        ("Ebbline was praised by the king of Norway.", "NOT ENOUGH INFO", ""),
        ("Der Zuschuss zum Deutschlandticket beträgt 50 Euro im Monat.", "REFUTES", "beträgt 30 Euro im Monat"),
    ],
)
def test_without_a_model_the_local_check_judges(
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
def test_what_is_no_claim_is_one_plain_line(claim: str, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOOTNOTE_HOME", home)
    result = run("check", claim, "--json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["kind"] == "not_a_claim"
    assert result.stderr.count("\n") == 1
