"""Opens Discord for `footnote serve`. Discord's library is imported only where there is a token."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.arriving import Opened
from bot.desk.desk import Desk
from bot.wiring import App


@asynccontextmanager
async def open_discord(app: App, desk: Desk) -> AsyncIterator[Opened | None]:
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

    from bot.discord.calling import Calling
    from bot.discord.composing import composed
    from bot.discord.pacing import Pacing

    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        call = Calling(session, settings.token.get_secret_value(), settings.api_url, Pacing())
        async with composed(app, desk, call) as platform:
            yield Opened(platform, refused=platform.refused)
