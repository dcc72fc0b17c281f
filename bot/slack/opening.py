"""Opens the workspace of the settings for `footnote serve`. Slack's libraries are imported only where there is one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.arriving import Opened
from bot.desk.desk import Desk
from bot.wiring import App


@asynccontextmanager
async def open_slack(app: App, desk: Desk) -> AsyncIterator[Opened | None]:
    """Open the workspace of the settings; give None where none is configured.

    Raises:
        PlatformError: Slack refuses our token, or cannot be reached.
        StorageError: What was taken last cannot be looked up.
    """
    settings = app.settings.slack
    if not settings.configured:
        yield None
        return
    from bot.slack.calling import Calling, web_client
    from bot.slack.composing import composed
    from bot.slack.pacing import Pacing

    call = Calling(web_client(settings.bot_token.get_secret_value(), settings.api_url), Pacing())
    async with composed(app, desk, call) as (platform, routes):
        yield Opened(platform, routes)
