"""Slack's two kinds of marked-up text as HTML; pure, and whatever is not markup is escaped.

Of mrkdwn only what stands in angle brackets or backticks is markup here, for the bot's own text has no other.
"""

import html
import re
from collections.abc import Mapping

from markdown_it import MarkdownIt

from tools.pictures.markup import link, mention, plain

_TOKEN = re.compile(r"<([^<>\n|]*)(?:\|([^<>\n]*))?>|(?<!\u2060)`(?!\u2060)(?P<code>[^`\n]+)`(?!\u2060)")


def mrkdwn(text: str, names: Mapping[str, str]) -> str:
    """Return a text in which `<@U1>` mentions one of the `names`, and `<address|label>` links."""
    done, shown = 0, list[str]()
    for found in _TOKEN.finditer(text):
        made = _code(found["code"]) if found["code"] else _token(found[1], found[2] or "", names)
        shown += [plain(html.unescape(text[done : found.start()])), made]
        done = found.end()
    return "".join([*shown, plain(html.unescape(text[done:]))])


def markdown(text: str) -> str:
    """Return a streamed text; HTML in it is text."""
    return str(MarkdownIt("commonmark", {"html": False}).render(text))


def _code(text: str) -> str:
    return f"<code>{plain(html.unescape(text))}</code>"


def _token(target: str, label: str, names: Mapping[str, str]) -> str:
    if target.startswith("@"):
        return mention(target[1:], names)
    if target[:1] in {"#", "!"}:
        return f'<span class="mention">{plain(label or target)}</span>'
    return link(html.unescape(target), html.unescape(label))
