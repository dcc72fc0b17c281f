"""What a scene is: a picture's name, what happens in it, and when."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from bot.app import App
from pipeline.model import LLM

PATIENCE = 60.0
"""Seconds that a scene waits for what is to come: pictures are drawn on busy machines too."""
Stage = TypeVar("Stage")


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture and how it comes about."""

    name: str
    play: Callable[[App, datetime], Awaitable[str]]
    """Plays it, with the clocks showing that time, and returns the page to be drawn."""
    llm: Callable[[], LLM] | None = None
    minute: int = 2


def at(scene: Scene) -> datetime:
    """Return when it plays: each of a platform at another time, for a message's time is its name in Slack."""
    return datetime(2026, 3, 3, 10, scene.minute, tzinfo=UTC)


def played_on(
    staged: Callable[[App, datetime], AbstractAsyncContextManager[Stage]],
    page: Callable[[str], str],
    play: Callable[[Stage], Awaitable[str]],
) -> Callable[[App, datetime], Awaitable[str]]:
    """Return what plays a scene on a platform's stage, and puts what it returns on that platform's page."""

    async def played(app: App, at: datetime) -> str:
        async with staged(app, at) as stage:
            return page(await play(stage))

    return played
