"""Quoted lists keep their lines and quoted code is shown as code, on every platform and on the pages."""

import pytest

from bot.pages.page_rendering import render_macro
from bot.platforms.discord.messages import render_messages as render_for_discord
from bot.platforms.mattermost.messages import render_messages as render_for_mattermost
from bot.platforms.slack.messages import render_messages as render_for_slack
from bot.platforms.slack.streaming import StreamedState, build_new_chunks
from bot.views.catalog import render_sentence
from bot.views.sanitize import WORD_JOINER
from bot.views.turn_view import View
from pipeline.types import AnsweredSentence
from tests.bot.views.views import DAY

COMMAND = "boat-ctl *roll* --to main.last @ana"
CODE = AnsweredSentence(f"To roll back:\n\n```\n{COMMAND}\nls\n```", (1,))
LIST = AnsweredSentence("Bring with you:\n- a badge\n- a hat", (1,))


def show(platform: str, sentence: AnsweredSentence) -> str:
    view = View(7, sentences=(sentence,))
    match platform:
        case "discord":
            return render_for_discord(view)[0].components[0]["components"][0]["content"]
        case "mattermost":
            return render_for_mattermost(view, {})[0].text
        case "stream":
            return build_new_chunks(StreamedState(), view)[0][-1]["text"]
        case "page":
            return render_macro("parts.html", "sentence", DAY.tzinfo, sentence)
        case _:
            return render_sentence(sentence)


@pytest.mark.parametrize("platform", ["discord", "mattermost", "stream", "text"])
def test_code_is_fenced(platform: str) -> None:
    lines = [line.strip(f" {WORD_JOINER}") for line in show(platform, CODE).strip().splitlines()]
    assert [line.replace("\\", "") for line in lines if line] == ["To roll back:", "```", COMMAND, "ls", "```", "[1]"]
    assert COMMAND in lines


def test_slack_shows_code_in_a_block_of_its_own() -> None:
    (message,) = render_for_slack(View(7, sentences=(CODE,)))
    shown = [
        (one["type"], one["elements"][0]["text"].replace(WORD_JOINER, "")) for one in message.blocks[0]["elements"]
    ]
    assert shown == [
        ("rich_text_section", "To roll back:"),
        ("rich_text_preformatted", f"{COMMAND}\nls"),
        ("rich_text_section", "[1]"),
    ]
    assert message.blocks[0]["elements"][1]["elements"][0]["text"] == f"{COMMAND}\nls"


def test_page_shows_code_as_code() -> None:
    assert f"<code>{COMMAND}\nls\n</code>" in show("page", CODE)


@pytest.mark.parametrize("platform", ["discord", "mattermost", "stream", "text", "page"])
def test_list_keeps_its_lines(platform: str) -> None:
    shown = show(platform, LIST).replace("\\", "").replace(WORD_JOINER, "")
    first, *others = shown[shown.index("Bring") :].splitlines()
    assert first in {"Bring with you:", "Bring with you:  "}
    assert [line[:7] for line in others[:2]] == ["- a bad", "- a hat"]
    assert platform != "page" or '<span class="lines">Bring' in shown
