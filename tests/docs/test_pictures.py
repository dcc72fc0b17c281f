"""What pictures are drawn from: every block that the bot makes becomes HTML, and nothing that it says does."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.showing.view import EvidenceView, View
from bot.slack.chunks import opening
from bot.slack.escaping import escaped
from bot.slack.modals import comment_modal, evidence_modal
from bot.slack.rendering import first, messages
from docs.picturing.blocks import Undrawn, drawn
from docs.picturing.marks import link, markdown, mrkdwn
from docs.picturing.pages import Done, Shown, channel, message, modal, page, thread
from docs.picturing.photographing import NoBrowser, browser
from docs.picturing.scenes import SCENES, at
from docs.picturing.staging import live
from tests.bot.showing.views import evidences, views
from tests.bot.slack.payloads import texts
from tests.platforms import markup
from tests.platforms.slack.world import BOT, Message, Stream

NAMES = {"U1": "Ana", "U2": "<b>Ben</b>"}
NASTY = """<script>alert(1)</script><img src=x onerror="alert(1)">'"&amp;</main> [x](javascript:alert(1))"""
TAGS = {"a", "b", "blockquote", "br", "code", "div", "hr", "i", "s", "span", "sup", "svg", "path", "circle"}
MARKDOWN_TAGS = {"p", "em", "strong", "pre", "ol", "ul", "li", *(f"h{n}" for n in range(1, 7))}
DRAWING = {"viewbox", "width", "height", "fill", "stroke", "stroke-width", "stroke-linejoin", "d", "cx", "cy", "r"}


class Read(HTMLParser):
    """What a browser makes of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        self.links += [str(value) for name, value in attrs if name == "href"]

    def handle_data(self, data):
        self.text += data

    @property
    def harmless(self) -> bool:
        drawn_here = self.tags <= TAGS | MARKDOWN_TAGS and self.names <= {"class", "style", "href", "start"} | DRAWING
        return drawn_here and all(one.startswith(("http://", "https://")) for one in self.links)


def words(text: str) -> str:
    return "".join(markup.UNSEEN.sub("", text).split())


@settings(max_examples=20)
@given(view=views)
def test_any_message_of_the_bots_is_drawn_and_only_our_own_html_is_in_it(view: View) -> None:
    """Whole, on its way, and live; what it says is all there."""
    chunks, _ = opening(view)
    tasks = {one["id"]: one for one in chunks if one["type"] == "task_update"}
    parts = [("task", name) for name in tasks]
    parts += [("text", one["text"]) for one in chunks if one["type"] == "markdown_text"]
    parts += [("blocks", one["blocks"]) for one in chunks if one["type"] == "blocks"]
    streamed = Message("1.0", "C1", BOT, stream=Stream(0, parts=parts, tasks=tasks))

    for blocks in (live(streamed), *(one.blocks for one in (*messages(view), first(view)))):
        assert Read(drawn(blocks, NAMES)).harmless
    for one in messages(view):
        shown = words(Read(drawn(one.blocks, NAMES)).text)
        assert all(words(text) in shown for text in texts(list(one.blocks)) if text not in {"👍", "👎"})


@settings(max_examples=10)
@given(view=evidences)
def test_any_modal_of_the_bots_is_drawn(view: EvidenceView) -> None:
    """Evidence, and what asks for a comment."""
    for body in (evidence_modal(view, "7", 0, "en"), comment_modal(7, "down", "en")):
        assert Read(modal(body, NAMES)).harmless


@settings(max_examples=50)
@given(text=st.one_of(st.text(max_size=60), st.sampled_from([NASTY, "<@U2> <https://x.example/?a=1&amp;b|y>"])))
def test_whatever_is_written_stays_text(text: str) -> None:
    """In mrkdwn, in streamed Markdown, as an address, as a name, in what is around blocks."""
    shown = Shown(text, text, text=text, alone=True)
    around = (thread(text, shown, [shown, Done(text, text)], NAMES), channel(text, [shown], {"U2": text}))
    for made in (mrkdwn(text, NAMES), markdown(text), link(text, text), message(shown, NAMES), *around):
        assert Read(made).harmless


def test_what_is_marked_up_is_drawn_so() -> None:
    """Mentions have names, links their labels, entities are what they stand for; escaped text has no markup."""
    assert mrkdwn("<@U1> &lt;b&gt;", NAMES) == '<span class="mention">@Ana</span> &lt;b&gt;'
    assert mrkdwn("<https://x.example/|Page>", NAMES) == '<a href="https://x.example/">Page</a>'
    assert Read(mrkdwn(escaped("<@U1> <https://x.example|y>"), NAMES)).tags == set()
    assert link("javascript:alert(1)", "Page") == "Page"


def test_a_page_runs_nothing_and_asks_nobody() -> None:
    """Neither a script nor a font nor a picture from elsewhere."""
    made = page(message(Shown("Ana", "10:02", text="Hello"), NAMES))

    assert "default-src 'none'" in made
    assert not re.search(r"url\(|@import|<script|src=|https?://", made)


def test_a_block_of_another_kind_is_refused() -> None:
    """So that no picture leaves out what people would see."""
    with pytest.raises(Undrawn, match="video"):
        drawn([{"type": "video"}])


def test_scenes_play_at_different_times_and_have_different_names() -> None:
    """A message's time is its name, and pictures lie side by side."""
    assert len({at(scene) for scene in SCENES}) == len({scene.name for scene in SCENES}) == len(SCENES)


def test_without_a_browser_it_says_what_to_install() -> None:
    """In one line."""
    with pytest.raises(NoBrowser, match="apt-get install chromium"):
        browser("")
