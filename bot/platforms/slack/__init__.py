"""Slack: its events become questions, views become its messages.

Slack's libraries are imported only where a workspace is configured.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.desk.desk import Desk
from bot.platforms.shared.platform_connection import OpenedPlatform
from bot.wiring import App


@asynccontextmanager
async def open_slack(app: App, desk: Desk) -> AsyncIterator[OpenedPlatform | None]:
    """Open the workspace of the settings; give None where none is configured.

    Raises:
        PlatformError: Slack refuses our token, or cannot be reached.
        StorageError: What was taken last cannot be looked up.
    """
    settings = app.settings.slack
    if not settings.configured:
        yield None
        return
    from bot.platforms.slack.slack_client import SlackApiClient, SlackRateLimit, build_web_client
    from bot.platforms.slack.slack_wiring import open_workspace

    call = SlackApiClient(build_web_client(settings.bot_token.get_secret_value(), settings.api_url), SlackRateLimit())
    async with open_workspace(app, desk, call) as (platform, routes):
        yield OpenedPlatform(platform, routes)
