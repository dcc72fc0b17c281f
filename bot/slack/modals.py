"""What Slack shows in modals: a turn's evidence page by page, a comment on an answer, and a sentence of ours; pure.

A modal takes 100 blocks. Of more evidence the pages are turned with buttons, whose value says of what and which page:
whoever handles them looks the evidence up anew, for what may be read may have changed meanwhile.
"""

from datetime import UTC, tzinfo
from typing import Any, Literal

from bot.desk.answer_actions import MAX_COMMENT
from bot.slack.buttons import PREFIX, label, words
from bot.slack.limits import MODAL, units
from bot.slack.rendering import NOTHING
from bot.slack.rich_text import rich_text
from bot.views.catalog import translate
from bot.views.pagination import paginate_evidence
from bot.views.render_tree import MessagePage, MessagePart, PartKind
from bot.views.turn_view import EvidenceView

Json = dict[str, Any]

EVIDENCE, COMMENT = f"{PREFIX}evidence", f"{PREFIX}comment"
"""The callback ids."""
BACK, ON = f"{PREFIX}page:back", f"{PREFIX}page:on"
"""The action ids of the buttons that turn pages."""
_TITLE = 24
_HEADER = 150


def evidence_modal(view: EvidenceView, of: str, page: int, language: str, zone: tzinfo = UTC) -> Json:
    """Return a page of what a turn checked.

    Args:
        view: The evidence.
        of: What it is the evidence of, such as the ticket: it comes back when a page is turned.
        page: Which page, from 0; the nearest where there are not so many.
        language: The reader's.
        zone: Whose days dates are.
    """
    pages = paginate_evidence(view, MODAL, language, zone)
    page = min(max(page, 0), len(pages) - 1)
    turning = [_turning(of, page, len(pages))] if len(pages) > 1 else []
    return _modal(EVIDENCE, view.heading, [*_blocks(pages[page], view.heading), *turning], language)


def turned(value: str) -> tuple[str, int] | None:
    """Return of what, and which page, a button that turns pages means; None where it is none of ours."""
    of, _, page = value.rpartition(":")
    return (of, int(page)) if of and page.isascii() and page.isdigit() else None


def comment_modal(ticket: int, opinion: Literal["up", "down"], language: str) -> Json:
    """Return what asks for a comment on an answer; `commented` reads it."""
    field: Json = {"type": "plain_text_input", "action_id": "text", "multiline": True, "max_length": MAX_COMMENT}
    asked = label(translate("slack_comment_label", language), 2_000)
    block = {"type": "input", "block_id": "comment", "optional": True, "label": asked, "element": field}
    made = _modal(COMMENT, translate("comment", language), [block], language, close="slack_cancel")
    return {
        **made,
        "submit": label(translate("slack_send", language), _TITLE),
        "private_metadata": f"{opinion}:{ticket}",
    }


def commented(view: Json) -> tuple[int, Literal["up", "down"], str] | None:
    """Return the ticket, the opinion and the comment of a submitted view; None where it is none of ours."""
    opinion, _, ticket = str(view.get("private_metadata", "")).partition(":")
    if view.get("callback_id") != COMMENT or opinion not in {"up", "down"} or not ticket.isdigit():
        return None
    text = view.get("state", {}).get("values", {}).get("comment", {}).get("text", {}).get("value") or ""
    return int(ticket), "up" if opinion == "up" else "down", str(text)


def words_modal(heading: str, text: str, language: str) -> Json:
    """Return a modal that says a sentence of ours, such as that something cannot be shown here, or is looked up."""
    view = EvidenceView(heading, "", text=text)
    return _modal(EVIDENCE, heading, _blocks(paginate_evidence(view, MODAL, language)[0], heading), language)


def _modal(name: str, heading: str, blocks: list[Json], language: str, *, close: str = "slack_close") -> Json:
    shown = blocks or [{"type": "section", "text": {"type": "plain_text", "text": NOTHING}}]
    title, close = label(heading.strip() or NOTHING, _TITLE), translate(close, language)
    return {"type": "modal", "callback_id": name, "title": title, "close": label(close, _TITLE), "blocks": shown}


def _blocks(page: MessagePage, title: str) -> list[Json]:
    """Return a page's blocks: its title stands above already, and a line parts each claim from what is before it."""
    shown = list[Json]()
    for part in page.parts:
        block = None if part.kind is PartKind.HEADING and _text(part) == title else _block(part)
        if (
            block
            and shown
            and (part.kind is PartKind.HEADING or (part.kind is PartKind.CLAIM and not _heads(shown[-1])))
        ):
            shown.append({"type": "divider"})
        shown += [block] if block else []
    return shown


def _block(part: MessagePart) -> Json | None:
    """Return a part as a block. A claim stands out: it is the heading of what follows."""
    if part.kind is PartKind.HEADING and 0 < units(text := words(_text(part))) <= _HEADER:
        return {"type": "header", "text": {"type": "plain_text", "text": text}}
    return rich_text(MessagePart(PartKind.LABEL, part.runs) if part.kind is PartKind.CLAIM else part)


def _heads(block: Json) -> bool:
    return bool(block["type"] == "header")


def _text(part: MessagePart) -> str:
    return "".join(run.text for run in part.runs)


def _turning(of: str, page: int, pages: int) -> Json:
    back = _turn(BACK, f"◀ {page}/{pages}", f"{of}:{page - 1}") if page else None
    forward = _turn(ON, f"{page + 2}/{pages} ▶", f"{of}:{page + 1}") if page + 1 < pages else None
    return {"type": "actions", "elements": [one for one in (back, forward) if one]}


def _turn(action: str, text: str, value: str) -> Json:
    return {"type": "button", "action_id": action, "text": label(text), "value": value}
