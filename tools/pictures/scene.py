"""What a scene is: a picture's name, what happens in it, and when."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.app import App
from pipeline.llm.model import LLM


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
