"""`footnote audit list`, `export`, `stats`, `unanswered` and `feedback`; `test_golden` has their output."""

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from bot.cli.audit.record_options import parse_moment
from storage.types import EntryKind, LogEntry
from tests.bot.cli.commands import EVIL, document, make_record, run
from tests.bot.fake_services import DAY, FakeServices

BERLIN = ZoneInfo("Europe/Berlin")


def services() -> FakeServices:
    return FakeServices(record=make_record(datetime.now(UTC)))


def test_next_page_of_the_answer_list_starts_after_the_previous_one() -> None:
    first = document(run("audit", "list", "-n", "3", "--json", services=services()))
    second = document(run("audit", "list", "--before", str(first["next"]), "--json", services=services()))

    assert [turn["answer_id"] for turn in second["turns"]] == ["abc123"]


@pytest.mark.parametrize(("options", "expected"), [
    (["--channel", "#sales"], ["def789", "def456"]),
    (["--person", "Ada", "--status", "abstained"], ["def789", "def456"]),
    (["--until", "2026-03-01"], ["abc123"]),
    (["--since", "2026-03-02", "--until", "2026-03"], ["ghi"]),
    (["--since", "1d"], ["def789", "def456"]),
    (["--document", "harbour"], ["abc123"]),
    (["--rating", "down", "--words", "quay opens"], ["abc123"]),
    (["--verdict", "refuted"], []),
    (["--person", "\udcff", "--words", "\udcff"], []),
])  # fmt: skip
def test_audit_list_shows_only_turns_that_match_its_options(options: list[str], expected: list[str]) -> None:
    printed = document(run("audit", "list", "--json", *options, services=services()))

    assert [turn["answer_id"] for turn in printed["turns"]] == expected


@pytest.mark.parametrize(("options", "expected"), [
    (["--since", "yesterday"], "is not a moment"),
    (["--until", "2026-02-30"], "is not a moment"),
    (["--since", "99999999999w"], "is not a moment"),
    (["--status", "fine"], "There is no status"),
    (["--verdict", "SUPPORTS"], "There is no verdict"),
    (["--rating", "5"], "There is no rating"),
])  # fmt: skip
def test_invalid_filters_are_usage_errors(options: list[str], expected: str) -> None:
    result = run("audit", "list", *options, services=services())

    assert result.exit_code == 2
    assert expected in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize("command", ["list", "export", "stats", "unanswered", "feedback"])
def test_empty_record_shows_nothing(command: str) -> None:
    result = run("audit", command, services=FakeServices(record=()))

    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout or command == "export"
    read = document(run("audit", command, "--json", services=FakeServices(record=())))
    assert not any(value for value in read.values() if isinstance(value, list))


@pytest.mark.parametrize("command", ["list", "stats", "unanswered", "feedback"])
def test_control_characters_of_listed_turns_are_removed(command: str) -> None:
    assert not set(run("audit", command, services=services()).stdout) & {"\x1b", "\u2028"}


def test_record_index_is_rebuilt() -> None:
    assert document(run("audit", "reindex", "--json", services=services())) == {"turns": 4}


def test_feedback_shows_that_the_question_was_missed() -> None:
    missed = LogEntry("abc123", EntryKind.FEEDBACK, {"what": "down", "missed": True, "by": "slack:T1/U2"})
    shown = run("audit", "feedback", services=FakeServices(record=(*make_record(datetime.now(UTC)), missed))).stdout

    ratings = [line.split(" · ")[2] for line in shown.splitlines() if " · " in line]
    assert ratings == ["not what was asked", "not helpful"]


def test_csv_export_has_no_formulas() -> None:
    shown = run("audit", "export", "--format", "csv", services=services()).stdout
    rows = list(csv.DictReader(io.StringIO(shown, newline="")))

    assert [row["answer_id"] for row in rows] == ["ghi", "def789", "def456", "abc123"]
    assert (rows[1]["question"], rows[1]["asker"], rows[1]["retracted"]) == (f"'{EVIL}", "slack:T1/U1", "false")
    last = rows[-1]
    assert (last["documents"], last["comments"]) == ("handbook: Harbour", "It opens at\neight.")
    assert (last["sentences"], last["down"]) == ("1", "1")


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
def test_dates_and_times_in_options_are_parsed(typed: str, *, end: bool, expected: datetime | None) -> None:
    assert parse_moment(typed, BERLIN, DAY, end=end) == expected


@given(st.text("0123456789-:TZdwh+. ", max_size=20), st.booleans())
def test_any_text_as_a_time_option_is_parsed_or_a_usage_error(typed: str, end: bool) -> None:  # noqa: FBT001 - a property's example
    try:
        moment = parse_moment(typed, UTC, DAY, end=end)
    except typer.BadParameter:
        return
    assert moment is None or moment.tzinfo
