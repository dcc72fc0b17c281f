"""The command line: what each command asks of the house, what it prints, and how it fails."""

from dataclasses import replace
from pathlib import Path

import pytest

from bot.cli.entry_point import move_options_first
from pipeline.types import Status, Turn
from storage.errors import HomeLocked
from storage.types import CorpusInfo, EntryKind, LogEntry
from tests.bot.cli.commands import NO_MODEL_USED, document, run
from tests.bot.fake_services import FakeServices, abstained, answered, hit, logged, refused

COMMANDS = [
    ["init"],
    ["doctor"],
    ["ingest", "folder"],
    ["ingest", "wikipedia"],
    ["ingest", "all"],
    ["ingest", "status"],
    ["forget"],
    ["corpora"],
    ["reindex"],
    ["backup"],
    ["restore"],
    ["search"],
    ["ask"],
    ["check"],
    ["chat"],
    ["audit", "list"],
    ["audit", "show"],
    ["audit", "verify"],
    ["audit", "checkpoint"],
    ["audit", "key"],
    ["audit", "receipt"],
    ["audit", "restored"],
    ["audit", "hold"],
    ["erase"],
    ["audit", "export"],
    ["audit", "stats"],
    ["audit", "unanswered"],
    ["audit", "feedback"],
    ["audit", "reindex"],
    ["examples", "add"],
    ["examples", "list"],
    ["examples", "drop"],
    ["examples", "pin"],
]


@pytest.mark.parametrize("command", [[], ["ingest"], ["audit"], ["examples"], ["serve"], *COMMANDS])
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    result = run(*command, "--help")

    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert f"footnote {' '.join(command)}".strip() in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_can_answer_in_json(command: list[str]) -> None:
    assert "--json" in run(*command, "--help").stdout


