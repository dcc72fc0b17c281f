"""The example record is valid, and the guide's commands find their turns in it."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bot.cli.command_context import CliState
from bot.cli.entry_point import app
from tools.example_record import fill

GUIDE = Path(__file__).parents[2] / "docs" / "audit.md"
ASKED = re.findall(r"^    \$ footnote (audit .*)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    fill(folder)
    return folder


def run(home: Path, line: str) -> Result:
    arguments = [argument.strip("'") for argument in re.findall(r"'[^']*'|\S+", line)]
    return CliRunner().invoke(app, arguments, obj=CliState(), prog_name="footnote", env={"FOOTNOTE_HOME": str(home)})


def test_guide_has_commands() -> None:
    assert len(ASKED) == 3


@pytest.mark.parametrize("line", ASKED)
def test_guide_output_is_printed(home: Path, line: str) -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    shown = guide.partition(f"    $ footnote {line}\n")[2]
    lines = re.match(r"(?:    (?!\$ ).*\n|\n(?=    (?!\$ )))*", shown)
    expected = [expected_line.removeprefix("    ").rstrip() for expected_line in lines[0].splitlines()] if lines else []
    printed = run(home, line).stdout.splitlines()

    left = iter(printed)
    assert expected
    assert all(expected_line in left for expected_line in expected if expected_line != "..."), "\n".join(printed)
