"""What `footnote serve` is made of: the desk, and every platform there is. A further platform is a line here."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from bot.app import App
from bot.platform import Platform
from bot.serving import Parts


def parts() -> Parts[None]:
    """Return the parts of a real server."""
    return Parts(_no_desk, _running)


def _no_desk(app: App, platforms: Mapping[str, Platform]) -> None:
    del app, platforms


@asynccontextmanager
async def _running(desk: None) -> AsyncIterator[None]:
    yield desk
