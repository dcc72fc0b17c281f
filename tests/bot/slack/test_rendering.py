"""Any view as Slack's messages: within all limits, with every footnote, and with no unintended ping or link."""

import re
from dataclasses import replace
from itertools import chain

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.platforms.slack.actions import render_settings
from bot.platforms.slack.events import decode_mrkdwn
from bot.platforms.slack.messages import parse_action, render_first, render_messages
from bot.views.message_layout import build_blocks
from bot.views.sanitize import sanitize_url, strip_invisible
from bot.views.turn_view import Button, ButtonAction, ClaimCard, Confirmation, ShownSource, ShownVerdict, View
from pipeline.types import AnsweredSentence
from tests.bot.slack.payloads import addresses, elements, harmful, lines, people, texts
from tests.bot.views.views import DAY, views
from tests.platforms import markup
from tests.platforms.slack.blocks import objections, too_long
from tests.thorough import sample

PEOPLE = st.lists(st.sampled_from(["U1", "W2AB"]), max_size=3).map(tuple)


def buttons(*actions: ButtonAction) -> tuple[Button, ...]:
    return tuple(Button(action, action.value, 7) for action in actions)


def words(text: str) -> str:
    return "".join(markup.UNSEEN.sub("", text).split())


@settings(max_examples=sample(60))
@given(view=views, people_=PEOPLE)
def test_any_view_fits_slacks_limits_completely_without_unintended_pings_or_links(
    view: View, people_: tuple[str, ...]
) -> None:
    view = replace(view, mentions=people_)
    made = render_messages(view)

    for message in made:
        assert objections(list(message.blocks)) == []
        assert too_long(message.blocks) == ""
        assert 0 < len(message.text) <= 4_000
        assert harmful([markup.UNSEEN.sub("\u2060", text) for text in texts(message.blocks)]) == []
        assert harmful([message.text.replace("<@U1>", "").replace("<@W2AB>", "")]) == []
    shown = [message.blocks for message in made]
    urls = {sanitize_url(source.url) for source in (*view.sources, *view.nearest, *filter(None, [view.quote]))}
    assert set(addresses(shown)) <= urls - {""}
    assert people(shown) == list(people_)
    said = words("".join(lines(shown)))
    for number in chain(
        *(sentence.citations for sentence in view.sentences), (shown.number for shown in view.sources if shown.number)
    ):
        assert f"[{number}]" in said
    if all(len(url) < 100 for url in urls):  # a long one is shown as text after its title
        whole = "".join(run.text for block in build_blocks(view, DAY.tzinfo) for group in block.groups for run in group)
        # A card's title needs no colon behind it, and a mention is shown with an @.
        assert re.sub("[:@]", "", said) == re.sub("[:@]", "", words(strip_invisible(whole)))


@settings(max_examples=sample(30))
@given(view=views)
def test_view_in_progress_is_one_message(view: View) -> None:
    message = render_first(view)

    assert objections(list(message.blocks)) == []
    assert too_long(message.blocks) == ""
    assert len(elements(message.blocks, "button")) + 2 * len(elements(message.blocks, "feedback_buttons")) == len(
        {button.action for button in view.buttons}
    )


def test_parts_of_an_answer_are_rendered_in_reading_order() -> None:
    view = View(
        7,
        "en",
        collapsed="Statements checked: 2, confirmed: 1.",
        sentences=(AnsweredSentence("The quay opens at seven.", (1,)), AnsweredSentence("So do <shops>.", (1, 2))),
        left_out="1 of 3 statements was left out.",
        sources=(ShownSource(1, "Harbour", "Hours", DAY, "https://e.org/h"), ShownSource(2, "Shops")),
        buttons=buttons(ButtonAction.EVIDENCE, ButtonAction.UP, ButtonAction.DOWN, ButtonAction.RETRACT),
        done=True,
    )
    (message,) = render_messages(view)

    assert lines(message.blocks) == [
        "The quay opens at seven. [1] So do <shops>. [1][2]",
        "1 of 3 statements was left out.",
        "[1] Harbour › Hours · 2026-03-01\n[2] Shops",
        "Statements checked: 2, confirmed: 1.",
    ]
    assert addresses(message.blocks) == ["https://e.org/h"]
    assert [block["type"] for block in message.blocks] == [
        "rich_text",
        "divider",
        "rich_text",
        "rich_text",
        "context",
        "actions",
        "context_actions",
    ]
    ids = [(element["action_id"], element["value"]) for element in elements(message.blocks, "button")]
    assert ids == [("footnote:evidence", "7"), ("footnote:retract", "7")]
    (feedback,) = elements(message.blocks, "feedback_buttons")
    assert parse_action(feedback["action_id"], feedback["positive_button"]["value"]) == (ButtonAction.UP, 7)
    assert parse_action(feedback["action_id"], feedback["negative_button"]["value"]) == (ButtonAction.DOWN, 7)
    shown = markup.UNSEEN.sub("", decode_mrkdwn(message.text))
    assert shown.splitlines()[0] == "The quay opens at seven. [1] So do <shops>. [1][2]"


