"""A page's buttons as Slack's blocks, and what pressing one says; pure.

An `action_id` is `footnote:<action>` and the value the ticket. 👍 and 👎 stand together where both are there: one
element with one `action_id`, `footnote:feedback`, whose value says which, as in `up:7`.
"""

from collections.abc import Iterable
from typing import Any

from bot.views.sanitize import defang_text
from bot.views.turn_view import Button, ButtonAction, Confirmation

Json = dict[str, Any]

PREFIX = "footnote:"
FEEDBACK = f"{PREFIX}feedback"
_LONGEST = 75
_QUESTION, _ANSWER = 300, 30
_OPINIONS = (ButtonAction.UP, ButtonAction.DOWN)


def buttons(rows: Iterable[Iterable[Button]]) -> list[Json]:
    """Return rows of buttons: an `actions` block for each, and `context_actions` for feedback. Each action once."""
    found = [list(row) for row in rows]
    first = {button.action: button for row in reversed(found) for button in reversed(row)}
    opinions = [first.pop(action) for action in _OPINIONS] if first.keys() >= set(_OPINIONS) else []
    kept = [[_button(one) for one in row if first.get(one.action) is one] for row in found]
    blocks = [{"type": "actions", "elements": row} for row in kept if row]
    return [*blocks, _feedback(*opinions)] if opinions else blocks


def pressed(action_id: str, value: str) -> tuple[ButtonAction, int] | None:
    """Return what a press of a button means: the action and its ticket; None where it is no button of ours."""
    name, ticket = action_id.removeprefix(PREFIX), value
    if action_id == FEEDBACK:
        name, _, ticket = value.partition(":")
    if not (action_id.startswith(PREFIX) and name in set(ButtonAction) and ticket.isascii() and ticket.isdigit()):
        return None
    return ButtonAction(name), int(ticket)


def label(text: str, longest: int = _LONGEST) -> Json:
    """Return a plain text that is short enough for a button or a title."""
    shown = " ".join(text.split())
    shown = shown if _units(shown) <= longest else shown[: longest // 2 - 1] + "…"
    return {"type": "plain_text", "text": shown, "emoji": True}


def _button(button: Button) -> Json:
    made = {"type": "button", "text": label(button.label), "value": str(button.ticket)}
    made["action_id"] = f"{PREFIX}{button.action.value}"
    return {**made, "confirm": _asked(button.label, button.sure)} if button.sure else made


def _asked(title: str, sure: Confirmation) -> Json:
    """Return what Slack asks before it tells us that a button was pressed."""
    answers = {"confirm": label(sure.yes, _ANSWER), "deny": label(sure.no, _ANSWER)}
    return {"title": label(title), "text": label(sure.question, _QUESTION), **answers}


def _feedback(up: Button, down: Button) -> Json:
    both = {"positive_button": _opinion(up), "negative_button": _opinion(down)}
    return {"type": "context_actions", "elements": [{"type": "feedback_buttons", "action_id": FEEDBACK, **both}]}


def _opinion(button: Button) -> Json:
    return {"text": label(button.label), "value": f"{button.action.value}:{button.ticket}"}


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "replace")) // 2


def words(text: str) -> str:
    """Return a text for a field that is plain by itself, such as a card's title."""
    return defang_text(" ".join(text.split()))
