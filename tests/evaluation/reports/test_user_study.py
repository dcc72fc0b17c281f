"""The report of a study: figures computed by hand, and the command over a record."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.answering.turn_record import build_closing_entries, build_opening
from bot.cli.entry_point import app
from bot.desk.authorized_turn import build_action_entry
from bot.types import StudyDraw, TurnRequest, TurnResult
from evaluation.reports.user_study import measure_studies, render_study, select_ratings
from pipeline.types import Answer, Conversation, Status, Turn, Usage
from storage.database.engine import open_database
from storage.record.audit_log import AuditLog
from storage.record.comparisons import ComparedAnswer, Rating
from storage.types import EntryKind, LogEntry
from tests.bot.desk.fake_record import in_channel

PAIR = ("a", "b")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def given(turn: int, system: str, asker: str = "U1", status: str = "answered", seconds: float = 1.0) -> ComparedAnswer:
    facts = {"retracted": turn == 7, "quoted": turn == 3}
    return ComparedAnswer(turn, NOON, "slack:T1/C1", asker, system, PAIR, status, seconds, **facts)


def test_figures_are_those_computed_by_hand() -> None:
    answers = [
        given(1, "a", seconds=2.0),
        given(2, "b", seconds=4.0),
        given(3, "a", seconds=6.0),
        given(4, "b", "U2", status="abstained", seconds=0.5),
        given(5, "a", "U2", status="failed", seconds=9.0),
        given(6, "b", "U2", status="chatted"),
        given(7, "b"),  # retracted
    ]
    ratings = [
        Rating(1, "U1", 1, "At first."),
        Rating(1, "U1", 5, "Good."),  # the last one counts
        Rating(3, "U1", 4, ""),
        Rating(2, "U1", 2, ""),
        Rating(1, "U2", 3, ""),
        Rating(4, "U2", 3, "Nothing\nfound."),
        Rating(1, "U3", 1, ""),
        Rating(99, "U1", 5, "Of another channel."),
    ]
    (study,) = measure_studies(answers, ratings)
    first, second = study.figures

    assert (first.system, first.answers, first.rated, first.counts, first.failed) == ("a", 3, 2, (1, 0, 1, 1, 1), 1)
    assert (first.quoted, second.quoted) == (1, 0)
    assert (second.answers, second.rated, second.counts, second.seconds) == (2, 2, (0, 1, 1, 0, 0), 2.25)
    assert first.rating
    assert (first.rating.value, first.rating.count, first.seconds) == (13 / 4, 4, 4.0)
    assert second.abstained
    assert second.abstained.value == 0.5
    assert (first.comments, study.askers, study.raters) == (((5, "Good."),), 2, 3)
    # U1 rates a 4.5 and b 2 on average, U2 both 3; of two people, a resample has leads of 0, 1.25 or 2.5.
    assert study.difference
    assert (study.difference.value, study.difference.low, study.difference.high) == (1.25, 0.0, 2.5)
    text = render_study(study)
    assert "| a | 3 | 2 | 3.25 (" in text
    assert "a minus b: +1.25 (+0.00 to +2.50); 2 people rated both\nToo little data: at least 10 people" in text
    assert "- b, 3: “Nothing found.”" in text


def test_enough_people_are_tested_in_pairs() -> None:
    """Leads of eight people are 1, of two -1: the mean is .6, t is 2.25, and 112 of 1,024 sign flips are as extreme."""
    answers = [given(1, "a"), given(2, "b")]
    leads = [1] * 8 + [-1] * 2
    ratings = [Rating(2, f"U{person}", 3, "") for person in range(10)]
    (study,) = measure_studies(
        answers, [*ratings, *(Rating(1, f"U{person}", 3 + lead, "") for person, lead in enumerate(leads))]
    )

    assert study.difference
    assert study.difference.value == pytest.approx(0.6)
    assert study.test
    assert study.test.t_test == pytest.approx(0.0510, abs=1e-4)
    assert study.test.randomised == pytest.approx(112 / 1024)
    assert "p = 0.051 (paired t-test), 0.109 (sign flips)" in render_study(study)


def test_people_who_left_are_not_counted() -> None:
    answers = [given(1, "a"), given(2, "b"), given(3, "a", "U2")]
    left = [Rating(1, "U1", 5, ""), Rating(3, "U2", 4, ""), Rating(3, "U2", 0, "")]

    assert select_ratings(left) == ([left[0]], {"U2"})
    assert [figures.answers for figures in measure_studies(answers, left)[0].figures] == [1, 1]
    assert select_ratings([*left, Rating(3, "U2", 2, "")])[1] == set()


def record_turn(turn_id: str, system: str) -> list[LogEntry]:
    request = TurnRequest("When?", in_channel(), id=turn_id)
    ran = {"task": "ask", "system": system}
    draw = StudyDraw(system, ("extractive", "wikichat"), 0)
    result = TurnResult(turn_id, Answer(Status.ANSWERED), "Then.", system, None, Usage(), 1.5, study=draw)
    opening = build_opening(request, Conversation((Turn("user", "When?"),)), {}, ran)
    return [LogEntry(turn_id, EntryKind.TURN_OPENED, opening), *build_closing_entries(result, (), (), ())]


def test_command_reports_studies_of_the_record(tmp_path: Path) -> None:
    settings = tmp_path / "footnote.toml"
    settings.write_text(f'home = "{tmp_path}/home"\n')
    (tmp_path / "home").mkdir()

    def call(*arguments: str) -> object:
        return CliRunner().invoke(app, ["--config", str(settings), "evaluate", "study", *arguments])

    with open_database("", home=tmp_path / "home") as database:
        assert "No answers were compared" in call().stderr
        entries = [*record_turn("x", "wikichat"), *record_turn("y", "extractive")]
        rated = build_action_entry("x", "4", in_channel(user="U2"), comment="Good.")
        asyncio.run(AuditLog(database).append(*entries, rated))
    done = call("--json", "--channel", "slack:T1/C1")
    (study,) = json.loads(done.stdout)["studies"]

    assert [figures["answers"] for figures in study["figures"]] == [1, 1]
    assert study["figures"][1]["comments"] == [[4, "Good."]]
    assert "Too little data" in call("--since", "7d").stdout
    assert "No answers were compared" in call("--since", "2099-01").stderr
    assert "No answers were compared in slack:T1/C2" in call("--channel", "slack:T1/C2").stderr
