"""A bot at the fake Discord as `footnote serve` puts it together, with the real discord.py."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import aiohttp

from bot.app import App
from bot.desk.clock import Clock
from bot.desk.opening import open_desk
from bot.discord.calling import Calling
from bot.discord.composing import composed
from bot.discord.pacing import Pacing
from bot.discord_settings import DiscordSettings
from bot.platform import Platform
from tests.platforms.desks import HASTY
from tests.platforms.discord.server import FakeDiscord
from tests.platforms.discord.world import BOT_TOKEN, GUILD


def configured(app: App, discord: FakeDiscord) -> App:
    """Return the app with this Discord in its settings, as an operator would have it; what else is set there stays."""
    kept = app.settings.discord.model_dump(exclude={"token"}, exclude_unset=True)
    given = {"token": BOT_TOKEN, "api_url": discord.api, "gateway_url": discord.gateway.url}
    settings = DiscordSettings.model_validate({"servers": [GUILD], "message_content": True, **kept, **given})
    return replace(app, settings=app.settings.model_copy(update={"discord": settings}))


@asynccontextmanager
async def joined(app: App, discord: FakeDiscord, *, clock: Clock = HASTY) -> AsyncIterator[Platform]:
    """Run a bot within the block."""
    app, platforms = configured(app, discord), dict[str, Platform]()
    desk = open_desk(app, platforms, clock=clock)
    ours = Clock(lambda: datetime.fromtimestamp(discord.clock.now(), UTC), discord.clock.sleep)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()))
        call = Calling(session, BOT_TOKEN, discord.api, Pacing(discord.clock.now, discord.clock.sleep))
        platforms["discord"] = platform = await stack.enter_async_context(composed(app, desk, call, ours))
        await stack.enter_async_context(desk.running())
        await stack.enter_async_context(platform.connected())
        async with asyncio.timeout(4):
            while platform.ready:  # noqa: ASYNC110 - the bot tells nobody
                await asyncio.sleep(0.005)
        yield platform
