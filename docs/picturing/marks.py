"""Slack's two kinds of marked-up text as HTML; pure, and whatever is not markup is escaped.

Of mrkdwn only what stands in angle brackets or backticks is markup here, for the bot's own text has no other.
"""

import html
import re
from collections.abc import Mapping

from markdown_it import MarkdownIt

_TOKEN = re.compile(r"<([^<>\n|]*)(?:\|([^<>\n]*))?>|(?<!\u2060)`(?!\u2060)(?P<code>[^`\n]+)`(?!\u2060)")
_ADDRESS = re.compile(r"https?://[^\s]+")
_THUMBS: Mapping[str, str] = {"👍": "", "👎": ' class="down"'}
_THUMB = (
    '<svg{} viewBox="0 0 20 20" width="16" height="16" fill="none" stroke="#555" stroke-width="1.5" '
    'stroke-linejoin="round"><path d="M3 9h3v8H3zM6 9l4-7c2 0 2 1 2 2l-1 4h5c1 0 2 1 1.6 2.2l-1.6 5.4'
    'c-.3.9-.8 1.4-1.8 1.4H6"/></svg>'
)

_SIGNS: Mapping[str, str] = {
    emoji: f'<span class="emoji {name}">{sign}</span>'
    for emoji, name, sign in (("✅", "complete", "✓"), ("❌", "error", "✗"), ("❔", "unknown", "?"))
}
_SIGN = re.compile("|".join(_SIGNS))


def plain(text: str) -> str:
    """Return a text that is shown as it stands. Emoji are drawn, for not every machine has a font with them."""
    if text in _THUMBS:
        return _THUMB.format(_THUMBS[text])
    shown = html.escape(text, quote=True).replace("\n", "<br>")
    return _SIGN.sub(lambda found: _SIGNS[found[0]], shown)


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


def link(url: str, label: str) -> str:
    """Return a link; anything but an address of the web is its label alone."""
    if not _ADDRESS.fullmatch(url):
        return plain(label or url)
    return f'<a href="{html.escape(url, quote=True)}">{plain(label or url)}</a>'


def mention(user: str, names: Mapping[str, str]) -> str:
    """Return somebody who is mentioned."""
    return f'<span class="mention">@{plain(names.get(user, user))}</span>'


def _code(text: str) -> str:
    return f"<code>{plain(html.unescape(text))}</code>"


def _token(target: str, label: str, names: Mapping[str, str]) -> str:
    if target.startswith("@"):
        return mention(target[1:], names)
    if target[:1] in {"#", "!"}:
        return f'<span class="mention">{plain(label or target)}</span>'
    return link(html.unescape(target), html.unescape(label))
