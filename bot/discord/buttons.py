"""A page's buttons as Discord's components, and what pressing one says; pure.

A `custom_id` is `footnote:<action>:<ticket>`: all that is needed to obey it after a restart too.
"""

from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

from bot.discord.limits import units
from bot.showing.view import Action, Button

Json = dict[str, Any]

PREFIX = "footnote:"
ROW, BUTTON = 1, 2
PRIMARY, SECONDARY, DANGER = 1, 2, 4
_LONGEST = 80
_STYLES = MappingProxyType({Action.STOP: DANGER, Action.EVIDENCE: PRIMARY})


def buttons(rows: Iterable[Iterable[Button]]) -> list[Json]:
    """Return rows of buttons. Each stands there once; none that would publish what its asker alone sees unasked."""
    found = [[one for one in row if not _must_be_asked_first(one)] for row in rows]
    first = {_id(one): one for row in reversed(found) for one in reversed(row)}
    made = [[_button(one) for one in row if first[_id(one)] is one] for row in found]
    return [{"type": ROW, "components": row} for row in made if row]


def pressed(custom_id: str) -> tuple[Action, int] | None:
    """Return what a press of a button means: the action and its ticket; None where it is no button of an answer."""
    name, _, ticket = custom_id.removeprefix(PREFIX).partition(":")
    if not (custom_id.startswith(PREFIX) and name in set(Action) and is_number(ticket)):
        return None
    return Action(name), int(ticket)


def button(custom_id: str, text: str, style: int = SECONDARY) -> Json:
    """Return a button."""
    return {"type": BUTTON, "style": style, "label": label(text, _LONGEST), "custom_id": custom_id}


def label(text: str, longest: int) -> str:
    """Return a plain text that is short enough for a button or a title, and never empty."""
    shown = " ".join(text.split()) or "…"
    return shown if units(shown) <= longest else f"{shown[: longest // 2 - 1]}…"


def is_number(text: str) -> bool:
    """Return whether a text is a number as we write it."""
    return text.isascii() and text.isdigit()


def _must_be_asked_first(one: Button) -> bool:
    """Return whether pressing it needs a question first, which a component cannot put."""
    return one.action is Action.ASK and one.sure is not None


def _button(one: Button) -> Json:
    return button(_id(one), one.label, _STYLES.get(one.action, SECONDARY))


def _id(one: Button) -> str:
    return f"{PREFIX}{one.action.value}:{one.ticket}"