def test_claims_are_task_cards_and_the_quotation_is_in_quote_markup() -> None:
    view = View(
        7,
        "en",
        status="Checking …",
        claims=(ClaimCard(1, "supported", "The quay is open.", ("Harbour",)), ClaimCard(2, "checking")),
        quote=ShownSource(0, "Harbour", url="https://e.org/h", quote="*Open* to <!channel>"),
        quote_label="Meanwhile:",
        buttons=buttons(ButtonAction.STOP),
    )
    (message,) = render_messages(view)
    cards = elements(message.blocks, "task_card")

    assert [(card["title"], card["status"]) for card in cards] == [
        ("Confirmed", "complete"),
        ("Checking a statement …", "in_progress"),
    ]
    assert lines(message.blocks)[2].strip() == "The quay is open. · Harbour"
    (quote,) = elements(message.blocks, "rich_text_quote")
    assert lines(quote) == ["“*Open* to <!channel>”"]
    assert lines(message.blocks)[-1] == "Harbour"


def test_only_our_own_buttons_are_parsed() -> None:
    assert parse_action("footnote:stop", "7") == (ButtonAction.STOP, 7)
    for action_id, value in [
        ("other:stop", "7"),
        ("footnote:dance", "7"),
        ("footnote:stop", "x"),
        ("footnote:feedback", "7"),
    ]:
        assert parse_action(action_id, value) is None


def test_empty_view_is_a_valid_message() -> None:
    (message,) = render_messages(View(7))

    assert objections(list(message.blocks)) == []
    assert message.text


def test_fact_check_lists_each_verdict_with_its_reason() -> None:
    judged = (
        ShownVerdict("✅ Confirmed", "It is.", "The documents say so.", (1,)),
        ShownVerdict("❌ No", "It was.", "Not."),
    )
    (message,) = render_messages(View(7, "en", judgements=judged))

    assert [line.strip() for line in lines(message.blocks)] == [
        "✅ Confirmed",
        "“It is.”",
        "The documents say so. [1]",
        "❌ No",
        "“It was.”",
        "Not.",
    ]
    bold = [
        markup.UNSEEN.sub("", element["text"])
        for element in elements(message.blocks, "text")
        if element.get("style") == {"bold": True}
    ]
    assert bold == ["✅ Confirmed", "❌ No"]


def test_nearest_pages_follow_their_label_directly() -> None:
    (message,) = render_messages(View(7, text="Nothing.", nearest_label="Nearest:", nearest=(ShownSource(0, "Page"),)))

    assert "divider" not in [block["type"] for block in message.blocks]


def test_irreversible_button_asks_for_confirmation() -> None:
    button = Button(ButtonAction.RETRACT, "Take back", 7, Confirmation("Take it back?", "Take back", "Leave it"))
    (message,) = render_messages(View(7, text="x", buttons=(button,)))
    (made,) = elements(message.blocks, "button")

    assert objections(list(message.blocks)) == []
    assert {name: text["text"] for name, text in made["confirm"].items()} == {
        "title": "Take back",
        "text": "Take it back?",
        "confirm": "Take back",
        "deny": "Leave it",
    }


def test_settings_text_mentions_people_and_marks_commands() -> None:
    shown = markup.UNSEEN.sub("", render_settings("ask: slack:T1/U2, with `/footnote KEY VALUE`"))
    assert shown == "ask: <@U2>, with `/footnote KEY VALUE`"
    assert render_settings("Type `/footnote KEY reset`.").startswith("Type `/footnote KEY reset`.")
    assert harmful([render_settings("`<!channel>` <@U9> `/footnote <!here>`")]) == []
