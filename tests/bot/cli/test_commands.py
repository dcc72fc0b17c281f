"""The command line: what each command requests of the services, its output, and its failures."""

from pathlib import Path

import pytest

from bot.cli.entry_point import move_options_first
from pipeline.types import Turn
from storage.types import CorpusInfo
from tests.bot.cli.commands import document, run
from tests.bot.fake_services import FakeServices

COMMANDS = [
    name.split()
    for name in (
        "init", "doctor", "ingest folder", "ingest wikipedia", "ingest all", "ingest status", "forget", "corpora",
        "reindex", "backup", "restore", "search", "ask", "check", "chat", "audit list", "audit show", "audit verify",
        "audit checkpoint", "audit key", "audit receipt", "audit restored", "audit hold", "erase", "audit export",
        "audit stats", "audit unanswered", "audit feedback", "audit reindex", "examples add", "examples list",
        "examples drop", "examples pin",
    )
]  # fmt: skip


@pytest.mark.parametrize("command", [[], ["ingest"], ["audit"], ["examples"], ["serve"], *COMMANDS])
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    result = run(*command, "--help")

    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert f"footnote {' '.join(command)}".strip() in result.stdout
    assert "--json" in result.stdout or command not in COMMANDS


def test_version_is_printed() -> None:
    assert run("--version").stdout.startswith("footnote ")


@pytest.mark.parametrize("command", [
    "nonsense", "ask", "search x -k 0", "forget", "ingest --only x all", "ingest --corpus handbook",
    "ingest folder docs",
    "ingest folder docs --corpus no/slashes",
    "ingest folder docs --corpus docs --url-base docs.example.com",
    "ingest folder docs --corpus docs --site hugo",
    "ingest folder docs --corpus docs --url-base https://docs.example.com --site word",
    "ingest wikipedia --corpus wikipedia",
    "ingest wikipedia --dump wiki.xml",
    "ingest wikipedia --wiki simple --contact a@example.com --estimate",
    "ingest wikipedia --corpus wiki --dump wiki.xml --wiki simple",
    "ingest wikipedia --corpus wiki --wiki simple",
    "ingest wikipedia --corpus wiki --wiki simple --contact nobody",
])  # fmt: skip
def test_usage_error_exits_with_2_and_prints_only_to_stderr(command: str) -> None:
    result = run(*command.split())

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr


def test_ask_passes_question_corpora_and_effort_on() -> None:
    services = FakeServices()
    run("ask", " When does it open? ", "--corpus", "handbook", "--effort", "quick", services=services)

    (asked,) = services.asked
    assert (asked.text, asked.corpora, asked.effort) == ("When does it open?", ("handbook",), "quick")
    assert (asked.asker.platform, asked.asker.kind) == ("terminal", "terminal")
    assert not asked.asker.shared_with_other_organisations


def test_check_passes_corpora_and_system_on() -> None:
    services = FakeServices()
    run("check", "It opens at seven.", "--corpus", "handbook", "--system", "extractive", services=services)

    assert [(asked.corpora, asked.system) for asked in services.asked] == [(("handbook",), "extractive")]


def test_dash_reads_the_question_from_stdin() -> None:
    services = FakeServices()
    run("ask", "-", services=services, typed="When does it open?\n")

    assert services.asked[0].text == "When does it open?"


def test_internal_error_shows_a_traceback_only_with_debug() -> None:
    services = FakeServices(answer=ZeroDivisionError("on purpose"))
    plain, debugged = run("ask", "Why?", services=services), run("ask", "Why?", "--debug", services=services)

    assert (plain.exit_code, plain.stderr.count("\n")) == (1, 1)
    assert "ZeroDivisionError: on purpose" in plain.stderr
    assert "Traceback" not in plain.stderr
    assert "Traceback" in debugged.stderr


def test_invalid_settings_stop_a_command_before_it_opens_the_home() -> None:
    Path("footnote.toml").write_text("timezon = 'UTC'", encoding="utf-8")
    services = FakeServices()

    assert (run("ask", "Why?", services=services).exit_code, services.opened) == (1, [])


@pytest.mark.parametrize("arguments", [["--config", "a.toml", "corpora"], ["corpora", "--config=a.toml"]])
def test_settings_file_can_be_named_before_and_after_the_command(arguments: list[str]) -> None:
    Path("a.toml").write_text("nonsense = 1", encoding="utf-8")

    assert "a.toml, line 1" in run(*arguments).stderr


def test_global_options_move_first_except_after_two_dashes() -> None:
    assert move_options_first(["ask", "--debug", "--", "--debug"]) == ["--debug", "ask", "--", "--debug"]
    assert move_options_first(["ask", "x", "--config"]) == ["--config", "ask", "x"]


def test_search_covers_all_corpora_or_the_named_ones() -> None:
    services = FakeServices(corpora=(CorpusInfo("a-b", 1, 1, None), CorpusInfo("c-d", 1, 1, None)))
    run("search", "quay", services=services)
    run("search", "quay", "-k", "3", "--corpus", "c-d", services=services)

    assert services.searched == [("quay", ("a-b", "c-d"), 10), ("quay", ("c-d",), 3)]


def test_reindex_opens_the_home_for_rebuilding() -> None:
    services = FakeServices()
    printed = document(run("reindex", "--json", services=services))

    assert (printed["passages"], set(printed)) == (12, {"passages", "seconds"})
    assert services.opened == [True]
    assert "Indexed again: 12 passages" in run("reindex", services=services).stdout


def test_init_writes_the_settings_file_once() -> None:
    first, second = run("init"), run("init", "--json")

    assert "footnote ingest folder PATH" in first.stdout
    assert Path("footnote.toml").exists()
    assert (second.exit_code, document(second)["error"]["kind"]) == (1, "settings")
    key = run("audit", "key").stdout.strip()
    assert document(run("init", "--json", "--config", "b.toml")) == {"path": "b.toml", "key": key}
    assert key in "".join(first.stdout.split())


def test_chat_answers_line_by_line_through_a_pipe() -> None:
    services = FakeServices()
    result = run("chat", services=services, typed="When does it open?\n\n/sources\nAnd close?\n")

    assert result.exit_code == 0
    assert [asked.text for asked in services.asked] == ["When does it open?", "And close?"]
    assert services.asked[1].earlier[0] == Turn("user", "When does it open?")
    assert services.asked[0].thread == services.asked[1].thread != ""
    assert result.stdout.count("The quay opens at seven. [1]") == 2
    assert "It closes at nine." in result.stdout


def test_chat_as_json_is_one_document() -> None:
    printed = document(run("chat", "--json", typed="a\nb\n"))

    assert [answer["answer_id"] for answer in printed["answers"]] == ["abc123", "abc123"]


def test_ctrl_c_stops_only_the_current_turn_of_a_chat() -> None:
    services = FakeServices(interrupted=1)
    result = run("chat", services=services, typed="a\nb\n")

    assert result.exit_code == 0
    assert result.stderr == "Stopped.\n"
    assert [asked.text for asked in services.asked] == ["a", "b"]
    assert result.stdout.count("The quay opens at seven. [1]") == 1


def test_pages_command_refuses_a_public_address_without_tokens(here: Path) -> None:
    (here / "footnote.toml").write_text('[pages]\nhost = "0.0.0.0"\n', encoding="utf-8")
    refused = run("pages", services=FakeServices())
    assert refused.exit_code == 1
    assert "beyond this machine — Give tokens" in refused.stderr
