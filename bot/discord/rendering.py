"""A view as Discord's messages, made of Components V2; pure.

What is being done stands in a container of its own (status, claims with their signs, the quotation meanwhile), what
is answered in another beneath it, then the buttons. Components are plain JSON, as Discord takes it: what is tested is
what leaves.

The first component of a message carries the mark of its question as its `id`, which Discord keeps and hands back.
"""

from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any

from bot.discord.buttons import buttons
from bot.discord.limits import COMPONENTS
from bot.discord.markdown import is_person, markdown
from bot.views.pagination import paginate_view
from bot.views.render_tree import MessagePage, MessagePart, PartKind
from bot.views.turn_view import View

Json = dict[str, Any]

TEXT, CONTAINER = 10, 17
NOTHING = "…"
_WORK = frozenset({PartKind.STATUS, PartKind.NOTICE, PartKind.COLLAPSED, PartKind.LABEL, PartKind.QUOTE})


@dataclass(frozen=True, slots=True)
class Message:
    """What a message is made of."""

    components: tuple[Json, ...]
    people: tuple[str, ...] = ()
    """Whom it mentions."""


def messages(view: View, zone: tzinfo = UTC) -> tuple[Message, ...]:
    """Return the messages that show a view whole: one at least."""
    return tuple(map(rendered, paginate_view(view, COMPONENTS, zone)))


def first(view: View, zone: tzinfo = UTC) -> Message:
    """Return one message with the beginning of a view and all its buttons: for a view on the way."""
    pages = paginate_view(view, COMPONENTS, zone)
    return rendered(MessagePage(pages[0].parts, pages[-1].rows))


def rendered(page: MessagePage) -> Message:
    """Return the message that is a page."""
    shown = [(part, text) for part in page.parts if (text := markdown(part))]
    work = _work([part for part, _ in shown])
    boxes = [_container([text for _, text in group]) for group in (shown[:work], shown[work:]) if group]
    people = dict.fromkeys(run.text for part in page.parts for run in part.runs if is_person(run))
    return Message((*(boxes or [_container([NOTHING])]), *buttons(page.rows)), tuple(people))


def _work(parts: list[MessagePart]) -> int:
    """Return how many parts of a page say what is being done; a label belongs to what comes after it."""
    end = next((place for place, part in enumerate(parts) if not _is_work(part)), len(parts))
    return end - 1 if 0 < end < len(parts) and parts[end - 1].kind is PartKind.LABEL else end


def _is_work(part: MessagePart) -> bool:
    """Return whether a part says what is being done: of claims those that are checked on the way."""
    return bool(part.state) if part.kind is PartKind.CLAIM else part.kind in _WORK


def _container(texts: list[str]) -> Json:
    return {"type": CONTAINER, "components": [{"type": TEXT, "content": text} for text in texts]}
