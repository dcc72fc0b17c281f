"""What pictures of Slack are drawn from: every block that the bot makes becomes HTML, and nothing that it says does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.platforms.slack.slack_actions import build_comment_modal, build_evidence_modal
from bot.platforms.slack.slack_markup import escape_mrkdwn
from bot.platforms.slack.slack_messages import render_first, render_messages
from bot.platforms.slack.slack_streaming import build_opening_chunks
from bot.views.turn_view import EvidenceView, View
from tests.bot.slack.payloads import texts
from tests.bot.views.views import evidences, views
from tests.platforms.slack.world import BOT, Message, Stream
from tests.thorough import sample
from tests.tools.page_reading import NASTY, Read, words
from tools.pictures.markup import Undrawn
from tools.pictures.picture_page import Done
from tools.pictures.slack.block_drawing import drawn
from tools.pictures.slack.slack_markdown import markdown, mrkdwn
from tools.pictures.slack.slack_page import Shown, channel, message, modal, thread
from tools.pictures.slack.slack_stage import live

NAMES = {"U1": "Ana", "U2": "<b>Ben</b>"}


@settings(max_examples=sample(20))
@given(view=views)
def test_any_message_of_the_bots_is_drawn_and_only_our_own_html_is_in_it(view: View) -> None:
    """Whole, on its way, and live; what it says is all there."""
    chunks, _ = build_opening_chunks(view)
    tasks = {one["id"]: one for one in chunks if one["type"] == "task_update"}
    parts = [("task", name) for name in tasks]
    parts += [("text", one["text"]) for one in chunks if one["type"] == "markdown_text"]
    parts += [("blocks", one["blocks"]) for one in chunks if one["type"] == "blocks"]
    streamed = Message("1.0", "C1", BOT, stream=Stream(0, parts=parts, tasks=tasks))

    for blocks in (live(streamed), *(one.blocks for one in (*render_messages(view), render_first(view)))):
        assert Read(drawn(blocks, NAMES)).harmless
    for one in render_messages(view):
        shown = words(Read(drawn(one.blocks, NAMES)).text)
        assert all(words(text) in shown for text in texts(list(one.blocks)) if text not in {"👍", "👎"})


@settings(max_examples=10)
@given(view=evidences)
def test_any_modal_of_the_bots_is_drawn(view: EvidenceView) -> None:
    """Evidence, and what asks for a comment."""
    for body in (build_evidence_modal(view, "7", 0, "en"), build_comment_modal(7, "down", "en")):
        assert Read(modal(body, NAMES)).harmless


@settings(max_examples=sample(50))
@given(text=st.one_of(st.text(max_size=60), st.sampled_from([NASTY, "<@U2> <https://x.example/?a=1&amp;b|y>"])))
def test_whatever_is_written_stays_text(text: str) -> None:
    """In mrkdwn, in streamed Markdown, as an address, as a name, in what is around blocks."""
    shown = Shown(text, text, text=text, alone=True)
    around = (thread(text, shown, [shown, Done(text, text)], NAMES), channel(text, [shown], {"U2": text}))
    for made in (mrkdwn(text, NAMES), markdown(text), message(shown, NAMES), *around):
        assert Read(made).harmless


def test_what_is_marked_up_is_drawn_so() -> None:
    """Mentions have names, links their labels, entities are what they stand for; escaped text has no markup."""
    assert mrkdwn("<@U1> &lt;b&gt;", NAMES) == '<span class="mention">@Ana</span> &lt;b&gt;'
    assert mrkdwn("<https://x.example/|Page>", NAMES) == '<a href="https://x.example/">Page</a>'
    assert Read(mrkdwn(escape_mrkdwn("<@U1> <https://x.example|y>"), NAMES)).tags == set()


def test_a_block_of_another_kind_is_refused() -> None:
    """So that no picture leaves out what people would see."""
    with pytest.raises(Undrawn, match="video"):
        drawn([{"type": "video"}])
