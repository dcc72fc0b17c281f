"""Text, links and mentions as HTML, on any platform; pure. Whatever is written stays text."""

import html
import re
from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]
Names = Mapping[str, str]
"""Of people, by their ids."""
_ADDRESS = re.compile(r"https?://[^\s]+")
_THUMBS: Mapping[str, str] = {"👍": "", "👎": ' class="down"'}
_THUMB = (
    '<svg{} viewBox="0 0 20 20" width="16" height="16" fill="none" stroke="currentColor" stroke-width="1.5" '
    'stroke-linejoin="round"><path d="M3 9h3v8H3zM6 9l4-7c2 0 2 1 2 2l-1 4h5c1 0 2 1 1.6 2.2l-1.6 5.4'
    'c-.3.9-.8 1.4-1.8 1.4H6"/></svg>'
)

_SIGNS: Mapping[str, str] = {
    emoji: f'<span class="emoji {name}">{sign}</span>'
    for emoji, name, sign in (
        ("✅", "complete", "✓"),
        ("❌", "error", "✗"),
        ("❔", "unknown", "?"),
        ("⏳", "waiting", ""),
    )
}
_SIGN = re.compile("|".join(_SIGNS))


class Undrawn(Exception):
    """There is a kind of block or component that nothing here draws."""


def plain(text: str) -> str:
    """Return a text that is shown as it stands. Emoji are drawn, for not every machine has a font with them."""
    if text in _THUMBS:
        return _THUMB.format(_THUMBS[text])
    shown = html.escape(text, quote=True).replace("\n", "<br>")
    return _SIGN.sub(lambda found: _SIGNS[found[0]], shown)


def link(url: str, label: str) -> str:
    """Return a link; anything but an address of the web is its label alone."""
    if not _ADDRESS.fullmatch(url):
        return plain(label or url)
    return f'<a href="{html.escape(url, quote=True)}">{plain(label or url)}</a>'


def mention(user: str, names: Mapping[str, str]) -> str:
    """Return somebody who is mentioned."""
    return f'<span class="mention">@{plain(names.get(user, user))}</span>'
