"""Search the record by command: lists, exports, figures, unanswered questions, feedback."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from bot.cli.audit.record_options import parse_moment
from storage.types import EntryKind, LogEntry
from tests.bot.cli.test_commands import document, run
from tests.bot.fake_services import DAY, FakeServices, logged

BERLIN = ZoneInfo("Europe/Berlin")
EVIL = "=1+1 \x1b[2J Why?\u2028"
ASKER = {"platform": "slack", "workspace": "T1", "channel": "C1", "user": "U1", "name": "Ada", "channel_name": "sales"}


def services() -> FakeServices:
    in_vain = [
        entry
        for name in ("def456", "def789")
        for entry in (
            LogEntry(name, EntryKind.TURN_OPENED, {"question": EVIL, "asker": ASKER}, at=datetime.now(UTC)),
            LogEntry(name, EntryKind.TURN_CLOSED, {"status": "abstained", "text": "Nothing."}, at=DAY),
        )
    ]
    rating = {"what": "down", "by": "slack:T1/U1", "comment": "It opens at\neight."}
    acts = [
        LogEntry("abc123", EntryKind.FEEDBACK, rating, at=DAY),
        LogEntry("abc123", EntryKind.EDITED, {"retracted": True}, at=DAY),
    ]
    cut = LogEntry("ghi", EntryKind.TURN_OPENED, {"question": "Cut?"}, at=DAY + timedelta(days=1))
    return FakeServices(record=(*logged(), *acts, *in_vain, cut))


def test_list_shows_asker_question_place_and_status() -> None:
    lines = run("audit", "list", services=services()).stdout.splitlines()

    assert lines[-3:] == [
        "abc123 · 2026-03-01 12:00 UTC · answered retracted -1",
        "    When does the quay open?",
        "4 of 4 turns",
    ]
    assert "UTC · abstained · Ada (slack:T1/U1) · #sales (slack:T1/C1) =1+1 Why?" in " ".join(" ".join(lines).split())
    printed = document(run("audit", "list", "--json", services=services()))
    assert [turn["answer_id"] for turn in printed["turns"]] == ["ghi", "def789", "def456", "abc123"]
    assert (printed["total"], printed["next"], printed["turns"][1]["asker_name"]) == (4, None, "Ada")


def test_pages_of_the_list_follow_each_other() -> None:
    first = document(run("audit", "list", "-n", "3", "--json", services=services()))
    assert (
        f"3 of 4 turns; older ones: --before {first['next']}"
        in run("audit", "list", "-n", "3", services=services()).stdout
    )
    second = document(run("audit", "list", "--before", str(first["next"]), "--json", services=services()))

    assert [turn["answer_id"] for turn in second["turns"]] == ["abc123"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--channel", "#sales"], ["def789", "def456"]),
        (["--person", "Ada", "--status", "abstained"], ["def789", "def456"]),
        (["--until", "2026-03-01"], ["abc123"]),
        (["--since", "2026-03-02", "--until", "2026-03"], ["ghi"]),
        (["--since", "1d"], ["def789", "def456"]),
        (["--document", "harbour"], ["abc123"]),
        (["--rating", "down", "--words", "quay opens"], ["abc123"]),
        (["--verdict", "refuted"], []),
        (["--person", "\udcff", "--words", "\udcff"], []),
    ],
)
def test_turns_are_chosen_by_options(options: list[str], expected: list[str]) -> None:
    printed = document(run("audit", "list", "--json", *options, services=services()))

    assert [turn["answer_id"] for turn in printed["turns"]] == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--since", "yesterday"], "is not a moment"),
        (["--until", "2026-02-30"], "is not a moment"),
        (["--since", "99999999999w"], "is not a moment"),
        (["--status", "fine"], "There is no status"),
        (["--verdict", "SUPPORTS"], "There is no verdict"),
        (["--rating", "5"], "There is no rating"),
    ],
)
def test_invalid_filters_are_usage_errors(options: list[str], expected: str) -> None:
    result = run("audit", "list", *options, services=services())

    assert result.exit_code == 2
    assert expected in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize("command", ["list", "export", "stats", "unanswered", "feedback"])
def test_an_empty_record_has_nothing_to_show(command: str) -> None:
    result = run("audit", command, services=FakeServices(record=()))

    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout or command == "export"
    read = document(run("audit", command, "--json", services=FakeServices(record=())))
    assert not any(value for value in read.values() if isinstance(value, list))


@pytest.mark.parametrize("command", ["list", "stats", "unanswered", "feedback"])
def test_controls_in_listed_turns_are_removed(command: str) -> None:
    assert not set(run("audit", command, services=services()).stdout) & {"\x1b", "\u2028"}


def test_index_is_rebuilt() -> None:
    assert document(run("audit", "reindex", "--json", services=services())) == {"turns": 4}


def test_an_export_is_a_line_of_json_for_each_answer() -> None:
    read = [json.loads(line) for line in run("audit", "export", services=services()).stdout.splitlines()]

    assert [row["answer_id"] for row in read] == ["ghi", "def789", "def456", "abc123"]
    assert read[1]["question"] == EVIL
    answer = read[-1]
    assert (answer["schema"], answer["text"]) == (1, "The quay opens at seven. [1]")
    assert answer["citations"][0]["passage_text"] == "The quay opens at seven. It closes at nine."
    assert answer["feedback"][0]["comment"] == "It opens at\neight."
    assert answer["edited"][0]["retracted"] is True


def test_an_export_for_spreadsheets_holds_no_formula() -> None:
    shown = run("audit", "export", "--format", "csv", services=services()).stdout
    rows = list(csv.DictReader(io.StringIO(shown, newline="")))

    assert [row["answer_id"] for row in rows] == ["ghi", "def789", "def456", "abc123"]
    assert (rows[1]["question"], rows[1]["asker"], rows[1]["retracted"]) == (f"'{EVIL}", "slack:T1/U1", "false")
    last = rows[-1]
    assert (last["documents"], last["comments"]) == ("handbook: Harbour", "It opens at\neight.")
    assert (last["sentences"], last["down"]) == ("1", "1")


def test_figures_are_shown_by_step_and_in_total() -> None:
    printed = document(run("audit", "stats", "--until", "2026-03-04", "--step", "day", "--json", services=services()))

    assert [(step["turns"], step["answered"], step["down"]) for step in printed["steps"]] == [(1, 1, 1), (1, 0, 0)] + [
        (0, 0, 0)
    ] * (len(printed["steps"]) - 2)
    assert (printed["all"]["turns"], printed["all"]["retracted"], printed["all"]["failed"]) == (2, 1, 1)
    lines = run("audit", "stats", services=services()).stdout.splitlines()
    assert "4 asked by 1 person: 1 answered, 2 abstained, 1 failed or refused, 1 retracted" in lines


def test_unanswered_questions_are_grouped() -> None:
    (group,) = document(run("audit", "unanswered", "--json", services=services()))["groups"]

    assert (group["times"], group["people"], group["question"]) == (2, 1, EVIL)
    lines = run("audit", "unanswered", services=services()).stdout.splitlines()
    assert lines[0].startswith("2 times · 1 person · last 20")
    assert lines[1:] == ["    =1+1 Why?"]


def test_feedback_is_listed_with_its_question() -> None:
    (printed,) = document(run("audit", "feedback", "--json", services=services()))["feedback"]
    lines = " ".join(run("audit", "feedback", services=services()).stdout.split())

    assert (printed["what"], printed["turn"]["answer_id"]) == ("down", "abc123")
    assert "not helpful · slack:T1/U1" in lines
    assert "“It opens at eight.”" in lines


MOMENTS: list[tuple[str, bool, Any]] = [
    ("2026-10", False, datetime(2026, 10, 1, tzinfo=BERLIN)),
    ("2026-10", True, datetime(2026, 11, 1, tzinfo=BERLIN)),
    ("2026-12", True, datetime(2027, 1, 1, tzinfo=BERLIN)),
    ("2026-10-24", True, datetime(2026, 10, 25, tzinfo=BERLIN)),
    ("2026-10-24T10:30", True, datetime(2026, 10, 24, 10, 30, tzinfo=BERLIN)),
    ("2026-10-24T10:30Z", False, datetime(2026, 10, 24, 10, 30, tzinfo=UTC)),
    ("36h", False, DAY - timedelta(hours=36)),
    ("", False, None),
]


@pytest.mark.parametrize(("typed", "end", "expected"), MOMENTS)
def test_moments_are_read_as_people_write_them(typed: str, *, end: bool, expected: datetime | None) -> None:
    assert parse_moment(typed, BERLIN, DAY, end=end) == expected


@given(st.text("0123456789-:TZdwh+. ", max_size=20), st.booleans())
def test_typed_text_is_a_moment_or_a_usage_error(typed: str, end: bool) -> None:  # noqa: FBT001 - a property's example
    try:
        moment = parse_moment(typed, UTC, DAY, end=end)
    except typer.BadParameter:
        return
    assert moment is None or moment.tzinfo
