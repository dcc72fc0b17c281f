"""`footnote setup` as a command: the files it writes, and the next steps."""

import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bot.cli.command_context import CliState
from bot.cli.entry_point import app
from bot.cli.setup.setup_choices import PlatformChoice, SetupChoices
from bot.cli.setup.setup_command import RELOAD, SERVE, list_next_steps
from bot.settings.platform_registry import load_platforms
from bot.settings.settings_reader import load_settings
from ingest.types import RefreshReport
from storage.home.home_folder import lock_home
from tests.bot.fake_services import FakeServices
from tests.bot.setup.terminals import STOP, ScriptedTerminal

FOLDER = ["handbook", "", "", ""]
ALL = [*FOLDER, "4", "", "", ""]  # no platform, no model, go on, the suggested question


@pytest.fixture(autouse=True)
def _folder() -> Iterator[None]:
    Path("handbook").mkdir()
    Path("handbook/leave.md").write_text("# Leave\n\nEverybody has 27 days.\n", encoding="utf-8")
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def list_files() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


def run(
    answers: Sequence[str], *arguments: str, services: FakeServices | None = None
) -> tuple[Result, ScriptedTerminal]:
    terminal = ScriptedTerminal(answers)
    services = replace((services or FakeServices()).build(), open_terminal=lambda _: terminal)
    state = CliState(services=services)
    return CliRunner().invoke(app, ("setup", *arguments), obj=state, prog_name="footnote"), terminal


def test_setup_ends_with_an_answer() -> None:
    services = FakeServices()
    result, terminal = run([*ALL[:-1], "When does the quay open?"], services=services)
    settings = load_settings()

    assert result.exit_code == 0
    assert [(row.name, row.visible_to) for row in settings.corpus] == [("handbook", ())]
    assert settings.schedule.nightly == "03:00"
    assert Path("footnote-record.key").exists()
    assert [str(source["path"]) for source in services.sources] == [str(Path("handbook").absolute())]
    assert [asked.text for asked in services.asked] == ["When does the quay open?"]
    assert "The quay opens at seven. [1]" in result.stdout
    assert terminal.screen.index("What happens now") < terminal.screen.index("footnote.toml: written")
    assert "footnote chat" in terminal.screen


@pytest.mark.parametrize("at", range(7))
def test_ctrl_c_at_any_question_changes_nothing(at: int) -> None:
    result, terminal = run([*ALL[:at], STOP])

    assert (result.exit_code, terminal.lines[-1]) == (130, "Nothing was written.")
    assert list_files() == ["handbook"]


def test_declined_changes_are_not_written() -> None:
    result, terminal = run([*ALL[:6], "n"])

    assert (result.exit_code, list_files()) == (0, ["handbook"])
    assert terminal.lines[-1] == "Nothing was written."


def test_second_run_keeps_settings_and_adds_new_ones() -> None:
    run(ALL)
    with Path("footnote.toml").open("a", encoding="utf-8") as file:
        file.write("# By hand.\n")
    before = Path("footnote.toml").read_text(encoding="utf-8")
    result, terminal = run(["", "4", "", ""])
    same = Path("footnote.toml").read_text(encoding="utf-8")
    Path("travel").mkdir()
    Path("travel/rules.md").write_text("# Rules\n\nThe train.\n", encoding="utf-8")
    added, _ = run(["travel", "", "", "", "4", "", "", ""])

    assert (result.exit_code, added.exit_code, same) == (0, 0, before)
    assert "What happens now" not in terminal.screen
    assert Path("footnote.toml").read_text(encoding="utf-8").startswith(before)
    assert [row.name for row in load_settings().corpus] == ["handbook", "travel"]


def test_reload_is_advised_next_to_a_server_if_settings_changed() -> None:
    run(ALL)
    Path("travel").mkdir()
    Path("travel/rules.md").write_text("# Rules\n\nThe train.\n", encoding="utf-8")
    with lock_home(Path(".footnote").absolute()):
        owner = Path(".footnote/lock.owner")
        owner.write_text(json.dumps(json.loads(owner.read_text()) | {"command": "footnote serve"}))
        _, same = run(["", "4", "", ""])
        _, added = run(["travel", "", "", "", "4", "", "", ""])

    assert [RELOAD in row.screen for row in (same, added)] == [False, True]
    assert SERVE not in same.screen + added.screen
    slack = load_platforms()["slack"]
    choices = SetupChoices(platforms=(PlatformChoice(slack, slack.settings(), {}, {}),))
    starts = [list_next_steps(choices, "", start)[0] for start in (SERVE, RELOAD, "")]
    assert (starts[:2], starts[2].startswith("in Slack")) == ([SERVE, RELOAD], True)


