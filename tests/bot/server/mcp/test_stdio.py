"""Tests of `footnote mcp` as a process with the official client, and of the command that makes tokens."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from bot.settings.tables.network_settings import digest_token, format_token_line
from tests.bot.server.mcp.programs import call
from tests.bot.server.server import ROOT, run, run_json

CORPUS = '[[corpus]]\nname = "handbook"\nvisible_to = ["mcp:tokens/anna"]\n'


def test_stdio_client_gets_readable_corpora(here: Path) -> None:
    """All tools are called over real pipes, where any output outside the protocol would break the client."""
    line = format_token_line("anna", (), "t" * 43)
    (here / "footnote.toml").write_text(f'[mcp]\ntokens = ["{line}"]\n{CORPUS}', encoding="utf-8")
    (here / "docs").mkdir()
    (here / "docs" / "page.md").write_text("# Harbour\n\nThe quay opens at seven.\n", encoding="utf-8")
    run_json("ingest", "folder", "docs", "--corpus", "handbook")
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    command = ["-W", "error", "-m", "bot", "mcp", "--as", "anna"]
    started = StdioServerParameters(command=sys.executable, args=command, env=environment, cwd=here)

    async def ask() -> list[tuple[str, Any]]:
        async with Client(stdio_client(started)) as client:
            return await asyncio.gather(
                call(client, "ask", question="When does the quay open?"),
                call(client, "check", claim="The quay opens at seven."),
                call(client, "search", query="quay"),
                call(client, "sources"),
            )

    (text, said), (_, verdict), (_, found), (_, corpora) = asyncio.run(ask())
    assert said["status"] == "answered"
    assert "The quay opens at seven. [1]" in text
    assert verdict["verdict"] == "SUPPORTS"
    assert [item["name"] for item in corpora["corpora"]] == ["handbook"]
    assert {item["corpus"] for item in found["passages"]} == {"handbook"}
    listed = run_json("audit", "list")["turns"]
    assert {(item["asker"], item["answer_id"]) for item in listed} == {
        ("mcp:tokens/anna", said["answer_id"]),
        ("mcp:tokens/anna", verdict["answer_id"]),
    }


def test_name_without_a_token_is_refused(here: Path) -> None:
    del here
    done = run("mcp", "--as", "eve")

    assert done.exit_code == 1
    assert "footnote mcp token NAME" in done.stderr


def test_new_token_is_shown_once_with_its_settings_line() -> None:
    made = run_json("mcp", "token", "anna", "--group", "editors")
    shown = run("mcp", "token", "anna", "--group", "editors")

    assert made["line"] == f"anna editors sha256:{digest_token(made['token'])}"
    assert json.dumps(made).count(made["token"]) == 1
    assert max(map(len, shown.stdout.split())) >= 64  # the digest is not broken, however narrow the terminal
    assert all(
        words in shown.stdout for words in ('"mcp:tokens/anna" or "mcp:groups/editors"', "enabled = true", "restart")
    )
    assert run("mcp", "token", "a b").exit_code == 2


@pytest.mark.parametrize("stdin", ["", "not json\n"])
def test_mcp_command_ends_when_stdin_closes(stdin: str) -> None:
    done = run("mcp", typed=stdin)

    assert done.exit_code == 0
