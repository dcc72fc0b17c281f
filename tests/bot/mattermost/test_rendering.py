"""Any view as Mattermost's posts: within the limit, with every footnote, and with no ping or link but what is meant."""

import re
from dataclasses import replace
from html import unescape
from itertools import chain

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.platforms.mattermost.events import MattermostBotIdentity, is_to_others, read_own_text, split_command
from bot.platforms.mattermost.messages import (
    Callback,
    MattermostPost,
    PostMark,
    build_props,
    build_rating_form,
    escape_markdown,
    read_emoji,
    read_mark,
    render_first,
    render_messages,
)
from bot.views.catalog import list_languages
from bot.views.message_layout import build_blocks
from bot.views.sanitize import sanitize_url, strip_invisible
from bot.views.turn_view import Button, ButtonAction, View
from tests.bot.views.views import DAY, views
from tests.platforms import markup
from tests.platforms.hostile_text import texts
from tests.platforms.mattermost import transcript
from tests.platforms.mattermost.api import MAX_MESSAGE
from tests.platforms.mattermost.state import ANA, BEN, BOT, CLEO, Post
from tests.thorough import sample

US = MattermostBotIdentity(BOT, "footnote", {})
NAMES = {ANA: "ana", BEN: "ben_benson"}
PEOPLE = st.lists(st.sampled_from([ANA, BEN, CLEO]), max_size=3, unique=True).map(tuple)
BUTTONS = tuple(Button(action, action.value, 7) for action in ButtonAction)


def posted(post: MattermostPost) -> Post:
    return Post("", BOT, "", post.text, props=build_props(post, None, None))


def squeezed(text: str) -> str:
    return "".join(markup.UNSEEN.sub("", text).split())


@settings(max_examples=sample(25))
@given(view=views, people=PEOPLE)
def test_any_view_fits_the_platforms_limits_without_unintended_pings_or_links(
    view: View, people: tuple[str, ...]
) -> None:
    view = replace(view, mentions=people)
    made = render_messages(view, names=NAMES)

    shown_sources = (*view.sources, *view.nearest, *filter(None, [view.quote]))
    urls = {unescape(sanitize_url(source.url)) for source in shown_sources}  # as the readers of links decode them
    for post in map(posted, (*made, render_first(view))):
        assert 0 < len(post.message) <= MAX_MESSAGE
        assert set(transcript.links(post)) <= urls - {""}
        assert {ping.split()[0] for ping in transcript.pings(post, {})} <= {
            f"@{NAMES[person]}" for person in people if person in NAMES
        }
    said = squeezed("".join(transcript.words(post.text) for post in made))
    for number in chain(
        *(sentence.citations for sentence in view.sentences), (shown.number for shown in view.sources if shown.number)
    ):
        assert f"[{number}]" in said
    if all(len(url) < 100 for url in urls) and not people:
        whole = "".join(run.text for block in build_blocks(view, DAY.tzinfo) for group in block.groups for run in group)
        marks = re.compile(r"[*>⏳✅❌❔…]")
        assert marks.sub("", said) == marks.sub("", squeezed(strip_invisible(whole)))


@settings(max_examples=sample(25))
@given(text=texts)
@example(text="C:\\data\\\\x \\d \\* \\")
def test_escaped_text_keeps_its_words(text: str) -> None:
    made = escape_markdown(text)

    assert squeezed(transcript._ESCAPED.sub(r"\1", made)) == squeezed(strip_invisible(text))
    assert squeezed(read_own_text(escape_markdown("It is so (2 * 3, a_b) ~ #1."))) == "Itisso(2*3,a_b)~#1."


def test_buttons_are_signed_and_reactions_are_explained() -> None:
    post, callback = MattermostPost("Yes.", BUTTONS), Callback("https://bot.example.com/x", b"secret")
    legend, buttons = build_props(post, PostMark("k", 1, 7), None), build_props(post, None, callback)["attachments"][0]

    assert transcript.pressable(Post("", BOT, "", "", props=legend)) == tuple(transcript._SIGNS.values())
    assert read_mark({"props": legend}) == PostMark("k", 1, 7)
    contexts = [one["integration"]["context"] for one in buttons["actions"]]
    assert [callback.read(context) for context in contexts] == [(action, 7) for action in ButtonAction]
    assert callback.read({**contexts[0], "ticket": 8}) is None
    assert callback.read({**contexts[0], "action": "share"}) is None
    assert Callback("", b"other").read(contexts[0]) is None


@pytest.mark.parametrize("language", list_languages())
def test_rating_form_fits_the_servers_limits(language: str) -> None:
    """The limits are in bytes: `Dialog.IsValid` in server/public/model/integration_action.go."""
    form = build_rating_form(language, "7:proof")

    assert all(0 < len(text.encode()) <= 24 for text in (form["title"], *(e["display_name"] for e in form["elements"])))
    assert [option["value"] for option in form["elements"][0]["options"]] == list("543210")


def test_form_is_signed_for_its_user_and_channel() -> None:
    callback = Callback("https://bot.example.com/x", b"secret")
    sent = {"state": callback.sign_form(7, "u", "c"), "user_id": "u", "channel_id": "c"}

    assert callback.read_form(sent) == 7
    for change in (
        {"user_id": "v"},
        {"channel_id": "d"},
        {"state": sent["state"].replace("7", "8", 1)},
        {"state": "x"},
    ):
        assert callback.read_form({**sent, **change}) is None


@pytest.mark.parametrize(
    ("emoji", "action"),
    [
        ("+1", ButtonAction.UP),
        ("thumbsup", ButtonAction.UP),
        ("-1_dark_skin_tone", ButtonAction.DOWN),
        ("WASTEBASKET", ButtonAction.RETRACT),
        ("tada", None),
    ],
)
def test_reaction_is_mapped_to_its_action(emoji: str, action: ButtonAction | None) -> None:
    assert read_emoji(emoji) is action


@pytest.mark.parametrize(
    ("raw", "command", "text", "others"),
    [
        ("@footnote, *when* was it?", None, "when was it?", True),
        ("@Footnote !check It `is` so.", "check", "It is so.", True),
        ("!private Who?", "private", "Who?", False),
        ("!settings paused on", "settings", "paused on", False),
        ("!unknown thing", None, "!unknown thing", False),
        ("@footnotes are nice", None, "@footnotes are nice", True),
        ("Is it, @channel?", None, "Is it, @channel?", True),
        ("Ask ana@example.com or @ben", None, "Ask ana@example.com or @ben", False),
        ("See [the page](https://example.com).", None, "See the page.", False),
    ],
)
def test_commands_and_mentions_are_parsed(raw: str, command: str | None, text: str, others: object) -> None:
    assert split_command(raw, US) == (command, text)
    assert is_to_others(raw) is others
