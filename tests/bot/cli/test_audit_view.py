"""How the record of a turn reads: its searches, its calls, its claims, what was withheld, in order."""

import io
from dataclasses import replace
from datetime import UTC

from rich.console import Console

from bot.cli.rendering.audit_view import format_usage, render_turn
from storage.types import EntryKind, LogEntry
from tests.bot.house import DAY, logged

LONG = "Reasoning: " + "the sentence says so, " * 30 + "\nVerdict: SUPPORTS"
VERIFY = {
    "stage": "verify",
    "template": "verify",
    "model": "small-model",
    "milliseconds": 438.2,
    "prompt_tokens": 1272,
    "completion_tokens": 31,
    "attempts": 2,
    "facts": {"claim": "The quay\x1b[2J opens at eight.", "sentences": ["p1:0-24"], "talk": 1},
    "format": "text",
    "reply": LONG,
    "reasoning": "Let me think.",
}
FEEDBACK = {"stage": "refine", "template": "feedback", "milliseconds": 9.0, "facts": {}, "error": "ModelRefused: no"}
CLOSED = {
    "status": "answered",
    "system": "wikichat",
    "text": "The quay opens at seven. [1]",
    "usage": {"llm_calls": 2, "llm_rounds": 1, "prompt_tokens": 1272, "completion_tokens": 31, "cost": 0.00125},
    "claims": [
        {
            "claim": {"text": "The quay opens at eight.", "origin": "model"},
            "verdict": "REFUTES",
            "evidence": ["p1"],
            "reasoning": "It opens at seven.",
        }
    ],
    "withheld": [{"text": "It is lovely.", "reason": "too little of its meaning is in the passages"}],
}


def shown(*bodies: dict, full: bool = False) -> list[str]:
    """Return the lines of a turn of these steps, the last of which closes it."""
    *steps, closed = bodies
    opened, _, end = logged()
    entries = [
        opened,
        *(LogEntry("abc123", EntryKind.STEP, body, at=DAY) for body in steps),
        replace(end, body=closed),
    ]
    console = Console(file=io.StringIO(), width=80, color_system=None, force_terminal=False)
    console.print(render_turn(entries, UTC, full=full))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_turn_reads_call_by_call() -> None:
    """What was asked of whom, what it took, and the beginning of what came back."""
    search = {
        "stage": "search",
        "query": "quay",
        "time": 2026,
        "hits": [["p1", 1.25], ["p2", 1.0]],
        "milliseconds": 3.0,
    }
    lines = shown(search, VERIFY | {"finish": "stopped"}, FEEDBACK, CLOSED)
    start = lines.index("search · 3 ms")

    assert lines[start : start + 4] == [
        "search · 3 ms",
        "  “quay” (2026): 2 passages",
        "verify · small-model · 438 ms · 1,272 + 31 tokens · 2 attempts · stopped early",
        "  claim: The quay opens at eight.",
    ]
    assert lines[start + 4].startswith("  reply: Reasoning: the sentence says so, the")
    assert lines[start + 7 : start + 9] == ["refine (feedback) · 9 ms", "  error: ModelRefused: no"]


def test_in_full_nothing_is_left_out() -> None:
    """Neither of the reply nor of what was asked and thought."""
    text = "\n".join(shown(VERIFY, CLOSED, full=True))

    assert "    Verdict: SUPPORTS" in text
    for expected in ("sentences: p1:0-24", "talk: 1", "reasoning: Let me think.", "format: text"):
        assert expected in text
    assert "Verdict: SUPPORTS" not in "\n".join(shown(VERIFY, CLOSED))


def test_claims_and_what_was_withheld_are_shown_with_why() -> None:
    """This is the evidence view; here alone a claim that was not confirmed is read."""
    lines = shown(CLOSED)
    start = lines.index("claims")

    assert lines[start:] == [
        "claims",
        "  REFUTES (model) The quay opens at eight.",
        "    It opens at seven.",
        "    by p1",
        "",
        "withheld",
        "  It is lovely.",
        "    too little of its meaning is in the passages",
        "",
        "The quay opens at seven. [1]",
    ]
    assert "  usage: 2 calls in 1 round, 1,272 + 31 tokens, cost 0.00125" in lines


def test_a_claim_s_evidence_is_named_by_its_page_where_the_record_has_it() -> None:
    """Of pages that are cited, and of those that are nearest in an abstention; else the passage alone is named."""
    page = {"passage_id": "p1", "title": "Harbour\x1b[2J hours"}
    claims = [CLOSED["claims"][0] | {"evidence": ["p1", "p2"]}]

    assert "    by p1 (Harbour hours), p2" in shown({"status": "abstained", "claims": claims, "nearest": [page]})
    assert "    by p1 (Harbour hours), p2" in shown({"claims": claims, "citations": [page]})


def test_what_had_left_a_turn_that_broke_off_is_shown() -> None:
    """Though the turn has no answer."""
    lines = shown({"status": "failed", "text": "It failed.", "spoken": [{"text": "The quay opens at seven."}]})

    assert lines[lines.index("said before it was cut short") + 1] == "  The quay opens at seven."


def test_records_of_older_versions_can_be_read() -> None:
    """What they left out is not shown."""
    assert "search · 0 ms" in shown({"stage": "search"}, {"stage": "search", "error": "gone"}, {})
    assert shown({"template": "verify"}, {"claims": [{}], "withheld": [{}], "usage": None})


def test_nothing_recorded_commands_the_terminal() -> None:
    """Whoever wrote it."""
    evil = {**VERIFY, "stage": "\x1b[2J", "model": "\x1b[2J", "reply": "\x1b[2J\nx\x07", "error": "\x1b[2J"}
    for full in (True, False):
        assert not set("".join(shown(evil, CLOSED, full=full))) & {"\x1b", "\x07"}


def test_what_cost_nothing_is_not_counted() -> None:
    """A turn that asked no model, or whose calls have no price."""
    assert format_usage({"llm_calls": 0, "cost": None}) == ""
    assert "cost" not in format_usage({"llm_calls": 1, "cost": None})
