"""Small commands start fast: only the commands that need heavy modules import them."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from typer.testing import CliRunner

from bot.cli.entry_point import app
from tests.storage.stores import open_empty_database

HEAVY = ("chromadb", "openai", "onnxruntime", "markitdown", "tantivy", "tokenizers", "pandas", "lxml")
SCRIPT = """
import json, runpy, sys
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["footnote", *arguments]
    try:
        runpy.run_module("bot", run_name="__main__")
    except SystemExit as end:
        print(f"exit {end.code}", file=sys.stderr)
print(*sorted(sys.modules), file=sys.stderr)
"""


def _modules(here: Path, *commands: Sequence[str]) -> set[str]:
    command_line = [sys.executable, "-c", SCRIPT, json.dumps(commands)]
    done = subprocess.run(command_line, cwd=here, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr.count("exit 0") == len(commands), done.stderr
    return set(done.stderr.splitlines()[-1].split())


def test_init_and_version_load_no_heavy_modules(here: Path) -> None:
    assert not _modules(here, ["--version"], ["init"]) & {*HEAVY}


def test_help_imports_no_settings_and_no_command(here: Path) -> None:
    settings = {"bot.settings.tables.settings_tables", "pydantic", "sqlalchemy", "evaluation.cli"}
    commands = {"bot.cli.questions.question_commands", "bot.cli.corpora.ingest_commands"}

    assert not _modules(here, ["--help"]) & {*HEAVY, *settings, *commands}


def test_commands_that_read_the_record_load_no_indexes(here: Path) -> None:
    with open_empty_database(here / ".footnote"):
        pass

    assert not _modules(here, ["corpora"], ["audit", "list"], ["ingest", "status"]) & {*HEAVY}


def test_extractive_answer_does_not_load_the_model_client(here: Path) -> None:
    (here / "docs").mkdir()
    (here / "docs" / "quay.md").write_text("# Quay\n\nThe quay opens at seven.\n", encoding="utf-8")
    (here / "footnote.toml").write_text('system = "extractive"\n[model]\nname = "m"\napi_key = "k"\n', encoding="utf-8")
    assert CliRunner().invoke(app, ["ingest", "folder", "docs", "--corpus", "docs"]).exit_code == 0

    loaded = _modules(here, ["ask", "When does the quay open?"])
    assert "openai" not in loaded


def test_plugin_commands_are_loaded_when_named(here: Path) -> None:
    assert "evaluation.cli" in _modules(here, ["evaluate", "--help"])


def test_ctrl_c_during_import_shows_no_traceback(tmp_path: Path) -> None:
    script = """
import runpy, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "bot.cli.entry_point":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
runpy.run_module("bot", run_name="__main__")
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
