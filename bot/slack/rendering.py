"""A view as Slack's messages: blocks, and the text for notifications and for clients that show no blocks; pure.

Text stands in `rich_text` blocks, which Slack does not parse (see `rich_text`), a claim in a `task_card`, which folds,
what is said beside the answer in `context`, and what can be pressed in `actions` and `context_actions`. The text beside
the blocks is mrkdwn, and so it is escaped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any

from bot.slack.buttons import buttons, words
from bot.slack.escaping import escaped
from bot.slack.limits import SECTIONS, units
from bot.slack.rich_text import PERSON, rich_text
from bot.views.pagination import paginate_view, split_text
from bot.views.render_tree import MessagePage, MessagePart, PartKind, TextRun, TextStyle
from bot.views.turn_view import View

Json = dict[str, Any]

CARD_STATES = {"checking": "in_progress", "supported": "complete", "refuted": "error", "unknown": "pending"}
"""Our states of a claim as Slack's of a task."""
TITLE = 256
"""Characters of a card's title."""
NOTHING = "…"
_TEXT = 3_000
_BESIDE = 2_000
_APART = frozenset({PartKind.SOURCES, PartKind.LEFT_OUT})
"""What a line parts from the answer."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a message is made of, as Slack takes it."""

    blocks: tuple[Json, ...]
    text: str


def messages(view: View, zone: tzinfo = UTC) -> tuple[Message, ...]:
    """Return the messages that show a view whole: one at least."""
    return tuple(map(rendered, paginate_view(view, SECTIONS, zone)))


def first(view: View, zone: tzinfo = UTC) -> Message:
    """Return one message with the beginning of a view and all its buttons: for a view on the way."""
    pages = paginate_view(view, SECTIONS, zone)
    return rendered(MessagePage(pages[0].parts, pages[-1].rows))


def rendered(page: MessagePage) -> Message:
    """Return the message that is a page."""
    text = fallback(page)
    shown = [*_blocks(page.parts), *buttons(page.rows)]
    return Message(tuple(shown) or ({"type": "section", "text": {"type": "mrkdwn", "text": text}},), text)


def fallback(page: MessagePage) -> str:
    """Return the text of a page as mrkdwn, cut where it gets long: the blocks have it all."""
    said, left = list[str](), _TEXT
    for run in (run for part in page.parts for run in (*part.runs, TextRun("\n"))):
        piece = _mrkdwn(run, left)
        said.append(piece)
        left -= units(piece)
        if not piece and run.text:
            break
    return "".join(said).strip() or NOTHING


def _mrkdwn(run: TextRun, left: int) -> str:
    """Return a run for mrkdwn, cut to what is left; empty where there is no room for any of it."""
    if run.style is TextStyle.PERSON and PERSON.fullmatch(run.text):
        made = f"<@{run.text}>"
    else:
        made = escaped(next(split_text(run.text, lambda text: units(escaped(text)) <= left), ""))
    return made if units(made) <= left else ""


def _blocks(parts: tuple[MessagePart, ...]) -> Iterator[Json]:
    divided = False
    for number, part in enumerate(parts):
        block = _block(part, number)
        if block and part.kind in _APART and number and not divided:
            divided = True
            yield {"type": "divider"}
        if block:
            yield block


def _block(part: MessagePart, number: int) -> Json | None:
    if part.state:
        return _card(part, number)
    return _beside(part) if part.kind is PartKind.COLLAPSED else rich_text(part)


def _beside(part: MessagePart) -> Json | None:
    """Return what is said beside the answer, in small letters."""
    text = words("".join(run.text for run in part.runs))
    if not text or units(text) > _BESIDE:
        return rich_text(part)
    return {"type": "context", "elements": [{"type": "plain_text", "text": text, "emoji": False}]}


def _card(part: MessagePart, number: int) -> Json | None:
    """Return a claim as a card; what is left of one that was cut follows as text."""
    head, *rest = part.runs
    title = words(head.text)
    if head.style is not TextStyle.NOTE or not title or units(title) > TITLE:
        return rich_text(part)
    card: Json = {"type": "task_card", "task_id": f"claim-{number}", "title": title, "status": CARD_STATES[part.state]}
    while rest and not rest[0].text.strip(" :"):
        rest = rest[1:]
    details = rich_text(MessagePart(part.kind, tuple(rest)))
    return {**card, "details": details} if details else card
