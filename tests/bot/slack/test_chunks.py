"""Streamed chunks: only news, within a live message's limits, and harmless wherever they are cut."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from bot.platforms.slack.streaming import StreamedState, build_new_chunks, build_opening_chunks
from bot.views.turn_view import ClaimCard, ShownSource, View
from pipeline.types import AnsweredSentence
from tests.bot.slack.payloads import harmful, texts
from tests.bot.views.views import views
from tests.platforms import markup
from tests.platforms.slack import limits
from tests.platforms.slack.methods.streams import _checked
from tests.thorough import sample


@settings(max_examples=sample(60))
@given(view=views, later=views)
def test_chunks_of_any_view_are_valid_and_harmless(view: View, later: View) -> None:
    made, sent = build_opening_chunks(view)
    more, sent = build_new_chunks(
        sent, replace(later, sentences=(*view.sentences, *later.sentences)) if sent.sentences else later
    )
    pieces = [text for chunk in (*made, *more) if chunk["type"] != "blocks" for text in texts(chunk)]

    _checked([*made, *more])
    assert harmful(pieces) == []
    assert sum(len(piece.encode()) for piece in pieces) < limits.STREAM_BYTES


def test_only_new_parts_of_a_view_are_appended() -> None:
    view = View(7, "en", "Looking …", claims=(ClaimCard(1, "checking"), ClaimCard(2, "checking")))
    _, sent = build_opening_chunks(view)
    assert build_new_chunks(sent, view)[0] == []

    claims = (ClaimCard(1, "supported", "It is.", ("Page",)),)
    said = replace(view, claims=claims, sentences=(AnsweredSentence("One.", (1,), "note"),))
    made, sent = build_new_chunks(sent, said)
    assert [(one.get("id"), one.get("status"), "details" in one) for one in made] == [
        ("claim-1", "complete", True),
        ("claim-2", "complete", False),
        (None, None, False),
    ]
    assert markup.slack_words(made[0]["details"]) == "It is. · Page"
    assert markup.markdown_words(made[-1]["text"]) == " (note) One. [1]"

    made, sent = build_new_chunks(
        sent,
        replace(said, status="Writing …", sentences=(*said.sentences, AnsweredSentence("Two.", (), paragraph=True))),
    )
    assert [one.get("id") for one in made] == ["status", None]
    assert markup.markdown_words(made[-1]["text"]) == "\n\nTwo."
    with pytest.raises(ValueError, match="retracted"):
        build_new_chunks(sent, view)


def test_each_quotation_gets_its_own_card() -> None:
    first = View(7, "en", "Found …", quote=ShownSource(0, "P", quote="a"), quote_label="Meanwhile:")
    second = replace(first, quote=ShownSource(0, "P", quote="b"))
    made, sent = build_opening_chunks(first)
    more, sent = build_new_chunks(sent, second)

    assert len({one["id"] for one in (*made, *more)}) == 3
    assert [markup.slack_words(one["title"]) for one in more] == ["Meanwhile:"]
    assert (
        build_new_chunks(StreamedState(), replace(first, sentences=(AnsweredSentence("One.", ()),)))[0][0]["id"]
        == "status"
    )


def test_details_already_shown_are_not_sent_again() -> None:
    view = View(7, "en", "Checking …", claims=(ClaimCard(1, "supported", "It is.", ("Page",)),))
    _, sent = build_opening_chunks(view)
    (card,), _ = build_new_chunks(sent, replace(view, claims=(ClaimCard(1, "refuted", "It is.", ("Page",)),)))

    assert (card["id"], card["status"]) == ("claim-1", "error")
    assert "details" not in card


def test_content_over_the_limit_is_left_for_the_final_update() -> None:
    view = View(7, "en", "Writing …", sentences=tuple(AnsweredSentence("word " * 100, ()) for _ in range(20)))
    _, sent = build_opening_chunks(replace(view, sentences=()))

    assert build_new_chunks(sent, view) == ([], sent)
