"""A bot at the fake Slack as `footnote serve` puts it together, with the real bolt and SDK, over either transport."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from bot import http
from bot.app import App
from bot.desk.clock import Clock
from bot.desk.opening import open_desk
from bot.platform import Platform
from bot.redacting import redactor
from bot.serving_settings import HttpSettings
from bot.slack.calling import Calling, web_client
from bot.slack.composing import composed
from bot.slack.pacing import Pacing
from bot.slack.transport import PATH
from bot.slack.watching import Hearing
from bot.slack_settings import SlackSettings
from tests.platforms.desks import HASTY
from tests.platforms.slack.server import FakeSlack
from tests.platforms.slack.world import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET


def configured(app: App, slack: FakeSlack) -> App:
    """Return the app with this Slack in its settings, as an operator would have it; what else is set there stays."""
    mode = "socket" if slack.courier.transport is slack.sockets else "http"
    given = {"mode": mode, "api_url": slack.api, "bot_token": BOT_TOKEN}
    given |= {"app_token": APP_TOKEN} if mode == "socket" else {"signing_secret": SIGNING_SECRET}
    kept = {"admins": app.settings.slack.admins}
    settings = SlackSettings.model_validate({**kept, **given})
    return replace(app, settings=app.settings.model_copy(update={"slack": settings}))


@asynccontextmanager
async def joined(
    app: App, slack: FakeSlack, *, clock: Clock = HASTY, hearing: Hearing | None = None
) -> AsyncIterator[Platform]:
    """Run a bot within the block. `hearing`: what watches its socket, by another clock than the fake's."""
    app, platforms = configured(app, slack), dict[str, Platform]()
    desk = open_desk(app, platforms, clock=clock)
    call = Calling(web_client(BOT_TOKEN, slack.api), Pacing(slack.clock.now, slack.clock.sleep))
    async with AsyncExitStack() as stack:
        hearing = hearing or Hearing(slack.clock.now, slack.clock.sleep)
        platform, routes = await stack.enter_async_context(composed(app, desk, call, hearing))
        platforms["slack"] = platform
        await stack.enter_async_context(desk.running())
        if routes:
            application = http.application({}, redactor(()), routes)
            address = await stack.enter_async_context(http.listening(HttpSettings(port=0), application))
            slack.requests.url = address + PATH
        await stack.enter_async_context(platform.connected())
        async with asyncio.timeout(4):
            while platform.ready:  # noqa: ASYNC110 - the bot tells nobody
                await asyncio.sleep(0.005)
        yield platform