def test_secrets_are_stored_in_a_private_file_that_every_command_reads() -> None:
    os.environ["OPENAI_BASE_URL"] = "http://127.0.0.1:1/v1"
    answers = [*FOLDER, "4", "2", "sk-secret-of-ours", "", "go on", "", "A question?"]
    result, terminal = run(answers)
    written = Path("footnote.env")

    assert result.exit_code == 0
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert "OPENAI_API_KEY=sk-secret-of-ours" in written.read_text(encoding="utf-8")
    assert "sk-secret" not in Path("footnote.toml").read_text(encoding="utf-8") + terminal.screen + result.output
    assert os.environ["OPENAI_API_KEY"] == "sk-secret-of-ours"
    os.environ["OPENAI_API_KEY"] = "of-the-shell"
    run(["", "4", "", ""])
    assert os.environ["OPENAI_API_KEY"] == "of-the-shell"
    written.chmod(0o644)
    doctor = CliRunner().invoke(app, ("doctor",), obj=CliState(services=FakeServices().build()), prog_name="footnote")
    assert "WARN  Settings: footnote.env, which holds secrets, can be opened by other users" in doctor.stdout


def test_options_replace_questions_and_missing_ones_are_reported() -> None:
    missing, _ = run([], "--platform", "slack", "--yes")
    lines = missing.stderr.splitlines()
    result, _ = run([], "--documents", "handbook", "--platform", "none", "--question", "When?", "--yes")

    assert missing.exit_code == 1
    assert [line.partition("Give ")[2].split(",")[0] for line in lines] == [
        "--documents FOLDER.",
        "the variable SLACK_BOT_TOKEN.",
        "the variable SLACK_APP_TOKEN.",
    ]
    assert result.exit_code == 0
    assert [row.name for row in load_settings().corpus] == ["handbook"]


def test_setup_fails_if_nothing_can_be_read() -> None:
    services = FakeServices(report=RefreshReport("handbook", failures=(("leave.md", "holds no text"),)), corpora=())
    result, terminal = run([], "--documents", "handbook", "--platform", "none", "--yes", services=services)

    assert result.exit_code == 1
    assert "Nothing of handbook could be read" in result.stderr
    assert "Done" not in terminal.screen


def test_setup_without_terminal_is_refused() -> None:
    services = FakeServices().build()
    result = CliRunner().invoke(app, ("setup",), obj=CliState(services=services), prog_name="footnote")

    assert result.exit_code == 1
    assert "This is not a terminal" in result.stderr
    assert list_files() == ["handbook"]


@pytest.mark.parametrize("command", ["setup", "init"])
def test_unwritable_settings_are_reported_before_questions(command: str) -> None:
    terminal, path = ScriptedTerminal(ALL), Path("/proc/footnote.toml")
    services = replace(FakeServices().build(), open_terminal=lambda _: terminal)
    result = CliRunner().invoke(
        app, ("--config", str(path), command), obj=CliState(services=services), prog_name="footnote"
    )

    assert (result.exit_code, terminal.lines) == (1, [])
    assert f"{path} cannot be written" in result.stderr
    assert "footnote --config FILE" in result.stderr


def test_unwritable_home_is_reported_before_questions() -> None:
    os.environ["FOOTNOTE_HOME"] = str(Path("handbook/leave.md/home").absolute())
    result, terminal = run(ALL)

    assert (result.exit_code, terminal.lines) == (1, [])
    assert "FOOTNOTE_HOME" in result.stderr


def test_invalid_settings_are_reported_before_questions() -> None:
    Path("footnote.toml").write_text("timezon = 1\n[limits]\nsecond = 1\n", encoding="utf-8")
    result, terminal = run(ALL)

    assert (result.exit_code, terminal.lines) == (1, [])
    assert len(result.stderr.splitlines()) == 2
