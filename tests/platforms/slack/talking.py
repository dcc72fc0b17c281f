"""A bot at the fake Slack that answers from three small pages, and what tests wait for there."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.app import App
from bot.desk.platform_port import Platform
from tests.platforms.slack.clock import FastClock
from tests.platforms.slack.joining import joined
from tests.platforms.slack.seeing import modal
from tests.platforms.slack.server import serve
from tests.platforms.slack.state import FakeSlack, Mode
from tests.platforms.systems import Gated
from tests.platforms.world import open_world

WAITING = "[Stop]"


@dataclass
class Talk:
    """What goes on between people and the bot."""

    slack: FakeSlack
    home: Path
    system: Gated
    stack: AsyncExitStack
    app: App | None = None
    platform: Platform | None = None
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def acts(self) -> Any:
        return self.slack.acts

    async def start(self, *, hearing: Any = None, wrapped: Any = None, **settings: Any) -> Platform:
        """Start the bot, with other settings if any are given. `wrapped` makes another app of it."""
        self.kept |= settings
        app = self.system.answering(self.stack.enter_context(open_world(self.home, **self.kept)))
        self.app = wrapped(app) if wrapped else app
        self.platform = await self.stack.enter_async_context(joined(self.app, self.slack, hearing=hearing))
        return self.platform

    async def stop(self) -> None:
        """Shut it down."""
        await self.stack.aclose()

    def sees(self, channel: str = "C1", *, by: str = "U1") -> str:
        """Return what somebody sees of a channel."""
        return self.slack.seen(channel, by=by)

    async def until(self, *words: str, channel: str = "C1", by: str = "U1", gone: str = WAITING) -> str:
        """Wait until somebody sees all of these words, nothing is under way, and all is acknowledged."""

        def there() -> bool:
            seen = self.sees(channel, by=by)
            return all(one in seen for one in words) and gone not in seen and not self.slack.courier.unacked

        await self.slack.until(there)
        return self.sees(channel, by=by)

    async def settled(self) -> None:
        """Wait until all is acknowledged."""
        await self.slack.until(lambda: not self.slack.courier.unacked)

    async def modal(self, *words: str, user: str = "U1") -> str:
        """Wait until somebody has a modal open that says all of these words, and return what it says."""
        world = self.slack.world

        def shown() -> str:
            views = world.views.get(user) or []
            return modal(views[-1], world) if views else ""

        await self.slack.until(lambda: shown() and all(one in shown() for one in words))
        return shown()

    async def eventually(self, holds: Any) -> None:
        """Wait until something holds of which the fake hears nothing."""
        async with asyncio.timeout(60):
            while not holds():  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.005)


@asynccontextmanager
async def talking(home: Path, filled: Path, mode: Mode = "socket", times: float = 20) -> AsyncIterator[Talk]:
    """Serve a Slack, whose time passes so many times as fast, and a home to start the bot in."""
    shutil.copytree(filled, home)
    # A machine that has much to do has as long as one on the wall for what Slack waits for.
    async with serve(clock=FastClock(times), mode=mode, leisure=times) as slack:
        async with AsyncExitStack() as stack:
            yield Talk(slack, home, Gated(), stack)
        assert slack.errors == []
        assert slack.sockets.strange == []
