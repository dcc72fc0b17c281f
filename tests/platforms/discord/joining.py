"""A bot at the fake Discord as `footnote serve` puts it together, with the real discord.py."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

import aiohttp

from bot.app import App
from bot.desk.platform_port import CannotPost, Platform
from bot.desk.supervisor import Clock
from bot.desk.turn_policy import open_desk
from bot.platforms.discord import DiscordSettings
from bot.platforms.discord.client import DiscordApiClient, DiscordRateLimit
from bot.platforms.discord.wiring import open_client
from tests.platforms.desks import HASTY
from tests.platforms.discord.state import FakeDiscord
from tests.platforms.discord.world import BOT_TOKEN, GUILD
from tests.platforms.slack.clock import Clock as Time
from tests.platforms.world import reconfigured


def configured(app: App, discord: FakeDiscord) -> App:
    """Return the app with this Discord in its settings, as an operator would have it; what else is set there stays."""
    return configured_at(app, discord.api, discord.gateway.url)


def configured_at(app: App, api: str, gateway: str) -> App:
    """Return the app with the Discord at these addresses in its settings."""
    kept = app.settings.discord.model_dump(exclude={"token"}, exclude_unset=True)
    given = {"token": BOT_TOKEN, "api_url": api, "gateway_url": gateway}
    settings = DiscordSettings.model_validate({"servers": [GUILD], "message_content": True, **kept, **given})
    return reconfigured(app, discord=settings)


@asynccontextmanager
async def joined(app: App, discord: FakeDiscord, *, clock: Clock = HASTY) -> AsyncIterator[Platform]:
    """Run a bot within the block."""
    async with (
        calling_at(discord.api, discord.clock) as call,
        put_together(configured(app, discord), call, discord.clock, clock=clock) as platform,
    ):
        yield platform


@asynccontextmanager
async def calling_at(api: str, time: Time) -> AsyncIterator[DiscordApiClient]:
    """Give the way to the Discord at an address, by some time."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield DiscordApiClient(session, BOT_TOKEN, api, DiscordRateLimit(time.now, time.sleep))


def _itself(platform: Platform) -> Platform:
    return platform


@asynccontextmanager
async def put_together(
    app: App,
    call: DiscordApiClient,
    time: Time,
    *,
    clock: Clock = HASTY,
    at_desk: Callable[[Platform], Platform] = _itself,
) -> AsyncIterator[Platform]:
    """Run a bot within the block, by its parts.

    Args:
        app: What is opened, with a Discord in its settings.
        call: The way to it.
        time: The date there, and what waits by it.
        clock: The desk's.
        at_desk: Makes of the platform what the desk sees of it.
    """
    platforms = dict[str, Platform]()
    desk = open_desk(app, platforms, clock=clock)
    ours = Clock(lambda: datetime.fromtimestamp(time.now(), UTC), time.sleep)
    async with AsyncExitStack() as stack:
        platform = await stack.enter_async_context(open_client(app, desk, call, ours))
        platforms["discord"] = at_desk(platform)
        await stack.enter_async_context(desk.running())
        await stack.enter_async_context(platform.connected())
        await _ready(platform)
        yield platform


async def _ready(platform: Platform) -> None:
    """Wait until events arrive. Raises `CannotPost` where Discord refuses us for good."""
    async with asyncio.timeout(60):
        while why := platform.ready:
            if why.startswith("Discord "):
                raise CannotPost(why)
            await asyncio.sleep(0.005)
