"""Slack's modals: each page of any evidence is valid, and all pages together are complete."""

import json

import pytest
from hypothesis import given, settings

from bot.platforms.slack.actions import (
    BACK,
    ON,
    build_comment_modal,
    build_evidence_modal,
    build_notice_modal,
    parse_comment,
    parse_page_turn,
)
from bot.views.catalog import translate
from bot.views.turn_view import EvidenceItem, EvidenceView, ShownSource
from tests.bot.slack.payloads import elements, harmful, lines, texts
from tests.bot.views.views import evidences
from tests.platforms.slack.methods.views import checked
from tests.thorough import sample

LANGUAGES = ["en", "de", "fr", "es", "it", "pt", "nl", "ru", "zh", "ja", "ar"]


def pages(view: EvidenceView) -> list[dict]:
    """Return all pages, by turning them."""
    found = [build_evidence_modal(view, "7", 0, "en")]
    while forward := [element for element in elements(found[-1]["blocks"], "button") if element["action_id"] == ON]:
        of, page = parse_page_turn(forward[0]["value"])
        found.append(build_evidence_modal(view, of, page, "en"))
    return found


@settings(max_examples=sample(25))
@given(view=evidences)
def test_any_evidence_is_shown_completely(view: EvidenceView) -> None:
    for page in pages(view):
        assert checked(page) == page
        assert len(json.dumps(page)) < 250_000
        assert harmful(f"{text}\n" for text in texts(page["blocks"])) == []


def test_more_than_a_hundred_blocks_are_paged() -> None:
    items = tuple(
        EvidenceItem(f"Claim {n}", "Confirmed", f"Reason {n}", (ShownSource(0, "P", quote=f"Q{n}"),)) for n in range(60)
    )
    found = pages(EvidenceView("Evidence", "Why?", items))
    said = [line for page in found for line in lines(page["blocks"])]

    assert len(found) == 4
    assert [line for line in said if "Claim" in line] == [f"Confirmed: Claim {n}" for n in range(60)]
    assert [line for line in said if "Reason" in line] == [f"Reason {n}" for n in range(60)]
    assert [line for line in said if "“Q" in line] == [f"“Q{n}”" for n in range(60)]
    (back,) = [element for element in elements(found[1]["blocks"], "button") if element["action_id"] == BACK]
    assert parse_page_turn(back["value"]) == ("7", 0)
    assert build_evidence_modal(EvidenceView("Evidence", "Why?", items), "7", 99, "en") == found[-1]
    assert [len(elements(page["blocks"], "divider")) for page in found[:-1]] == [16] * 3
    assert "Evidence" not in said


@pytest.mark.parametrize("language", LANGUAGES)
def test_comment_and_notice_modals_are_valid_in_every_language(language: str) -> None:
    for modal in (
        build_comment_modal(7, "down", language),
        build_comment_modal(7, "rate", language, at="C1"),
        build_notice_modal(translate("evidence", language), "Not here.", language),
    ):
        assert checked(modal) == modal
        assert "…" not in json.dumps([modal["title"], modal["close"]], ensure_ascii=False)


def test_submitted_comment_is_parsed() -> None:
    view = build_comment_modal(7, "down", "en")

    assert parse_comment({**view, "state": {"values": {"comment": {"text": {"value": "Too long"}}}}}) == (
        7,
        "down",
        "Too long",
    )
    assert parse_comment({**view, "state": {"values": {"comment": {"text": {"value": None}}}}}) == (7, "down", "")
    ticked = {"missed": {"missed": {"selected_options": [{"value": "missed"}]}}, "comment": {"text": {"value": "Why"}}}
    assert parse_comment({**view, "state": {"values": ticked}}) == (7, "missed", "Why")
    assert parse_comment({"callback_id": "other"}) is None
    rated = {"rating": {"rating": {"selected_option": {"value": "4"}}}, "comment": {"text": {"value": None}}}
    form = build_comment_modal(7, "rate", "en")
    assert parse_comment({**form, "state": {"values": rated}}) == (7, "4", "")
    assert parse_comment({**form, "state": {"values": {}}}) is None
    assert parse_page_turn("nothing") is None


def test_claims_of_answer_and_model_have_separate_headings() -> None:
    items = (
        EvidenceItem("Said", "Confirmed", "", (ShownSource(1, "P", quote="Said"),), heading="In the answer"),
        EvidenceItem("Guessed", "Unknown", "", (), (ShownSource(0, "Q", quote="Other"),), heading="On the way"),
    )
    blocks = build_evidence_modal(EvidenceView("Evidence", "Why?", items), "7", 0, "en")["blocks"]

    assert [element["text"]["text"] for element in elements(blocks, "header")] == ["In the answer", "On the way"]
    assert lines(blocks) == [
        "Why?",
        "Confirmed: Said",
        "“Said”",
        "[1] P",
        "Unknown: Guessed",
        translate("evidence_looked_at", "en"),
        "“Other”",
        "Q",
    ]
