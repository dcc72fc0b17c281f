"""The progress of a long command."""

import io

import pytest
from rich.console import Console

from bot.cli.terminal_output import format_progress, show_progress
from bot.views.text_formats import format_duration


@pytest.mark.parametrize(("done", "total", "seconds", "extra", "expected"), [
    (0, 883, 0.0, "", "0 of 883 documents"),
    (256, 883, 8.0, "1,204 passages", "256 of 883 documents, 1,204 passages, 32 documents/s, 20 s left"),
    (883, 883, 20.0, "", "883 of 883 documents, 44 documents/s"),
    (5, None, 10.0, "", "5 documents, 30.0 documents/min"),
    (1, 3, 200.0, "", "1 of 3 documents, 0.3 documents/min, 7 min left"),
])  # fmt: skip
def test_progress_shows_rate_and_time_left(
    done: int, total: int | None, seconds: float, extra: str, expected: str
) -> None:
    assert format_progress(done, total, "documents", seconds, extra) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.4, "0 s"), (59, "59 s"), (61, "1 min"), (3570, "1 h 0 min"), (4800, "1 h 20 min")]
)
def test_durations_are_formatted_in_minutes_and_hours(seconds: float, expected: str) -> None:
    assert format_duration(seconds) == expected


def test_progress_to_a_pipe_is_printed_every_few_seconds() -> None:
    now = iter([0.0, 1.0, 6.0, 6.0, 7.0, 11.0, 11.0])
    err = Console(file=io.StringIO(), force_terminal=False)
    with show_progress(err, label="docs", unit="documents", clock=lambda: next(now)) as report:
        for done in (1, 6, 7, 11):
            report(done, 20)

    assert err.file.getvalue().splitlines() == [
        "docs: started",
        "docs: 6 of 20 documents, 1 documents/s, 14 s left",
        "docs: 11 of 20 documents, 1 documents/s, 9 s left",
    ]


def test_progress_in_a_terminal_has_a_bar() -> None:
    err = Console(file=io.StringIO(), force_terminal=True, width=100, _environ={})
    with show_progress(err, label="docs", unit="documents") as report:
        report(20, 20, "40 passages")

    assert "━" in err.file.getvalue()
    assert "20 of 20 documents, 40 passages" in err.file.getvalue()
