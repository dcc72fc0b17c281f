"""A page's buttons as Discord's components, and what pressing one says; pure.

A `custom_id` is `footnote:<action>:<ticket>`: all that is needed to obey it after a restart too. Before a person is
asked about what its asker alone sees, they are asked whether they are sure: a `Doubt` stands for the action then. So is
whoever takes an answer back, once they pressed: in a message that they alone see.
"""

from collections.abc import Iterable
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from bot.discord.limits import units
from bot.views.turn_view import Button, ButtonAction, Confirmation

Json = dict[str, Any]

PREFIX = "footnote:"
ROW, BUTTON = 1, 2
PRIMARY, SECONDARY, DANGER = 1, 2, 4
_LONGEST = 80
_STYLES = MappingProxyType({ButtonAction.STOP: DANGER, ButtonAction.EVIDENCE: PRIMARY})


class Doubt(StrEnum):
    """What is pressed around "Ask a person", where that publishes what its asker alone sees, and around "Take back"."""

    SURE = "sure"
    """Ask me first."""
    YES = "yes"
    BACK = "back"
    """Yes, take it back."""
    NO = "no"


def buttons(rows: Iterable[Iterable[Button]]) -> list[Json]:
    """Return rows of buttons. Each stands there once."""
    found = [list(row) for row in rows]
    first = {_id(one): one for row in reversed(found) for one in reversed(row)}
    made = [[_button(one) for one in row if first[_id(one)] is one] for row in found]
    return [{"type": ROW, "components": row} for row in made if row]


def asking(sure: Confirmation, ticket: int, yes_is: Doubt = Doubt.YES) -> Json:
    """Return the row that asks whether somebody is sure. `yes_is`: what they press who are."""
    yes = button(f"{PREFIX}{yes_is}:{ticket}", sure.yes, DANGER if yes_is is Doubt.BACK else PRIMARY)
    return {"type": ROW, "components": [yes, button(f"{PREFIX}{Doubt.NO}:{ticket}", sure.no)]}


def doubted(custom_id: str) -> tuple[Doubt, int] | None:
    """Return what a press around a question means, and the ticket; None where it is none of those."""
    name, _, ticket = custom_id.removeprefix(PREFIX).partition(":")
    known = custom_id.startswith(PREFIX) and name in set(Doubt) and is_number(ticket)
    return (Doubt(name), int(ticket)) if known else None


def pressed(custom_id: str) -> tuple[ButtonAction, int] | None:
    """Return what a press of a button means: the action and its ticket; None where it is no button of an answer."""
    name, _, ticket = custom_id.removeprefix(PREFIX).partition(":")
    if not (custom_id.startswith(PREFIX) and name in set(ButtonAction) and is_number(ticket)):
        return None
    return ButtonAction(name), int(ticket)


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


def _button(one: Button) -> Json:
    return button(_id(one), one.label, _STYLES.get(one.action, SECONDARY))


def _id(one: Button) -> str:
    to_be_sure = one.action is ButtonAction.ASK and one.sure is not None
    return f"{PREFIX}{(Doubt.SURE if to_be_sure else one.action).value}:{one.ticket}"
