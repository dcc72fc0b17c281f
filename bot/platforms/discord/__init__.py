"""Discord: its events become questions, views become its messages.

Discord's library is imported only where there is a token.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.desk.desk import Desk
from bot.platforms.shared.platform_connection import OpenedPlatform
from bot.wiring import App


@asynccontextmanager
async def open_discord(app: App, desk: Desk) -> AsyncIterator[OpenedPlatform | None]:
    """Open Discord by the token of the settings; give None where there is none.

    Raises:
        PlatformError: Discord refuses our token, or cannot be reached.
        StorageError: What was taken last cannot be looked up.
    """
    settings = app.settings.discord
    if not settings.configured:
        yield None
        return
    import aiohttp

    from bot.platforms.discord.discord_client import DiscordApiClient, DiscordRateLimit
    from bot.platforms.discord.discord_wiring import open_client

    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        call = DiscordApiClient(session, settings.token.get_secret_value(), settings.api_url, DiscordRateLimit())
        async with open_client(app, desk, call) as platform:
            yield OpenedPlatform(platform, refused=platform.refused)
