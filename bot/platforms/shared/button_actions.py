"""Perform the actions of an answer's buttons, in the same way on every platform."""

import logging
from collections.abc import Awaitable, Callable
from typing import Literal

from bot.access import Asker
from bot.desk.answer_actions import AnswerActions, Opinion
from bot.desk.authorized_turn import ActionDenied
from bot.desk.desk import Desk
from bot.views.catalog import translate
from bot.views.turn_view import ButtonAction
from storage.errors import StorageError

log = logging.getLogger(__name__)
_RATINGS: tuple[Opinion, ...] = ("0", "1", "2", "3", "4", "5")


class ButtonActions:
    """Performs the actions whose outcome is a sentence. Each platform shows evidence itself."""

    def __init__(self, desk: Desk, actions: AnswerActions) -> None:
        self._desk, self._actions = desk, actions

    async def perform(
        self,
        action: ButtonAction,
        ticket: int,
        by: Asker,
        language: str,
        *,
        find_name: Callable[[], Awaitable[str]],
        not_yours: str,
    ) -> str:
        """Perform an action and return the sentence for the user; empty if they see the effect anyway.

        `find_name` looks up the user's name. `not_yours` is returned if they may not stop or retract the answer.
        Raises `ActionDenied`, `StorageError`.
        """
        match action:
            case ButtonAction.STOP | ButtonAction.RETRACT:
                end = self._desk.stop if action is ButtonAction.STOP else self._desk.retract
                return "" if await end(ticket, by) else not_yours
            case ButtonAction.ASK:
                words = await self._actions.ask_person(ticket, by, language=language)
            case ButtonAction.SHARE:
                words = await self._actions.share(ticket, by, language=language, name=await find_name())
            case ButtonAction.EXAMPLE:
                words = await self._actions.approve(ticket, by, language=language)
            case ButtonAction.UP | ButtonAction.DOWN:
                opinion: Literal["up", "down"] = "up" if action is ButtonAction.UP else "down"
                words = await self._actions.feedback(ticket, by, opinion, language=language)
            case ButtonAction.EVIDENCE | ButtonAction.RATE:
                words = ""
        return words

    async def offers_example(self, ticket: int, by: Asker) -> bool:
        """Return whether a user may make an answer an example."""
        try:
            return await self._actions.offers_example(ticket, by)
        except ActionDenied:
            return False


def list_ratings(language: str) -> list[tuple[str, str]]:
    """Return the ratings of a comparison with their labels, best first; the last is to be left out of it."""
    labels = {"5": f"5 – {translate('study_best', language)}", "1": f"1 – {translate('study_worst', language)}"}
    return [
        *((rating, labels.get(rating, rating)) for rating in "54321"),
        ("0", f"0 – {translate('study_leave', language)}"),
    ]


def parse_opinion(opinion: str, *, missed: bool, rating: str) -> Opinion | None:
    """Return what a submitted form says; None if it lacks the rating that it asked for."""
    if opinion == "rate":
        return next((known for known in _RATINGS if known == rating), None)
    return "missed" if missed else "up" if opinion == "up" else "down"


async def explain_refusal(action: Awaitable[str], language: str) -> str:
    """Return the sentence that an action returns; if it was refused or failed, a sentence that explains why."""
    try:
        return await action
    except ActionDenied as denied:
        return denied.words
    except StorageError as error:
        log.error("button action failed", extra={"cause": str(error)})  # noqa: TRY400 - the cause is one line
        return translate("acting_unavailable", language)