def test_the_version_is_told() -> None:
    assert run("--version").stdout.startswith("footnote ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["ask"],
        ["search", "x", "-k", "0"],
        ["ingest", "folder", "docs"],
        ["ingest", "folder", "docs", "--corpus", "no spaces"],
        ["ingest", "wikipedia", "--corpus", "wikipedia"],
        ["ingest", "wikipedia", "--dump", "wiki.xml"],
        ["ingest", "wikipedia", "--wiki", "simple", "--contact", "a@example.com", "--estimate"],
        ["ingest", "wikipedia", "--corpus", "wiki", "--dump", "wiki.xml", "--wiki", "simple"],
        ["ingest", "wikipedia", "--corpus", "wiki", "--wiki", "simple"],
        ["ingest", "wikipedia", "--corpus", "wiki", "--wiki", "simple", "--contact", "nobody"],
        ["ingest", "--only", "x", "all"],
        ["ingest", "--corpus", "handbook"],
        ["forget"],
        ["ingest", "folder", "docs", "--corpus", "docs", "--url-base", "docs.example.com"],
        ["ingest", "folder", "docs", "--corpus", "docs", "--site", "hugo"],
        ["ingest", "folder", "docs", "--corpus", "docs", "--url-base", "https://docs.example.com", "--site", "word"],
    ],
)
def test_wrong_usage_exits_with_2_and_nothing_on_stdout(arguments: list[str]) -> None:
    result = run(*arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr


def test_ask_prints_an_answer() -> None:
    house = FakeServices()
    result = run("ask", " When does it open? ", "--corpus", "handbook", "--effort", "quick", house=house)

    assert result.exit_code == 0
    assert result.stdout.startswith("The quay opens at seven. [1]\n")
    assert "“The quay opens at seven.”" in result.stdout
    (asked,) = house.asked
    assert (asked.text, asked.corpora, asked.effort) == ("When does it open?", ("handbook",), "quick")
    assert (asked.asker.platform, asked.asker.kind) == ("terminal", "terminal")
    assert not asked.asker.shared_with_other_organisations


def test_ask_as_json_is_the_document_of_the_contract() -> None:
    assert document(run("ask", "When?", "--json", house=FakeServices(answer=answered(effort="quick")))) == {
        "answer_id": "abc123",
        "status": "answered",
        "text": "The quay opens at seven. [1]",
        "sentences": [{"text": "The quay opens at seven.", "citations": [1], "note": ""}],
        "citations": [
            {
                "number": 1,
                "corpus": "handbook",
                "title": "Harbour",
                "section": "Hours",
                "url": "https://example.com/harbour.md",
                "revision": "r1",
                "date": "2026-03-01T12:00:00+00:00",
                "quote": "The quay opens at seven.",
                "passage_id": "p1",
            }
        ],
        "claims": [],
        "nearest": [],
        "withheld": 0,
        "system": "extractive",
        "effort": "quick",
        "model": None,
        "usage": NO_MODEL_USED,
        "seconds": 0.25,
    }


def test_an_abstention_is_no_failure() -> None:
    result = run("ask", "Why?", "--json", house=FakeServices(answer=abstained()))

    assert result.exit_code == 0
    assert document(result)["nearest"] == [
        {"title": "Harbour", "url": "https://example.com/harbour.md", "passage_id": "p1"}
    ]


def test_a_question_can_come_from_stdin() -> None:
    house = FakeServices()
    run("ask", "-", house=house, typed="When does it open?\n")

    assert house.asked[0].text == "When does it open?"


def test_a_refusal_is_one_plain_line() -> None:
    result = run("ask", "🎉", house=FakeServices(answer=refused()))

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "footnote: The question has no words — Ask in words.\n"


def test_a_failure_as_json_is_a_document_too() -> None:
    locked = HomeLocked("The home is in use.", hint="Wait until it is done.")
    result = run("ask", "Why?", "--json", house=FakeServices(answer=locked))

    assert result.exit_code == 1
    assert document(result) == {
        "error": {"kind": "home_locked", "message": "The home is in use.", "hint": "Wait until it is done."}
    }
    assert result.stderr == "footnote: The home is in use — Wait until it is done.\n"


def test_a_fault_of_the_code_is_a_plain_line_and_with_debug_its_place() -> None:
    house = FakeServices(answer=ZeroDivisionError("on purpose"))
    plain, debugged = run("ask", "Why?", house=house), run("ask", "Why?", "--debug", house=house)

    assert (plain.exit_code, plain.stderr.count("\n")) == (1, 1)
    assert "ZeroDivisionError: on purpose" in plain.stderr
    assert "Traceback" not in plain.stderr
    assert "Traceback" in debugged.stderr


def test_an_interrupted_command_says_that_nothing_is_lost() -> None:
    result = run("ask", "Why?", house=FakeServices(answer=KeyboardInterrupt()))

    assert result.exit_code == 130
    assert "what was done so far is kept" in result.stderr


def test_wrong_settings_stop_every_command() -> None:
    Path("footnote.toml").write_text("timezon = 'UTC'", encoding="utf-8")
    house = FakeServices()
    result = run("ask", "Why?", "--json", house=house)

    assert document(result)["error"]["kind"] == "settings"
    assert result.exit_code == 1
    assert house.opened == []


@pytest.mark.parametrize("arguments", [["--config", "a.toml", "corpora"], ["corpora", "--config=a.toml"]])
def test_the_settings_file_can_be_named_before_and_behind_the_command(arguments: list[str]) -> None:
    Path("a.toml").write_text("nonsense = 1", encoding="utf-8")

    assert "a.toml, line 1" in run(*arguments).stderr


def test_what_follows_two_dashes_is_no_option() -> None:
    assert move_options_first(["ask", "--debug", "--", "--debug"]) == ["--debug", "ask", "--", "--debug"]
    assert move_options_first(["ask", "x", "--config"]) == ["--config", "ask", "x"]


def test_search_prints_the_hits_of_the_contract() -> None:
    house = FakeServices(hits=(hit(),), corpora=(CorpusInfo("a-b", 1, 1, None), CorpusInfo("c-d", 1, 1, None)))
    result = run("search", "quay", "--json", house=house)

    assert document(result) == {
        "hits": [
            {
                "passage_id": "p1",
                "corpus": "handbook",
                "title": "Harbour",
                "section": "Hours",
                "url": "https://example.com/harbour.md",
                "text": "The quay opens at seven. It closes at nine.",
                "score": 1.25,
            }
        ]
    }
    assert house.searched == [("quay", ("a-b", "c-d"), 10)]
    run("search", "quay", "-k", "3", "--corpus", "c-d", house=house)
    assert house.searched[1] == ("quay", ("c-d",), 3)


@pytest.mark.parametrize(
    ("arguments", "corpora", "kind", "expected"),
    [
        (["search", "x", "--corpus", "nope"], FakeServices().corpora, "unknown_corpus", "There are: handbook."),
        (["search", "x"], (), "unknown_corpus", "Nothing is ingested yet"),
        (["search", " "], FakeServices().corpora, "question_without_words", "no words in the query"),
        (["search", "🎉"], FakeServices().corpora, "question_without_words", "no words in the query"),
        (["search", "x" * 100_000], FakeServices().corpora, "question_too_long", "100,000 characters"),
    ],
)
def test_a_search_that_cannot_find_anything_says_why(
    arguments: list[str], corpora: tuple[CorpusInfo, ...], kind: str, expected: str
) -> None:
    house = FakeServices(corpora=corpora)

    assert expected in run(*arguments, house=house).stderr
    assert document(run(*arguments, "--json", house=house))["error"]["kind"] == kind


@pytest.mark.parametrize("command", [["search", "x"], ["ask", "x"], ["corpora"]])
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("", "Start with `footnote setup`"),
        ("[[corpus]]\nname = 'docs'\nsource = { type = 'folder', path = 'docs' }\n", "`footnote ingest all` ingests"),
    ],
)
def test_where_nothing_is_ingested_the_settings_decide_how_to_begin(
    command: list[str], settings: str, said: str
) -> None:
    Path("footnote.toml").write_text(settings, encoding="utf-8")

    assert said in run(*command, house=FakeServices(answer=abstained(), corpora=())).output


