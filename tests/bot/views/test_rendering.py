"""Pages as posted, with each run escaped once: within the platform's limits, and harmless."""

from collections.abc import Callable
from itertools import chain

import pytest
from hypothesis import example, given, settings

from bot.platforms.discord import messages as discord
from bot.platforms.discord import messages as discord_limits
from bot.platforms.slack import messages as slack
from bot.platforms.slack import messages as slack_limits
from bot.views.message_layout import MessagePart, TextRun, TextStyle, build_blocks, paginate_view
from bot.views.sanitize import sanitize_url, strip_invisible
from bot.views.turn_view import ShownSource, View
from tests.bot.views.views import DAY, views
from tests.platforms.markup import discord_words, links, markdown_words, own_links, pings, slack_words
from tests.thorough import sample

WAYS = {
    "mrkdwn": (slack_limits.SECTIONS, slack.escape_mrkdwn, slack.format_link, "*", slack_words),
    "markdown": (slack_limits.MARKDOWN, slack.escape_markdown, slack.format_markdown_link, "**", markdown_words),
    "content": (discord_limits.CONTENT, discord.escape_markdown, discord.format_link, "**", discord_words),
    "components": (discord_limits.COMPONENTS, discord.escape_markdown, discord.format_link, "**", discord_words),
}


def rendered(part: MessagePart, escape: Callable[[str], str], link: Callable[[str, str], str], bold: str) -> str:
    def render_run(run: TextRun) -> str:
        if run.url:
            return link(run.text, run.url)
        return f"{bold}{escape(run.text)}{bold}" if run.style is TextStyle.NOTE else escape(run.text)

    return "".join(map(render_run, part.runs))


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "replace")) // 2


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=sample(15))
@given(view=views)
def test_posts_are_within_limits_and_harmless(way: str, view: View) -> None:
    limits, escape, link, bold, _ = WAYS[way]
    for page in paginate_view(view, limits):
        texts = [rendered(part, escape, link, bold) for part in page.parts]
        assert all(units(text) <= limits.part for text in texts)
        assert units("\n\n".join(texts) if limits.gap else "".join(texts)) <= limits.message
        payload = "\n\n".join(texts)
        assert pings(payload) == links(payload) == []
        targets = {run.url for part in page.parts for run in part.runs if run.url}
        assert {target for target, _ in own_links(payload)} <= targets


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=sample(15))
@given(view=views)
@example(View(7, nearest=(ShownSource(1, "", "", None, "http://evil.com:80/a?b=c#d" * 60),)))
@example(View(7, nearest=(ShownSource(1, "Its title", "", None, "http://evil.com:80/a?b=c#d" * 60),)))
def test_posted_text_reads_like_the_view(way: str, view: View) -> None:
    limits, escape, link, _, words = WAYS[way]
    texts = [rendered(part, escape, link, "") for page in paginate_view(view, limits) for part in page.parts]
    runs = [run for block in build_blocks(view, DAY.tzinfo) for run in chain(*block.groups)]
    expected = "".join(f"{run.text}{run.url if run.url != sanitize_url(run.text) else ''}" for run in runs)
    if not any(run.url for page in paginate_view(view, limits) for part in page.parts for run in part.runs):
        assert "".join("".join(map(words, texts)).split()) == "".join(strip_invisible(expected).split())
