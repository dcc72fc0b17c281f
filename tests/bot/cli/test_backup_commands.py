"""`footnote backup` and `restore`: a restored home answers the same, and a backup contains no secret."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.bot.server.server import run, run_json
from tests.handbook import copy_home

SECRETS = {"OPENAI_API_KEY": "from-the-environment", "FOOTNOTE_SLACK__BOT_TOKEN": "xoxb-1-from-a-variable"}
SETTINGS = """
timezone = "Europe/Berlin"
[chroma]
token = "said-in-the-file"
[[corpus]]
name = "handbook"
visible_to = ["slack:T1/C1"]
"""


def told_answer() -> Any:
    reply = run_json("ask", "How many days of leave do I get?", "--system", "extractive")
    return [reply[name] for name in ("status", "text", "citations")]


def test_restored_home_gives_the_same_answers_and_has_no_secret(
    handbook: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_home(handbook, here / ".footnote")
    (here / "footnote.toml").write_text(SETTINGS + '[model]\nname = "m"\napi_key = "sk-said-in-the-file-too"\n')
    before = told_answer()
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    (here / "kept").mkdir()
    made = run_json("backup", "kept")
    assert made["counts"]["passages"] > 0
    assert stat.S_IMODE(Path(made["file"]).stat().st_mode) == 0o600
    content = Path(made["file"]).read_bytes()
    for secret in (*SECRETS.values(), "said-in-the-file", "sk-said-in-the-file-too"):
        assert secret.encode() not in content

    back = run_json("restore", made["file"], "--home", "new")
    assert back["record"]["findings"] == []
    assert back["indexed"]["passages"] == made["counts"]["passages"]
    assert 'visible_to = ["slack:T1/C1"]' in (here / "new" / "footnote.toml.restored").read_text()
    monkeypatch.setenv("FOOTNOTE_HOME", str(here / "new"))
    assert told_answer() == before
    assert json.loads(run("restore", made["file"], "--json").stdout)["error"]["kind"] == "home_unusable"


@pytest.mark.parametrize(("arguments", "message"), [
    (["backup", "nowhere/b.tar"], "Make that folder, or name a file in another folder."),
    (["backup", "footnote.toml/b.tar"], "Move that file away, or name a file in another folder."),
    (["backup", "x" * 300 + "/b.tar"], "or name a file in another folder."),
    (["restore", "nowhere.tar"], "There is no file nowhere.tar."),
])  # fmt: skip
def test_invalid_path_is_reported_before_work_starts(
    handbook: Path, here: Path, arguments: list[str], message: str
) -> None:
    copy_home(handbook, here / ".footnote")
    (here / "footnote.toml").write_text("")
    result = run(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "FOOTNOTE_HOME" not in result.stderr
    assert "started" not in result.stderr


@pytest.mark.parametrize("command", ["backup", "restore"])
@pytest.mark.usefixtures("here")
def test_postgresql_database_is_neither_backed_up_nor_restored(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("FOOTNOTE_DATABASE", "postgresql://user:hidden@example.com/footnote")
    result = run(command, "a.tar")
    assert result.exit_code == 1
    assert "pg_dump" in result.stderr
    assert "hidden" not in result.output
