"""Escape text for Slack, decode what people write there, and build `rich_text` blocks; pure.

Escaping is the very last step before text leaves, once for each piece.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from bot.platforms.shared.payload_text import JsonObject, build_stripper
from bot.views.message_layout import MessagePart, PartKind, TextRun, TextStyle
from bot.views.sanitize import WORD_JOINER, defang_text, sanitize_url
from storage.language.lazy_pattern import lazy_compile

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_FORMATTING = lazy_compile(r"(?<!\w)[*_~`]|[*_~`](?!\w)|[*~`]")
_MARKDOWN = lazy_compile(r"[\\`*_~|\[\]()!]")


def escape_mrkdwn(text: str) -> str:
    """Return text as mrkdwn shows it: the same words, no ping, no link, no formatting.

    In Markdown it is as harmless, but asterisks and backticks would be taken for formatting there.
    """
    return _FORMATTING.sub(_escape_formatting, defang_text(text)).translate(_ENTITIES)


def escape_markdown(text: str) -> str:
    """Return text as a markdown block or a streamed chunk shows it: the same words, no ping, no link, no formatting."""
    return _MARKDOWN.sub(r"\\\g<0>", defang_text(text)).translate(_ENTITIES)


def format_link(title: str, url: str) -> str:
    """Return a link for mrkdwn to a stored document's address; what cannot be linked to is shown as text."""
    target, label = sanitize_url(url), escape_mrkdwn(_clean_label(title, url))
    return (
        f"<{target.translate(_ENTITIES)}|{label}>"
        if target
        else _join_title_and_url(label, escape_mrkdwn(url), title, url)
    )


def format_markdown_link(title: str, url: str) -> str:
    """Return a link for Markdown to a stored document's address; what cannot be linked to is shown as text."""
    target, label = sanitize_url(url), escape_markdown(_clean_label(title, url))
    return (
        f"[{label}]({target.translate(_ENTITIES)})"
        if target
        else _join_title_and_url(label, escape_markdown(url), title, url)
    )


def _escape_formatting(found: re.Match[str]) -> str:
    return f"{WORD_JOINER}{found[0]}{WORD_JOINER}"


def _clean_label(title: str, url: str) -> str:
    return " ".join(title.split()) or " ".join(url.split())


def _join_title_and_url(label: str, shown: str, title: str, url: str) -> str:
    return f"{label} ({shown})" if title.strip() and url.strip() else label


strip_formatting = build_stripper(lines=r">{1,3}[ \t]*|[•◦▪][ \t]+", marks=(r"\*", "_", "~"))
"""Takes the marks out of plain text that Slack shows as formatting."""

_ANGLES = lazy_compile(r"<(?P<mark>[@#!]?)(?P<what>[^<>|]*)(?:\|(?P<label>[^<>]*))?>")
_ENTITY = lazy_compile(r"&(amp|lt|gt);")
_PLAIN_FORMS = {"amp": "&", "lt": "<", "gt": ">"}
_BROADCASTS = {"here", "channel", "everyone"}


def decode_mrkdwn(text: str) -> str:
    return _ENTITY.sub(lambda found: _PLAIN_FORMS[found[1]], _ANGLES.sub(_decode_angle, text))


def _decode_angle(found: re.Match[str]) -> str:
    mark, what, label = found["mark"], found["what"], found["label"] or ""
    if mark == "!":
        return label or (f"@{what}" if what in _BROADCASTS else "")
    if mark:
        return f"{mark}{(label or what).lstrip(mark)}"
    return f"{label} ({what})" if label and label != what and not what.endswith(label) else what


_PARTS: dict[PartKind, JsonObject] = {
    PartKind.STATUS: {"italic": True},
    PartKind.COLLAPSED: {"italic": True},
    PartKind.LEFT_OUT: {"italic": True},
    PartKind.HEADING: {"bold": True},
    PartKind.LABEL: {"bold": True},
    PartKind.NOTICE: {"bold": True},
}
_RUNS: dict[TextStyle, JsonObject] = {TextStyle.NOTE: {"italic": True}, TextStyle.TITLE: {"bold": True}}
_LONGEST_URL = 3_000
PERSON = lazy_compile(r"[UW][A-Z0-9]{1,30}")  # a person's id


def build_rich_text(part: MessagePart) -> JsonObject | None:
    """Return the block that shows a part; None where nothing of it can be seen."""
    elements = [
        made for quote, runs in groupby(part.runs, _is_quote) if (made := _build_element(runs, part.kind, quote=quote))
    ]
    return {"type": "rich_text", "elements": elements} if elements else None


def _is_quote(run: TextRun) -> bool:
    return run.style is TextStyle.QUOTE


def _build_element(runs: Iterable[TextRun], kind: PartKind, *, quote: bool) -> JsonObject | None:
    inline = list(_trim_line_breaks([made for run in runs if (made := _build_inline(run, _PARTS.get(kind, {})))]))
    return {"type": "rich_text_quote" if quote else "rich_text_section", "elements": inline} if inline else None


def _build_inline(run: TextRun, style: JsonObject) -> JsonObject | None:
    if run.style is TextStyle.PERSON and PERSON.fullmatch(run.text):
        return {"type": "user", "user_id": run.text}
    text = defang_text(run.text)
    if not text:
        return None
    linked = run.url and len(run.url) <= _LONGEST_URL
    made: JsonObject = {"type": "link", "url": run.url, "text": text} if linked else {"type": "text", "text": text}
    style = {**style, **({} if linked else _RUNS.get(run.style, {}))}
    return {**made, "style": style} if style else made


def _trim_line_breaks(inline: list[JsonObject]) -> Iterator[JsonObject]:
    """Yield the elements without line breaks at their ends: each group of them begins a line of its own."""
    last = len(inline) - 1
    for place, made in enumerate(inline):
        text = str(made.get("text", ""))
        text = text.lstrip("\n") if place == 0 else text
        text = text.rstrip("\n") if place == last else text
        if text or "text" not in made:
            yield {**made, "text": text} if "text" in made else made
