"""The demonstration, as `make demo` runs it without a terminal."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bot.settings.settings_reader import load_settings
from bot.wiring import open_records
from examples.scripted_model import CLAIMS, LABEL, REFUTED, SUPPORTED, UNKNOWN
from storage.record.proof.verification import verify_turn
from storage.types import Verdict
from tests.thorough import thorough_only

EXAMPLES = Path(__file__).parents[2] / "examples"
PAGE = Path("examples", "handbook", "operations", "travel-2026.md")


def _run(folder: Path, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AZURE_"))}
    command = [sys.executable, "-m", "examples.demo"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _copied(folder: Path) -> Path:
    shutil.copytree(EXAMPLES, folder / "examples")
    return folder


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Run it once without a configured model; return its output and home."""
    folder = _copied(tmp_path_factory.mktemp("demo"))
    return _run(folder), folder


def test_demo_answers_from_the_handbook(shown: tuple[str, Path]) -> None:
    printed, folder = shown

    newer, older = (printed.index(text) for text in ("45 euros a day. [1]", "38 euros a day. [2]"))
    assert newer < older
    assert "ingest all" in printed
    assert "Try next: " in printed.splitlines()[-1]
    assert (folder / ".demo" / "footnote.db").exists()


def test_scripted_turn_labels_every_part(shown: tuple[str, Path]) -> None:
    printed, _ = shown
    events, answer, claims, calls = printed.split(f"[{LABEL}]")[1:]

    assert "Findings: 3. Drafting" in events
    assert "[1] Travel rules 2026 › Hotels" in answer
    assert all(verdict in claims for verdict in ("SUPPORTS (model)", "REFUTES (model)", "NOT ENOUGH INFO (model)"))
    assert calls.count(LABEL) == calls.count("tokens") == 12


async def test_scripted_turn_shows_only_supported_claims(shown: tuple[str, Path]) -> None:
    async with open_records(load_settings(shown[1] / "examples" / "demo.toml")) as records:
        turns = await records.audit.turns(2)
        entries = await records.audit.turn(turns[0][0].turn_id)
    closed = entries[-1].body
    claimed = {one["claim"]["text"]: one["verdict"] for one in closed["claims"] if one["claim"]["origin"] == "model"}
    said = [one["text"] for one in closed["sentences"]]

    assert claimed == {SUPPORTED: "SUPPORTS", REFUTED: "REFUTES", UNKNOWN: "NOT ENOUGH INFO"}
    assert {one.verdict for one in CLAIMS.values()} == set(Verdict)
    assert SUPPORTED in said
    assert len(said) == 2
    assert not any("120" in text or "oyalty" in text for text in said)
    assert (entries[0].body["model"], closed["model"], closed["system"]) == (LABEL, LABEL, "wikichat")
    assert verify_turn(entries) == ()


@thorough_only
def test_changed_handbook_is_reported(tmp_path: Path) -> None:
    page = _copied(tmp_path) / PAGE
    page.write_text(page.read_text(encoding="utf-8").replace("140 euros", "150 euros"), encoding="utf-8")

    printed = _run(tmp_path)

    assert "Skipped: the handbook is not the one that this was written for" in printed
    assert printed.count(LABEL) == 1
    assert "REFUTES" not in printed


@thorough_only
def test_demo_does_not_call_a_configured_model(shown: tuple[str, Path], tmp_path: Path) -> None:
    variables = {"OPENAI_API_KEY": "k", "OPENAI_MODEL": "some-model", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}

    printed = _run(shutil.copytree(shown[1], tmp_path / "again"), **variables)

    assert "A model is configured (some-model) and was not called so far." in printed
    assert "45 euros a day. [1]" in printed
    assert LABEL not in printed
