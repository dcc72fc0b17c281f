"""Entries after an answer as text: delivery, feedback and changed settings."""

import io
from datetime import UTC
from typing import Any

import pytest
from rich.console import Console

from bot.cli.rendering import audit_view
from bot.cli.rendering.audit_view import render_turn
from storage.types import EntryKind, LogEntry
from tests.bot.fake_services import DAY, logged

DELIVERED = {
    "ticket": 7,
    "outcome": "delivered",
    "platform": "slack",
    "workspace": "T1",
    "channel": "C1",
    "thread": "17.1",
    "only_asker": False,
    "messages": ["17.2", "17.3"],
    "text": "The quay opens at seven. [1]\n\n[1] Harbour",
    "left_out": "2 sentences were left out.",
    "why": "",
}


def shown(kind: EntryKind, body: dict[str, Any], turn: str = "abc123") -> list[str]:
    console = Console(file=io.StringIO(), width=80, color_system=None, force_terminal=False)
    console.print(render_turn([LogEntry(turn, kind, body, at=DAY)], UTC))
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert lines[1].startswith(kind.value.replace("_", " "))
    return lines[2:]


def test_delivery_shows_place_and_text() -> None:
    assert shown(EntryKind.DELIVERED, DELIVERED) == [
        "  outcome: delivered",
        "  where: slack:T1/C1, thread 17.1",
        "  messages: 17.2, 17.3",
        "  left out: 2 sentences were left out.",
        "  text as delivered:",
        "    The quay opens at seven. [1]",
        "",
        "    [1] Harbour",
    ]


def test_undelivered_answer_shows_the_reason() -> None:
    body = DELIVERED | {"outcome": "undeliverable", "messages": [], "text": "", "left_out": "", "only_asker": True}

    assert shown(EntryKind.DELIVERED, body | {"thread": "", "why": "is_archived"}) == [
        "  outcome: undeliverable",
        "  where: slack:T1/C1",
        "  shown to: the asker alone",
        "  why: is_archived",
    ]


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        (
            EntryKind.EDITED,
            {"retracted": True, "removed": ["17.2"], "by": "slack:T1/U1", "why": "asked"},
            ["  retracted, by slack:T1/U1", "  removed: 17.2", "  why: asked"],
        ),
        (EntryKind.EDITED, {"stopped": True, "by": "slack:T1/U1"}, ["  stopped, by slack:T1/U1"]),
        (
            EntryKind.FEEDBACK,
            {"what": "down", "by": "slack:T1/U1", "where": "slack:T1/C1", "comment": "It opens at\neight."},
            ["  not helpful, by slack:T1/U1", "  where: slack:T1/C1", "  comment: It opens at eight."],
        ),
        (
            EntryKind.FEEDBACK,
            {"what": "share", "by": "slack:T1/U1", "state": "done"},
            ["  shared, by slack:T1/U1", "  state: done"],
        ),
        (
            EntryKind.RECHECK,
            {
                "lost": [
                    {
                        "text": "It opens\nat ten.",
                        "title": "Quay",
                        "corpus": "a",
                        "document": "q",
                        "was": "",
                        "now": "x",
                    }
                ]
            },
            ["  “It opens at ten.” no longer holds: “Quay” (a: q) has changed.", "    It now says: “x”"],
        ),
        (EntryKind.RECHECK, {"told": "note", "state": "done"}, ["  told: note", "  state: done"]),
        (
            EntryKind.SETTING,
            {"key": "corpora", "was": ["a", "b"], "now": ["a"], "by": "slack:T1/U1"},
            ["  corpora: a, b → a, by slack:T1/U1"],
        ),
        (
            EntryKind.SETTING,
            {"key": "corpora", "was": None, "now": [], "by": "slack:T1/U1"},
            ["  corpora: not set → none, by slack:T1/U1"],
        ),
        (EntryKind.SETTING, {"key": "paused", "was": False, "now": True}, ["  paused: no → yes"]),
    ],
)
def test_feedback_is_one_line_with_its_facts(kind: EntryKind, body: dict[str, Any], expected: list[str]) -> None:
    assert shown(kind, body) == expected


@pytest.mark.parametrize(
    "kind", [EntryKind.DELIVERED, EntryKind.EDITED, EntryKind.FEEDBACK, EntryKind.RECHECK, EntryKind.SETTING]
)
def test_entries_of_another_version_are_readable(kind: EntryKind) -> None:
    lines = "\n".join(shown(kind, {"of tomorrow": "x\x1b[2Jy", "by": "\x1b[2Jme", "text": "\x07", "key": "\x07"}))

    assert "of tomorrow: xy" in lines
    assert not set(lines) & {"\x1b", "\x07"}
    assert isinstance(shown(kind, {}), list)


def test_the_document_of_a_channel_is_named_for_it() -> None:
    setting = LogEntry("slack:T1/C1", EntryKind.SETTING, {"key": "paused", "was": False, "now": True}, 9, DAY)
    channel = audit_view.build_turn_document([setting])
    turn = audit_view.build_turn_document([*logged(), LogEntry("abc123", EntryKind.DELIVERED, DELIVERED, 4, DAY)])

    assert (channel["channel"], "answer_id" in channel) == ("slack:T1/C1", False)
    assert channel["entries"][0]["body"] == {"key": "paused", "was": False, "now": True}
    assert (turn["answer_id"], turn["entries"][3]["body"]) == ("abc123", DELIVERED)
