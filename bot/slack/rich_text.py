"""Parts of a page as Slack's `rich_text` blocks; pure.

Slack parses nothing in their text, unlike in mrkdwn and Markdown: what a passage says is shown as it stands, asterisks
and all, and only elements of their own link (`link`) or ping (`user`), which are made here of sources' addresses and of
`View.mentions` alone. The text is defused all the same, for clients that think they see an address, and because
`text`, notifications and exports are read by others.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from bot.views.render_tree import MessagePart, PartKind, TextRun, TextStyle
from bot.views.sanitize import defang_text
from storage.language.lazy_pattern import lazy_compile

Json = dict[str, Any]

_PARTS: dict[PartKind, Json] = {
    PartKind.STATUS: {"italic": True},
    PartKind.COLLAPSED: {"italic": True},
    PartKind.LEFT_OUT: {"italic": True},
    PartKind.HEADING: {"bold": True},
    PartKind.LABEL: {"bold": True},
    PartKind.NOTICE: {"bold": True},
}
_RUNS: dict[TextStyle, Json] = {TextStyle.NOTE: {"italic": True}, TextStyle.TITLE: {"bold": True}}
_LONGEST_URL = 3_000
PERSON = lazy_compile(r"[UW][A-Z0-9]{1,30}")
"""A person's id."""


def rich_text(part: MessagePart) -> Json | None:
    """Return the block that shows a part; None where nothing of it can be seen."""
    elements = [made for quote, runs in groupby(part.runs, _quoted) if (made := _element(runs, part.kind, quote=quote))]
    return {"type": "rich_text", "elements": elements} if elements else None


def _quoted(run: TextRun) -> bool:
    return run.style is TextStyle.QUOTE


def _element(runs: Iterable[TextRun], kind: PartKind, *, quote: bool) -> Json | None:
    inline = list(_trimmed([made for run in runs if (made := _inline(run, _PARTS.get(kind, {})))]))
    return {"type": "rich_text_quote" if quote else "rich_text_section", "elements": inline} if inline else None


def _inline(run: TextRun, style: Json) -> Json | None:
    if run.style is TextStyle.PERSON and PERSON.fullmatch(run.text):
        return {"type": "user", "user_id": run.text}
    text = defang_text(run.text)
    if not text:
        return None
    linked = run.url and len(run.url) <= _LONGEST_URL
    made: Json = {"type": "link", "url": run.url, "text": text} if linked else {"type": "text", "text": text}
    style = {**style, **({} if linked else _RUNS.get(run.style, {}))}
    return {**made, "style": style} if style else made


def _trimmed(inline: list[Json]) -> Iterator[Json]:
    """Yield the elements without line breaks at their ends: each group of them begins a line of its own."""
    last = len(inline) - 1
    for place, made in enumerate(inline):
        text = str(made.get("text", ""))
        text = text.lstrip("\n") if place == 0 else text
        text = text.rstrip("\n") if place == last else text
        if text or "text" not in made:
            yield {**made, "text": text} if "text" in made else made
