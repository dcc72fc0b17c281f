"""Slack's rich_text block, as checks. Its text is what it says: it pings and links only by elements of their own."""

from collections.abc import Iterator
from typing import Any

from tests.platforms.slack.shapes import Check, choice, fields, kind, several, shape, string, typed, url

_BOOL = kind(bool)
_NAMES = ("bold", "italic", "strike", "code", "underline", "highlight", "client_highlight", "unlink")
_STYLE = {"style": fields({}, dict.fromkeys(_NAMES, _BOOL))}
_DETAILS = {
    "file": {"descriptor": string(), "file_id": string()},
    "external": {"app_name": string(), "app_icon_url": url()},
    "web": {"display_name": string(), "title": string(), "snippet": string(least=0)},
    "message": {"channel_id": string(), "message_ts": string()},
    "memory": {},
}
"""What each type of citation may say of its source; that of the last two is from memory."""


def _details(value: Any, where: str) -> Iterator[str]:
    yield from choice(*_DETAILS)(value.get("citation_type") if isinstance(value, dict) else None, where)
    known = _DETAILS.get(value.get("citation_type"), {}) if isinstance(value, dict) else {}
    yield from fields({"citation_type": string()}, known)(value, where)


CITATION = shape(
    "citation",
    {"url": url(), "text": string(), "index": kind(int), "details": _details},
    {"from_llm": _BOOL, "is_slack_url": _BOOL},
)
INLINE: dict[str, Check] = {
    "text": shape("text", {"text": string()}, _STYLE),
    "link": shape("link", {"url": url()}, {"text": string(), "unsafe": _BOOL, **_STYLE}),
    "user": shape("user", {"user_id": string()}, _STYLE),
    "channel": shape("channel", {"channel_id": string()}, _STYLE),
    "usergroup": shape("usergroup", {"usergroup_id": string()}, _STYLE),
    "broadcast": shape("broadcast", {"range": choice("here", "channel", "everyone")}),
    "emoji": shape("emoji", {"name": string()}, {"unicode": string(), "skin_tone": kind(int), **_STYLE}),
    "date": shape("date", {"timestamp": kind(int), "format": string()}, {"url": url(), "fallback": string(), **_STYLE}),
    "citation": CITATION,
}
_INLINES = several(typed(INLINE), least=0)
SECTION = shape("rich_text_section", {"elements": _INLINES})
_PREFORMATTED = {"text": INLINE["text"], "link": INLINE["link"]}
ELEMENTS: dict[str, Check] = {
    "rich_text_section": SECTION,
    "rich_text_list": shape(
        "rich_text_list",
        {"elements": several(SECTION), "style": choice("bullet", "ordered")},
        {
            "indent": kind(int, least=0, most=8),
            "offset": kind(int, least=0),
            "border": kind(int, least=0, most=1),
        },
    ),
    "rich_text_quote": shape("rich_text_quote", {"elements": _INLINES}, {"border": kind(int, least=0, most=1)}),
    "rich_text_preformatted": shape(
        "rich_text_preformatted",
        {"elements": several(typed(_PREFORMATTED), least=0)},
        {"border": kind(int, least=0, most=1), "language": string()},
    ),
}
RICH_TEXT = shape("rich_text", {"elements": several(typed(ELEMENTS))}, {"block_id": string(255)})


def pieces(block: Any) -> Iterator[dict[str, Any]]:
    """Yield the inline elements of a rich_text block, in order."""
    for element in block.get("elements", ()):
        if element.get("type") in ELEMENTS:
            yield from pieces(element)
        else:
            yield element
