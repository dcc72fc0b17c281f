"""Any view as Discord's messages: within all limits, with every footnote, and with no unintended ping or link."""

import re
from dataclasses import replace
from html import unescape
from itertools import chain
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.platforms.discord.directory import read_text as read
from bot.platforms.discord.interactions import build_sentence
from bot.platforms.discord.messages import (
    DiscordMessage,
    build_body,
    build_mark,
    build_nonce,
    build_post,
    is_showing,
    parse_button,
    parse_mark,
    render_first,
    render_messages,
)
from bot.platforms.discord.wiring import render_settings
from bot.views.message_layout import build_blocks
from bot.views.sanitize import sanitize_url, strip_invisible
from bot.views.turn_view import Button, ButtonAction, ClaimCard, ShownSource, View
from pipeline.types import AnsweredSentence
from tests.bot.views.moments import FINAL, LONG
from tests.bot.views.views import DAY, views
from tests.platforms import markup
from tests.platforms.discord.bodies import CREATE, EDIT, checked
from tests.platforms.discord.components import nested, numbered, texts
from tests.thorough import sample

PEOPLE = st.lists(st.sampled_from(["101", "123456789012345678"]), max_size=3).map(tuple)
_MARKUP = re.compile(r"(?<!\\)\*\*|(?<!\\)\*(?=\S)|(?<=\S)(?<!\\)\*|^-# |^> ", re.MULTILINE)
_PERSON = re.compile(r"<@\d+>")


def buttons(*actions: ButtonAction) -> tuple[Button, ...]:
    return tuple(Button(action, action.value, 7) for action in actions)


def content(message: DiscordMessage) -> list[str]:
    return list(texts(list(message.components)))


def squeezed(text: str) -> str:
    return "".join(markup.UNSEEN.sub("", text).split())


def ids(message: DiscordMessage) -> list[str]:
    return [one["custom_id"] for _, one in nested(list(message.components)) if "custom_id" in one]


@settings(max_examples=sample(60))
@given(view=views, people=PEOPLE)
@example(view=View(7, left_out="[a]\\:"), people=())
def test_any_view_fits_the_platforms_limits_without_unintended_pings_or_links(
    view: View, people: tuple[str, ...]
) -> None:
    view = replace(view, mentions=people)
    made = render_messages(view)
    # The readers decode entities in addresses, as clients may.
    shown_sources = (*view.sources, *view.nearest, *filter(None, [view.quote]))
    urls = {unescape(sanitize_url(source.url)) for source in shown_sources}

    for message in made:
        checked(build_post(message, "key", build_nonce("key", 0), reply_to="1"), CREATE, new=True)
        checked(build_body(message, "key"), EDIT, new=True)
        said = content(message)
        payloads = [_PERSON.sub("", one) for one in said]
        for payload in (*payloads, "\n".join(payloads)):
            assert markup.pings(payload) == markup.links(payload) == []
            assert {url for url, _ in markup.own_links(payload)} <= urls - {""}
        assert set(message.people) == {one[2:-1] for text in said for one in _PERSON.findall(text)}
    pinged = [one for message in made for text in content(message) for one in _PERSON.findall(text)]
    assert pinged == [f"<@{person}>" for person in people]


@settings(max_examples=sample(60))
@given(view=views)
def test_every_part_of_a_view_is_rendered(view: View) -> None:
    view = replace(view, mentions=())
    made = render_messages(view)
    texts_ = [text for message in made for text in content(message)]
    shown_ = squeezed("".join(texts_).replace("\\", ""))

    for number in chain(
        *(sentence.citations for sentence in view.sentences), (shown.number for shown in view.sources if shown.number)
    ):
        assert f"[{number}]" in shown_
    urls = [sanitize_url(source.url) for source in (*view.sources, *view.nearest, *filter(None, [view.quote]))]
    if not any(urls):
        bare = "".join(markup.discord_words(_MARKUP.sub("", text)) for text in texts_)
        signs = str.maketrans("", "", "✅❌❔⏳*…")
        whole = "".join(run.text for block in build_blocks(view, DAY.tzinfo) for group in block.groups for run in group)
        assert squeezed(bare).translate(signs) == squeezed(strip_invisible(whole)).translate(signs)
    pressable = [name for message in made for name in ids(message)]
    assert pressable == list(
        dict.fromkeys(f"footnote:{button.action.value}:{button.ticket}" for button in view.buttons)
    )


@settings(max_examples=sample(30))
@given(view=views)
def test_view_in_progress_is_one_message(view: View) -> None:
    message = render_first(view)

    checked(build_body(message, "key"), EDIT, new=True)
    assert len(ids(message)) == len({button.action for button in view.buttons})


