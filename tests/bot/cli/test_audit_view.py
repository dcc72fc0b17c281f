"""A turn of the record as text: searches, calls, claims and withheld sentences, in order."""

import io
from dataclasses import replace
from datetime import UTC

from rich.console import Console

from bot.cli.rendering.audit_view import format_usage, render_turn
from bot.views.turn_story import collect_passages
from storage.types import EntryKind, LogEntry
from tests.bot.fake_services import DAY, document, logged, passage

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


def shown(*bodies: dict, full: bool = False, indexed: dict | None = None, opening: dict | None = None) -> list[str]:
    *steps, closed = bodies
    opened, _, end = logged()
    entries = [
        replace(opened, body=opening or opened.body),
        *(LogEntry("abc123", EntryKind.STEP, body, at=DAY) for body in steps),
        replace(end, body=closed),
    ]
    return rendered(entries, full=full, indexed=indexed)


def rendered(entries: list[LogEntry], *, full: bool = False, indexed: dict | None = None) -> list[str]:
    console = Console(file=io.StringIO(), width=80, color_system=None, force_terminal=False)
    console.print(render_turn(entries, UTC, collect_passages(entries, indexed or {}), full=full))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_turn_reads_call_by_call() -> None:
    search = {
        "stage": "search",
        "query": "quay",
        "time": 2026,
        "hits": [["p1", 1.25], ["p2", 1.0]],
        "milliseconds": 3.0,
    }
    lines = shown(search, VERIFY | {"finish": "stopped"}, FEEDBACK, CLOSED)
    start = lines.index("search · 3 ms")

    assert lines[start : start + 8] == [
        "search · 3 ms",
        "  “quay” (2026): 2 passages",
        "    1.25 p1",
        "      its text is no longer stored",
        "    1.00 p2",
        "      its text is no longer stored",
        "verify · small-model · 438 ms · 1,272 + 31 tokens · 2 attempts · stopped early",
        "  claim: The quay opens at eight.",
    ]
    assert lines[start + 8].startswith("  reply: Reasoning: the sentence says so, the")
    assert lines[start + 11 : start + 13] == ["refine (feedback) · 9 ms", "  error: ModelRefused: no"]


def test_full_view_omits_nothing() -> None:
    text = "\n".join(shown(VERIFY, CLOSED, full=True))

    assert "    Verdict: SUPPORTS" in text
    for expected in ("sentences: p1:0-24", "talk: 1", "reasoning: Let me think.", "format: text"):
        assert expected in text
    assert "Verdict: SUPPORTS" not in "\n".join(shown(VERIFY, CLOSED))


def test_claims_and_withheld_sentences_show_their_reasons() -> None:
    lines = shown(CLOSED)
    start = lines.index("claims")

    assert lines[start:] == [
        "claims",
        "  REFUTES (model) The quay opens at eight.",
        "    It opens at seven.",
        "    by p1",
        "      its text is no longer stored",
        "",
        "withheld",
        "  It is lovely.",
        "    too little of its meaning is in the passages",
        "",
        "The quay opens at seven. [1]",
    ]
    assert "  usage: 2 calls in 1 round, 1,272 + 31 tokens, cost 0.00125" in lines


def test_passages_and_evidence_show_their_text() -> None:
    hits = [[name, 1.0, "handbook", "harbour.md"] for name in ("p1", "p2", "p3", "p4", "p5", "p6", "p7")]
    search = {"stage": "search", "query": "quay", "hits": hits, "milliseconds": 3.0}
    cited = {"passage_id": "p1", "title": "Harbour\x1b[2J hours", "passage_text": "It opens at seven."}
    claims = [CLOSED["claims"][0] | {"evidence": ["p1", "p2", "p9"]}]
    lines = shown(
        search,
        {"claims": claims, "nearest": [cited], "citations": [cited]},
        indexed={"p2": (passage(number=2), document())},
    )

    start = lines.index("  “quay”: 7 passages") + 1
    assert lines[start : start + 6] == [
        "    1.00 Harbour hours",
        "      It opens at seven.",
        "    1.00 Harbour › Hours (https://example.com/harbour.md)",
        "      The quay opens at seven. It closes at nine.",
        "    1.00 harbour.md (handbook: harbour.md)",
        "      its text is no longer stored",
    ]
    assert "    and 2 passages more: --full" in lines
    by = [line for line in lines if line.startswith("    by ")]
    assert by == ["    by Harbour hours", "    by Harbour › Hours (https://example.com/harbour.md)", "    by p9"]


def test_asker_and_place_are_shown_with_known_names() -> None:
    asker = {"platform": "slack", "workspace": "T1", "channel": "C1", "user": "U1", "name": "Ada\x1b[2J"}
    opening = {"question": "Why?", "asker": asker, "corpora": {"handbook": DAY.isoformat(), "wiki": None}, "ticket": 7}
    lines = shown({}, opening=opening)

    assert lines[:5] == [
        "turn opened · 2026-03-01 12:00 UTC",
        "    “Why?”",
        "  asked by: Ada (slack:T1/U1)",
        "  in: slack:T1/C1",
        "  could read: handbook (as of 2026-03-01 12:00), wiki",
    ]


def test_erased_entries_are_marked() -> None:
    entries = [LogEntry("abc123", kind, {}, at=DAY, erased=True) for kind in EntryKind]
    assert rendered(entries).count("  erased: its text was removed from the record") == len(entries)


def test_sentences_of_an_interrupted_turn_are_shown() -> None:
    lines = shown({"status": "failed", "text": "It failed.", "spoken": [{"text": "The quay opens at seven."}]})

    assert lines[lines.index("shown before it stopped") + 1] == "  The quay opens at seven."


def test_records_of_older_versions_can_be_read() -> None:
    assert "search · 0 ms" in shown({"stage": "search"}, {"stage": "search", "error": "gone"}, {})
    assert shown({"template": "verify"}, {"claims": [{}], "withheld": [{}], "usage": None})


def test_recorded_controls_are_removed() -> None:
    evil = {**VERIFY, "stage": "\x1b[2J", "model": "\x1b[2J", "reply": "\x1b[2J\nx\x07", "error": "\x1b[2J"}
    for full in (True, False):
        assert not set("".join(shown(evil, CLOSED, full=full))) & {"\x1b", "\x07"}


def test_zero_usage_is_not_shown() -> None:
    assert format_usage({"llm_calls": 0, "cost": None}) == ""
    assert "cost" not in format_usage({"llm_calls": 1, "cost": None})
