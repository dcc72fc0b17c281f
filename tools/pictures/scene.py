"""A scene: a picture's name, its content and its time."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.app import App
from pipeline.llm.model import LLM


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture and the function that produces it."""

    name: str
    play: Callable[[App, datetime], Awaitable[str]]
    """Plays it, with the clocks showing that time, and returns the page to be drawn."""
    llm: Callable[[], LLM] | None = None
    minute: int = 2


def at(scene: Scene) -> datetime:
    """Return the scene's time, which is unique on its platform: Slack identifies messages by their time."""
    return datetime(2026, 3, 3, 10, scene.minute, tzinfo=UTC)
