"""What pictures of Discord are drawn from: every component of the bot's becomes HTML, and nothing that it says does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.platforms.discord.discord_actions import build_evidence_message
from bot.platforms.discord.discord_messages import escape_markdown, render_first, render_messages
from bot.views.turn_view import EvidenceView, View
from tests.bot.views.views import evidences, views
from tests.platforms.discord import seeing
from tests.platforms.discord.town import town
from tests.platforms.discord.world import BOT, Message
from tests.platforms.slack.clock import FastClock
from tests.thorough import sample
from tests.tools.page_reading import NASTY, Read, words
from tools.pictures.discord.component_drawing import drawn
from tools.pictures.discord.discord_markdown import markdown
from tools.pictures.discord.discord_page import Before, Shown, channel, message
from tools.pictures.markup import Undrawn
from tools.pictures.picture_page import Done

WORLD = town(FastClock())
MARKED_UP = "<@2> [y](<https://x.example/?a=1&amp;b>) **<b>**"
NAMES = {"1": "Ana", "2": "<b>Ben</b>"}


@settings(max_examples=sample(20))
@given(view=views)
def test_any_message_of_the_bots_is_drawn_and_only_our_own_html_is_in_it(view: View) -> None:
    """Whole, and on its way; what it says is all there, once."""
    assert Read(drawn(render_first(view).components, NAMES)).harmless
    for one in render_messages(view):
        made = Read(drawn(one.components, NAMES))
        assert made.harmless
        said = seeing.words(Message("1", "201", BOT, components=[*one.components]), WORLD).split()
        shown = words(made.text)
        assert all(words(text) in shown for text in said if text.isalnum())


@settings(max_examples=10)
@given(view=evidences)
def test_any_evidence_is_drawn(view: EvidenceView) -> None:
    """With the buttons that turn its pages."""
    assert Read(drawn(build_evidence_message(view, "7", 0, "en")["components"], NAMES)).harmless


@settings(max_examples=sample(50))
@given(
    text=st.one_of(st.text(max_size=60), st.sampled_from([NASTY, "<@2> [y](<https://x.example/?a=1&amp;b>) **<b>**"]))
)
def test_whatever_is_written_stays_text(text: str) -> None:
    """In Markdown, as a name, in what stands above a message and around it."""
    shown = Shown(text, text, text=text, before=Before(text, text), alone=True, edited=True)
    used = Shown(text, text, text=text, before=Before(text, text, command=True))
    for made in (markdown(text, NAMES), message(shown, NAMES), channel(text, [used, Done(text, text)], {"2": text})):
        assert Read(made).harmless


@given(text=st.text(alphabet="ab \\\\`*_~|[]()<>#-@1:/.", max_size=30))
def test_what_the_bot_escaped_has_no_markup(text: str) -> None:
    """It is drawn as it was written."""
    made = Read(markdown(escape_markdown(text), NAMES))

    assert made.tags <= {"div"}
    assert words(made.text) == words(text)


def test_what_is_marked_up_is_drawn_so() -> None:
    """Mentions have names, links their labels, quotations and small text stand by themselves."""
    assert markdown("<@1> \\*b\\*", NAMES) == '<div><span class="mention">@Ana</span> *b*</div>'
    assert (
        markdown("[Page \\[1\\]](<https://x.example/>)", NAMES)
        == '<div><a href="https://x.example/">Page [1]</a></div>'
    )
    assert markdown("> a\n> b\n-# *c*", NAMES) == (
        '<blockquote><div>a</div><div>b</div></blockquote><div class="small"><div><em>c</em></div></div>'
    )


def test_a_component_of_another_type_is_refused() -> None:
    """So that no picture leaves out what people would see."""
    with pytest.raises(Undrawn, match="12"):
        drawn([{"type": 12}])