def test_parts_of_an_answer_are_rendered_in_reading_order() -> None:
    view = View(
        7,
        "en",
        notice="Only quotations are given.",
        sentences=(AnsweredSentence("The quay opens at seven.", (1,)), AnsweredSentence("So do <shops>.", (1, 2))),
        left_out="1 of 3 statements was left out.",
        sources=(ShownSource(1, "Harbour", "Hours", DAY, "https://e.org/h"), ShownSource(2, "Shops")),
        buttons=buttons(ButtonAction.EVIDENCE, ButtonAction.UP, ButtonAction.DOWN, ButtonAction.RETRACT),
        done=True,
    )
    (message,) = render_messages(view)
    work, answer, row = message.components

    assert [markup.discord_words(text) for text in texts([work])] == ["**Only quotations are given.**"]
    assert [markup.discord_words(text) for text in texts([answer])] == [
        "The quay opens at seven. [1] So do <shops>. [1][2]",
        "-# 1 of 3 statements was left out.",
        "[1] [Harbour](<https://e.org/h>) › Hours · 2026-03-01\n[2] Shops",
    ]
    assert [parse_button(one["custom_id"]) for one in row["components"]] == [
        (ButtonAction.EVIDENCE, 7),
        (ButtonAction.UP, 7),
        (ButtonAction.DOWN, 7),
        (ButtonAction.RETRACT, 7),
    ]


def test_claims_have_verdict_signs_and_the_quotation_is_in_quote_markup() -> None:
    view = View(
        7,
        "en",
        status="Checking …",
        claims=(
            ClaimCard(1, "supported", "The quay is open.", ("Harbour",)),
            ClaimCard(2, "refuted"),
            ClaimCard(3, "unknown"),
            ClaimCard(4, "checking"),
        ),
        quote=ShownSource(0, "Harbour", url="https://e.org/h", quote="*Open* to\n@everyone"),
        quote_label="Meanwhile:",
        buttons=buttons(ButtonAction.STOP),
    )
    (message,) = render_messages(view)
    work, row = message.components

    assert [markup.discord_words(text) for text in texts([work])] == [
        "-# Checking …",
        "✅ *Confirmed*: The quay is open. · Harbour",
        "❌ *A statement was refuted and is left out*",
        "❔ *A statement could not be confirmed and is left out*",
        "⏳ *Checking a statement …*",
        "**Meanwhile:**",
        "> “*Open* to\n> @everyone”\n[Harbour](<https://e.org/h>)",
    ]
    assert row["components"][0]["custom_id"] == "footnote:stop:7"


def test_label_is_in_the_container_of_its_part() -> None:
    view = View(7, "en", nearest_label="Nearest:", nearest=(ShownSource(0, "Harbour"),), done=True)
    (box,) = render_messages(view)[0].components

    assert len(list(texts([box]))) == 2


def test_only_our_own_buttons_are_parsed() -> None:
    assert parse_button("footnote:stop:7") == (ButtonAction.STOP, 7)
    for custom_id in ("other:stop:7", "footnote:dance:7", "footnote:stop:x", "footnote:stop:", "footnote:stop:٧"):
        assert parse_button(custom_id) is None


def test_empty_view_is_a_valid_message() -> None:
    (message,) = render_messages(View(7))

    checked(build_post(message, "key", build_nonce("key", 0)), CREATE, new=True)


def test_question_mark_and_texts_of_a_posted_message_are_read_back() -> None:
    (message,) = render_messages(FINAL)
    body: dict[str, Any] = build_post(message, "discord:1/2/3", build_nonce("discord:1/2/3", 0))
    numbered(body["components"])

    assert parse_mark(body) == build_mark("discord:1/2/3") != build_mark("discord:1/2/4")
    assert is_showing(body, build_body(message, "discord:1/2/3"))
    assert not is_showing(body, build_body(render_messages(LONG)[0], "discord:1/2/3"))
    assert parse_mark({"components": [{"type": 17, "id": 1}]}) == parse_mark({}) == 0
    assert "Sentence 1 of the answer. [1]" in read(body)
    assert "[4] Page 4 › Part · 2026-03-04" in read(body)


def test_nonces_differ_by_question_page_and_replaced_message() -> None:
    made = {
        build_nonce("a", 0),
        build_nonce("a", 1),
        build_nonce("b", 0),
        build_nonce("a", 0, "5"),
        build_nonce("a", 0),
    }

    assert len(made) == 4
    assert {len(one) for one in made} == {25}


def test_settings_text_mentions_people_and_marks_commands() -> None:
    told = markup.UNSEEN.sub("", render_settings("ask: discord:1/2\nWith `/footnote KEY VALUE`, <@!3>."))
    assert told == "**ask**: <@2>\nWith `/footnote setting:KEY value:VALUE`, <@3>."
    wrong = render_settings("`@everyone` <@&9> paused: `/footnote <#1> x` [a](https://e.example)")
    assert markup.pings(wrong) == markup.links(wrong) == []
    assert len(build_sentence("ask: discord:1/2\n" * 900, render_settings)["content"]) <= 2_000