def test_init_writes_the_settings_file_once() -> None:
    first, second = run("init"), run("init", "--json")

    assert "footnote ingest folder PATH" in first.stdout
    assert Path("footnote.toml").exists()
    assert (second.exit_code, document(second)["error"]["kind"]) == (1, "settings")
    key = run("audit", "key").stdout.strip()
    assert document(run("init", "--json", "--config", "b.toml")) == {"path": "b.toml", "key": key}
    assert key in "".join(first.stdout.split())


def test_chat_answers_line_by_line_through_a_pipe() -> None:
    house = FakeServices()
    result = run("chat", house=house, typed="When does it open?\n\n/sources\nAnd close?\n")

    assert result.exit_code == 0
    assert [asked.text for asked in house.asked] == ["When does it open?", "And close?"]
    assert house.asked[1].earlier[0] == Turn("user", "When does it open?")
    assert house.asked[0].thread == house.asked[1].thread != ""
    assert result.stdout.count("The quay opens at seven. [1]") == 2
    assert "It closes at nine." in result.stdout


def test_chat_as_json_is_one_document() -> None:
    told = document(run("chat", "--json", typed="a\nb\n"))

    assert [answer["answer_id"] for answer in told["answers"]] == ["abc123", "abc123"]


def test_ctrl_c_stops_the_turn_and_not_the_chat() -> None:
    house = FakeServices(interrupted=1)
    result = run("chat", house=house, typed="a\nb\n")

    assert result.exit_code == 0
    assert result.stderr == "Stopped.\n"
    assert [asked.text for asked in house.asked] == ["a", "b"]
    assert result.stdout.count("The quay opens at seven. [1]") == 1


def test_audit_show_shows_a_turn_by_the_beginning_of_its_id() -> None:
    shown = run("audit", "show", "abc").stdout

    for expected in (
        "When does the quay open?",
        "search · 3 ms\n  “quay”: 1 passage\n    1.25 Harbour › Hours (https://example.com/harbour.md)\n",
        "[1] Harbour › Hours",
        "closes at nine.",
    ):
        assert expected in shown
    told = document(run("audit", "show", "abc123", "--json"))
    assert [entry["kind"] for entry in told["entries"]] == ["turn_opened", "step", "turn_closed"]


def test_audit_show_shows_what_was_set_for_a_channel_though_another_s_name_begins_alike() -> None:
    body = {"key": "paused", "was": False, "now": True, "by": "slack:T1/U1"}
    record = tuple(LogEntry(f"slack:T1/C1{more}", EntryKind.SETTING, body, 9, logged()[0].at) for more in ("", "2"))
    house = FakeServices(record=(*logged(), *record))

    assert "paused: no → yes, by slack:T1/U1" in run("audit", "show", "slack:T1/C1", house=house).stdout
    assert document(run("audit", "show", "slack:T1/C1", "--json", house=house))["channel"] == "slack:T1/C1"
    assert [turn["answer_id"] for turn in document(run("audit", "list", "--json", house=house))["turns"]] == ["abc123"]


@pytest.mark.parametrize(("typed", "expected"), [("zzz", "There is no answer “zzz”"), ("ab", "Several answers begin")])
def test_audit_show_needs_one_answer(typed: str, expected: str) -> None:
    record = tuple(replace(entry, turn_id=name) for name in ("abc123", "abd456") for entry in logged())

    assert expected in run("audit", "show", typed, house=FakeServices(record=record)).stderr


def test_documents_cannot_command_a_terminal_through_json_either() -> None:
    result = run("ask", "x", "--json", house=FakeServices(answer=answered(text="\x9b2J\x1b[2J 港")))

    assert not set(result.stdout) & {"\x9b", "\x1b"}
    assert "港" in result.stdout
    assert document(result)["text"] == "\x9b2J\x1b[2J 港"


def test_a_greeting_is_answered_without_sources() -> None:
    done = answered(answer=replace(answered().answer, status=Status.CHATTED, sentences=(), citations=()), text="Hello!")

    assert run("ask", "hi", house=FakeServices(answer=done)).stdout == "Hello!\n"


def test_pages_are_not_shown_to_whoever_comes(here: Path) -> None:
    (here / "footnote.toml").write_text('[pages]\nhost = "0.0.0.0"\n', encoding="utf-8")
    refused = run("pages", house=FakeServices())
    assert refused.exit_code == 1
    assert "beyond this machine — Give tokens" in refused.stderr
