"""Tests of verifying the record of a turn."""

from typing import Any

import pytest

from storage.record.proof.verification import QUOTE_JOIN, AuditFinding, verify_turn
from storage.types import EntryKind, LogEntry, hash_passage

TEXT = "It opened in 1911. It burned down in 1923. It was built again."


def citation(number: int = 1, *, quote: str = "It opened in 1911.", text: str = TEXT, **changes: Any) -> dict[str, Any]:
    """Make a citation as it is recorded; its hash is right unless it is given."""
    about = {"title": "Hall", "section": "History", "passage_hash": hash_passage("Hall", "History", text)}
    return {"number": number, "quote": quote, "passage_text": text, "passage_id": "p", **about, **changes}


def sentence(text: str = "It opened in 1911.", *citations: int) -> dict[str, Any]:
    """Make a sentence as it is recorded; by default it cites 1."""
    return {"text": text, "citations": list(citations or (1,))}


def record(*, system: str = "extractive", **body: Any) -> tuple[LogEntry, ...]:
    """Make the entries of one turn that was closed with `body`."""
    whole = {"system": system, "status": "answered", "citations": [citation()], "sentences": [sentence()], **body}
    return LogEntry("t", EntryKind.TURN_OPENED, {}), LogEntry("t", EntryKind.TURN_CLOSED, whole)


@pytest.mark.parametrize(
    "entries",
    [
        (),
        record()[:1],
        record(),
        record(sentences=[], citations=[]),
        record(citations=[citation(quote=f"It opened in 1911.{QUOTE_JOIN}It was built again.")]),
        record(
            citations=[citation(quote=f"It opened in 1911.{QUOTE_JOIN}It was built again.")],
            sentences=[sentence(), sentence("It was built again.")],
        ),
        record(
            citations=[citation(quote="Wait … what?", text="So. Wait … what? No.")],
            sentences=[sentence("Wait … what?")],
        ),
        record(
            citations=[citation(), citation(2, quote="It burned down in 1923.")],
            sentences=[sentence("It burned down in 1923.", 1, 2)],
        ),
        record(
            citations=[citation(quote="It opened in 1911. It burned down in 1923.")],
            sentences=[sentence("It burned down in 1923."), sentence()],
        ),
        record(
            citations=[citation(quote="It burned down in 1923."), citation()],
            sentences=[sentence("It burned down in 1923."), sentence()],
        ),
        record(
            citations=[citation(quote="Run:\n\ngo\nstop", text="Run:\n\ngo\nstop")],
            sentences=[sentence("Run:\n\n```\ngo\nstop\n```")],
        ),
        record(
            citations=[citation(quote=f"Take:{QUOTE_JOIN}- a hat", text="Take:\n- a badge\n- a hat")],
            sentences=[sentence("Take:\n- a hat")],
        ),
        record(
            citations=[citation(quote="Row: a; Fee: 1\nRow: b; Fee: 2", text="Row: a; Fee: 1\nRow: b; Fee: 2")],
            sentences=[sentence("Row: a; Fee: 1"), sentence("Row: b; Fee: 2")],
        ),
        record(
            citations=[citation(quote="甲的费用是一百元。乙的是两百元。", text="甲的费用是一百元。乙的是两百元。")],
            sentences=[sentence("甲的费用是一百元。"), sentence("乙的是两百元。")],
        ),
        record(system="wikichat", sentences=[sentence("The hall opened in 1911.")]),
    ],
)
def test_consistent_record_has_no_findings(entries: tuple[LogEntry, ...]) -> None:
    assert verify_turn(entries) == ()


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        ({"sentences": [{"text": "So.", "citations": []}]}, "'So.' cites nothing"),
        ({"sentences": [{"text": "So."}]}, "'So.' cites nothing"),
        ({"sentences": [sentence("It opened in 1911.", 1, 2)]}, "'It opened in 1911.' cites 2, which is not there"),
        ({"sentences": [sentence("It opened in 1912.")]}, "'It opened in 1912.' is not what it quotes"),
        ({"sentences": [sentence("opened")]}, "'opened' is not what it quotes"),
        (
            {"citations": [citation(quote="It opened in 1912.")], "sentences": []},
            "citation 1: its quote is not in its passage",
        ),
        (
            {"citations": [citation(quote=f"It opened in 1911.{QUOTE_JOIN}It sank.")]},
            "citation 1: its quote is not in its passage",
        ),
        ({"citations": [citation(quote="")], "sentences": []}, "citation 1: its quote is not in its passage"),
        ({"citations": [citation(quote="So."), citation()]}, "citation 1: its quote is not in its passage"),
        (
            {"citations": [citation(title="Other hall")]},
            "citation 1: its passage does not have the hash that was recorded",
        ),
        (
            {"citations": [citation(passage_hash="")]},
            "citation 1: its passage does not have the hash that was recorded",
        ),
    ],
)
def test_inconsistent_turn_is_found(body: dict[str, Any], finding: str) -> None:
    assert verify_turn(record(**body)) == (AuditFinding("t", finding),)


def test_model_sentence_needs_existing_citations() -> None:
    (finding,) = verify_turn(record(system="wikichat", sentences=[sentence("The hall opened in 1911.", 7)]))

    assert finding.what.endswith("cites 7, which is not there")


ROW = "Pump: B; Price (euros): 349; Warranty: 5 years"


@pytest.mark.parametrize(
    ("said", "whole"),
    [
        ("Pump B: price 349 euros, warranty 5 years", True),
        ("B: price (euros) 349, warranty 5 years", True),
        (ROW, True),
        ("Pump B: price 349 euros", False),
        ("Pump B: price 5 euros, warranty 349 years", False),
        ("Pump B: price 349 euros, warranty 5 years and more", False),
        ("Pump A: price 349 euros, warranty 5 years", False),
    ],
)
def test_table_row_is_verified_only_if_phrased_completely_in_its_own_words(said: str, *, whole: bool) -> None:
    rows = f"Pump: A; Price (euros): 99; Warranty: 1 year\n{ROW}"
    findings = verify_turn(record(citations=[citation(quote=rows, text=rows)], sentences=[sentence(said)]))

    assert (not findings) == whole


def test_rows_with_another_between_them_are_verified():
    rows = "Pump: A; Price: 99", "Pump: B; Price: 349", "Pump: C; Price: 590"
    cited = citation(quote=f"{rows[0]}{QUOTE_JOIN}{rows[2]}", text="\n".join(rows))
    said = [sentence(text) for text in ("Pump A: price 99", "Pump C: price 590", "Pump B: price 349")]

    (finding,) = verify_turn(record(citations=[cited], sentences=said))

    assert finding.what == "'Pump B: price 349' is not what it quotes"
