"""The text of a message, from all of its fields and without formatting."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.platforms.discord.directory import read_message_text, strip_formatting
from bot.platforms.discord.messages import render_messages
from bot.views.catalog import render_left_out, translate
from tests.bot.views.moments import FINAL

OAK = "The pier is made of oak."


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("**The pier** is *made* of __oak__.", OAK),
        ("***The pier*** ~~is~~ ||made|| of `oak`.", OAK),
        ("_The pier_ is ___made___ of ``oak``.", OAK),
        ("> The pier is\n> made of oak.", "The pier is\nmade of oak."),
        ("# The pier\n-# is made of oak.", "The pier\nis made of oak."),
        ("[The pier](https://x.example/a) is made of oak.", OAK),
        ("```py\nx = a*b*c\n```\nThe pier", "x = a*b*c\n\nThe pier"),
        ("a snake_case_name, 2*3*4 and 5 > 4, #1, **", "a snake_case_name, 2*3*4 and 5 > 4, #1, **"),
        ("C# and `__init__` at * once * so", "C# and __init__ at * once * so"),
    ],
)
def test_formatting_is_removed_and_other_signs_stay(written: str, shown: str) -> None:
    assert strip_formatting(written) == shown


@given(st.text(alphabet="ab *_~|`>#-[](:/)\n", max_size=60))
def test_stripping_formatting_keeps_every_letter(text: str) -> None:
    shown = strip_formatting(text.replace("```", "`"))
    assert [one for one in shown if one in "ab"] == [one for one in text if one in "ab"]


@pytest.mark.parametrize(
    "message",
    [
        {"content": OAK},
        {"content": "", "embeds": [{"type": "rich", "description": OAK}]},
        {"embeds": [{"title": OAK}, {"type": "link", "title": "A preview"}]},
        {"content": "", "message_snapshots": [{"message": {"content": OAK}}]},
        {"components": [{"type": 17, "components": [{"type": 10, "content": OAK}, {"type": 1, "components": []}]}]},
    ],
)
def test_text_is_read_from_content_embeds_forwards_and_components(message: dict[str, Any]) -> None:
    assert read_message_text(message, "501") == OAK


@pytest.mark.parametrize("message", [{}, {"embeds": None}, {"message_snapshots": [{}]}, {"components": [{"type": 10}]}])
def test_message_without_text_is_empty(message: dict[str, Any]) -> None:
    assert read_message_text(message, "501") == ""


def test_our_own_answer_is_read_without_footnotes() -> None:
    counted = translate("statements", "fr", checked=2, confirmed=1)
    whole = replace(FINAL, left_out=render_left_out(1, 5, "fr"), collapsed=counted)
    ours = {"author": {"id": "501"}, "components": list(render_messages(whole)[0].components)}
    said = read_message_text(ours, "501")
    assert " ".join(said.split()) == " ".join(sentence.text for sentence in FINAL.sentences)
