"""What Discord shows to whoever presses a button: a turn's evidence page by page, and a field for a comment; pure.

Evidence takes more than a message mostly. Its pages are turned with buttons, whose `custom_id` says of what and which
page: whoever handles them looks the evidence up anew, for what may be read may have changed meanwhile.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from typing import Any, Literal

from bot.desk.answer_actions import MAX_COMMENT
from bot.discord.buttons import PREFIX, ROW, button, is_number, label
from bot.discord.limits import EVIDENCE
from bot.discord.posting import SUPPRESS_EMBEDS, V2
from bot.discord.rendering import rendered
from bot.views.catalog import translate
from bot.views.pagination import paginate_evidence
from bot.views.render_tree import MessagePage, MessagePart, PartKind
from bot.views.turn_view import EvidenceView

Json = dict[str, Any]

COMMENT, PAGE = f"{PREFIX}comment", f"{PREFIX}page"
LABEL, INPUT, PARAGRAPH = 18, 4, 2
_TITLE = 45
_MOST = 4_000
_ON, _BACK = "on", "back"


def evidence_message(view: EvidenceView, of: str, page: int, language: str, zone: tzinfo = UTC) -> Json:
    """Return a page of what a turn checked, as an answer to whoever wants to see it.

    Args:
        view: The evidence.
        of: What it is the evidence of, such as the ticket: it comes back when a page is turned. 60 characters at most.
        page: Which page, from 0; the nearest where there are not so many.
        language: The reader's.
        zone: Whose days dates are.
    """
    pages = paginate_evidence(view, EVIDENCE, language, zone)
    page = min(max(page, 0), len(pages) - 1)
    turning = [_turning(of, page, len(pages))] if len(pages) > 1 else []
    shown = rendered(MessagePage(tuple(map(_strong, pages[page].parts))))
    nobody = {"parse": list[str]()}
    return {"components": [*shown.components, *turning], "allowed_mentions": nobody, "flags": V2 | SUPPRESS_EMBEDS}


def turned(custom_id: str) -> tuple[str, int] | None:
    """Return of what, and which page, a button that turns pages means; None where it is none of ours."""
    of, _, page = custom_id.removeprefix(f"{PAGE}:").rpartition(":")
    of = of.partition(":")[2]
    return (of, int(page)) if custom_id.startswith(f"{PAGE}:") and of and is_number(page) else None


def comment_modal(ticket: int, opinion: Literal["up", "down"], language: str) -> Json:
    """Return what asks for a comment on an answer; `commented` reads it."""
    field: Json = {"type": INPUT, "custom_id": "text", "style": PARAGRAPH, "required": False}
    field["max_length"] = min(MAX_COMMENT, _MOST)
    asked = {"type": LABEL, "label": label(translate("discord_comment_label", language), _TITLE), "component": field}
    title = label(translate("comment", language), _TITLE)
    return {"custom_id": f"{COMMENT}:{opinion}:{ticket}", "title": title, "components": [asked]}


def commented(data: Mapping[str, Any]) -> tuple[int, Literal["up", "down"], str] | None:
    """Return the ticket, the opinion and the comment of a modal that was sent; None where it is none of ours."""
    custom_id = str(data.get("custom_id", ""))
    opinion, _, ticket = custom_id.removeprefix(f"{COMMENT}:").partition(":")
    if not custom_id.startswith(f"{COMMENT}:") or opinion not in {"up", "down"} or not is_number(ticket):
        return None
    text = next((value for name, value in _fields(data) if name == "text"), "")
    return int(ticket), "up" if opinion == "up" else "down", text


def _fields(component: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the fields of a modal, in labels or in rows."""
    if isinstance(component.get("value"), str):
        yield str(component.get("custom_id", "")), component["value"]
    inner = component.get("component")
    for one in (*(component.get("components") or ()), *([inner] if inner else [])):
        if isinstance(one, Mapping):
            yield from _fields(one)


def _strong(part: MessagePart) -> MessagePart:
    """Let a claim stand out: it is the heading of what follows."""
    return MessagePart(PartKind.LABEL, part.runs) if part.kind is PartKind.CLAIM else part


def _turning(of: str, page: int, pages: int) -> Json:
    back = [button(f"{PAGE}:{_BACK}:{of}:{page - 1}", f"◀ {page}/{pages}")] if page else []
    on = [button(f"{PAGE}:{_ON}:{of}:{page + 1}", f"{page + 2}/{pages} ▶")] if page + 1 < pages else []
    return {"type": ROW, "components": [*back, *on]}
