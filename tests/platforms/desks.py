"""The real desk over an app, with the fake platform at it, as a server puts them together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from bot.access import Asker
from bot.app import App
from bot.desk.answer_actions import AnswerActions
from bot.desk.authorized_turn import ActionDenied
from bot.desk.supervisor import Clock
from bot.desk.turn_policy import open_desk
from bot.views.turn_view import EvidenceView
from tests.platforms.fake_platform import FakePlatform, Press

SOONER = 20
"""So many times sooner than in a server do waits end here: for another attempt, for patience, for grace."""
HASTY = Clock(sleep=lambda seconds: asyncio.sleep(seconds / SOONER))


@asynccontextmanager
async def opened_bot(
    app: App, platform: FakePlatform, *, at_desk: Any = None, clock: Clock = HASTY
) -> AsyncIterator[None]:
    """Answer questions within the block. `at_desk` is what the desk sees, where it is not the platform itself."""
    platforms = {platform.name: at_desk or platform}
    platform.desk = desk = open_desk(app, platforms, clock=clock)
    platform.press = pressing(AnswerActions(app, platforms))
    async with desk.running(), platform.connected():
        yield


def pressing(acting: AnswerActions) -> Press:
    """Return what buttons do, but for Stop and Retract."""

    async def press(action: str, ticket: int, by: Asker) -> str | EvidenceView:
        try:
            match action:
                case "evidence":
                    return await acting.evidence(ticket, by)
                case "up" | "down":
                    return await acting.feedback(ticket, by, action)
                case "ask":
                    return await acting.ask_person(ticket, by)
                case "share":
                    return await acting.share(ticket, by)
        except ActionDenied as denied:
            return denied.words
        raise AssertionError(f"there is no button {action!r}")

    return press
