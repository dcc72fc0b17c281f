"""Turns of the record as text, with erased, incomplete and hostile entries; `test_golden` has a complete one."""

import io
from collections.abc import Sequence
from datetime import UTC
from typing import Any

import pytest
from rich.console import Console

from bot.cli.rendering.audit_view import format_usage, render_turn
from storage.types import EntryKind, LogEntry
from tests.bot.fake_services import DAY


def render(entries: Sequence[LogEntry], *, full: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), width=80, color_system=None, force_terminal=False)
    console.print(render_turn(entries, UTC, full=full))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("kind", EntryKind)
def test_erased_entries_are_marked(kind: EntryKind) -> None:
    assert "  erased: its text was removed from the record" in render([LogEntry("t", kind, {}, at=DAY, erased=True)])


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        (EntryKind.STEP, {"stage": "search"}, "search · 0 ms"),
        (EntryKind.STEP, {"stage": "search", "error": "gone"}, "search · 0 ms"),
        (EntryKind.STEP, {"template": "verify"}, ""),
        (EntryKind.TURN_CLOSED, {}, ""),
        (EntryKind.TURN_CLOSED, {"claims": [{}], "withheld": [{}], "usage": None}, "withheld"),
        *((kind, {"of tomorrow": "x", "text": "x"}, "of tomorrow: x") for kind in (
            EntryKind.DELIVERED, EntryKind.EDITED, EntryKind.FEEDBACK, EntryKind.RECHECK, EntryKind.SETTING
        )),
    ],
)  # fmt: skip
def test_entries_of_older_and_newer_versions_are_shown_without_an_error(
    kind: EntryKind, body: dict[str, Any], expected: str, *, full: bool
) -> None:
    assert expected in "\n".join(render([LogEntry("t", kind, body, at=DAY)], full=full))


@pytest.mark.parametrize("kind", EntryKind)
def test_control_characters_of_entries_are_removed(kind: EntryKind) -> None:
    names = ("stage", "model", "reply", "error", "query", "text", "by", "key", "what", "question", "status", "comment")
    for full in (True, False):
        lines = render([LogEntry("t", kind, dict.fromkeys(names, "\x1b[2J\nx\x07"), at=DAY)], full=full)
        assert not set("".join(lines)) & {"\x1b", "\x07"}


def test_zero_usage_is_not_shown() -> None:
    assert format_usage({"llm_calls": 0, "cost": None}) == ""
    assert "cost" not in format_usage({"llm_calls": 1, "cost": None})
