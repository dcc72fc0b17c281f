"""Which buttons stand beneath what is shown, and what they are called; pure."""

from collections.abc import Iterable

from bot.showing.view import Action, Button, Sure
from bot.words import say
from pipeline.types import Status

_LABELS = {Action.UP: "👍", Action.DOWN: "👎"}
_JUDGED = (Status.ANSWERED, Status.ABSTAINED)
_NO_HELP = (Status.CHATTED, Status.CANCELLED)


def stopping(ticket: int, language: str) -> tuple[Button, ...]:
    """Return what can be pressed while a question waits or runs."""
    return (_button(Action.STOP, ticket, language),)


def after_answer(ticket: int, language: str, status: Status, *, only_asker: bool, ask: bool) -> tuple[Button, ...]:
    """Return what can be pressed once it is done.

    Args:
        ticket: The question's number.
        language: The asker's.
        status: How it ended.
        only_asker: Whether only the asker sees it.
        ask: Whether there are people to ask.
    """
    actions = [Action.EVIDENCE, Action.UP, Action.DOWN] if status in _JUDGED else []
    if ask and status not in _NO_HELP:
        actions.append(Action.ASK)
    if status is Status.ANSWERED:
        actions.append(Action.SHARE if only_asker else Action.RETRACT)
    return tuple(_button(action, ticket, language, alone=only_asker) for action in actions)


def without_sharing(buttons: Iterable[Button]) -> tuple[Button, ...]:
    """Return what can be pressed where there is nobody to share an answer with, as in a DM."""
    return tuple(one for one in buttons if one.action is not Action.SHARE)


def sure(action: Action, language: str) -> Sure:
    """Return what is asked before an answer is taken back, or a person is asked about what nobody else sees."""
    name = action.value
    return Sure(say(f"{name}_sure", language), say(f"button_{name}", language), say(f"{name}_not", language))


def _button(action: Action, ticket: int, language: str, *, alone: bool = False) -> Button:
    label = _LABELS.get(action) or say(f"button_{action.value}", language)
    to_be_sure = action is Action.RETRACT or (alone and action is Action.ASK)
    return Button(action, label, ticket, sure(action, language) if to_be_sure else None)
