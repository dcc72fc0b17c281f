"""Discord's pages of evidence and its comment modal."""

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.platforms.discord.actions import (
    build_comment_modal,
    build_evidence_message,
    parse_comment,
    parse_page_turn,
)
from bot.views.turn_view import EvidenceItem, EvidenceView, ShownSource
from tests.bot.views.views import evidences
from tests.platforms import markup
from tests.platforms.discord.bodies import EDIT, checked
from tests.platforms.discord.components import modal, nested, texts
from tests.thorough import sample

LANGUAGES = ["en", "de", "fr", "es", "it", "pt", "nl", "ru", "zh", "ja", "ar"]
MANY = EvidenceView("Evidence", "When?", tuple(EvidenceItem(f"claim {n} " * 99, "Confirmed", "") for n in range(9)))


@settings(max_examples=sample(40))
@given(view=evidences, page=st.integers(-1, 9))
def test_any_evidence_fits_discords_limits_and_contains_no_ping_or_link(view: EvidenceView, page: int) -> None:
    body = build_evidence_message(view, "123456789", page, "en")

    checked(body, EDIT, new=True)
    said = list(texts(body["components"]))
    assert [one for text in said for one in (*markup.pings(text), *markup.links(text))] == []


def test_evidence_pages_have_buttons_to_their_neighbours() -> None:
    said, page, turns = "", 0, 0
    while True:
        body = build_evidence_message(MANY, "sources", page, "en")
        said += "".join(texts(body["components"]))
        ids = [parse_page_turn(one["custom_id"]) for _, one in nested(body["components"]) if "custom_id" in one]
        assert (("sources", page - 1) in ids) == (page > 0)
        if ("sources", page + 1) not in ids:
            break
        page, turns = page + 1, turns + 1

    assert turns > 1
    assert [said.count(f"claim {n}") for n in range(9)] == [99] * 9
    assert (
        parse_page_turn("footnote:stop:7")
        is parse_page_turn("footnote:page:on::1")
        is parse_page_turn("footnote:page:on:7:x")
        is None
    )


def test_quotation_of_several_claims_is_shown_once() -> None:
    page = ShownSource(1, "Harbour", "Tides", quote="The tide rises four metres.")
    items = (EvidenceItem("One", "", "", (page,)), EvidenceItem("Two", "", "", (), (page,)))
    said = "".join(texts(build_evidence_message(EvidenceView("Evidence", "?", items), "7", 0, "en")["components"]))

    assert (said.count("four metres"), said.count("Harbour")) == (1, 2)


def test_comment_modal_is_valid_and_its_submission_parsed() -> None:
    for language in LANGUAGES:
        assert list(modal(build_comment_modal(7, "down", language))) == []
        assert list(modal(build_comment_modal(7, "rate", language))) == []
    sent = {
        "custom_id": "footnote:comment:down:7",
        "components": [{"type": 18, "component": {"type": 4, "custom_id": "text", "value": "Wrong."}}],
    }
    rows = {**sent, "components": [{"type": 1, "components": [{"type": 4, "custom_id": "text", "value": "Wrong."}]}]}

    chosen = {"type": 18, "component": {"type": 3, "custom_id": "missed", "values": ["missed"]}}
    assert parse_comment(sent) == parse_comment(rows) == (7, "down", "Wrong.")
    assert parse_comment({**sent, "components": [chosen, *sent["components"]]}) == (7, "missed", "Wrong.")
    assert parse_comment({"custom_id": "footnote:comment:up:7"}) == (7, "up", "")
    rated = {"type": 18, "component": {"type": 3, "custom_id": "rating", "values": ["4"]}}
    form = {"custom_id": "footnote:comment:rate:7", "components": [rated, *sent["components"]]}
    assert parse_comment(form) == (7, "4", "Wrong.")
    assert parse_comment({**form, "components": sent["components"]}) is None
    for custom_id in ("footnote:comment:sideways:7", "footnote:comment:up:x", "footnote:about", ""):
        assert parse_comment({**sent, "custom_id": custom_id}) is None
