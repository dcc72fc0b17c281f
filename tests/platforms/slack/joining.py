"""A bot at the fake Slack as `footnote serve` puts it together, with the real bolt and SDK, over either transport."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from bot.app import App
from bot.desk.platform_port import Platform
from bot.desk.supervisor import Clock
from bot.desk.turn_policy import open_desk
from bot.platforms.slack import SlackSettings
from bot.platforms.slack.client import SlackApiClient, SlackRateLimit, build_web_client
from bot.platforms.slack.transport import PATH, SocketWatch
from bot.platforms.slack.wiring import open_workspace
from bot.server import http_server
from bot.server.monitoring.server_log import build_redactor
from bot.settings.tables.settings_tables import HttpSettings
from tests.platforms.desks import HASTY
from tests.platforms.slack.state import FakeSlack, Mode
from tests.platforms.slack.world import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET
from tests.platforms.world import reconfigured


def configured(app: App, slack: FakeSlack) -> App:
    """Return the app with this Slack in its settings, as an operator would have it; what else is set there stays."""
    return configured_at(app, slack.api, "socket" if slack.courier.transport is slack.sockets else "http")


def configured_at(app: App, api: str, mode: Mode) -> App:
    """Return the app with the Slack at an address in its settings."""
    given = {"mode": mode, "api_url": api, "bot_token": BOT_TOKEN}
    given |= {"app_token": APP_TOKEN} if mode == "socket" else {"signing_secret": SIGNING_SECRET}
    kept = app.settings.slack.model_dump(exclude=set(SlackSettings.SECRETS), exclude_unset=True)
    settings = SlackSettings.model_validate({**kept, **given})
    return reconfigured(app, slack=settings)


@asynccontextmanager
async def joined(
    app: App, slack: FakeSlack, *, clock: Clock = HASTY, hearing: SocketWatch | None = None
) -> AsyncIterator[Platform]:
    """Run a bot within the block. `hearing`: what watches its socket, by another clock than the fake's."""
    call = SlackApiClient(build_web_client(BOT_TOKEN, slack.api), SlackRateLimit(slack.clock.now, slack.clock.sleep))
    hearing = hearing or SocketWatch(slack.clock.now, slack.clock.sleep)

    def listens(address: str) -> None:
        slack.requests.url = address

    async with put_together(configured(app, slack), call, hearing, listens, clock=clock) as platform:
        yield platform


def _itself(platform: Platform) -> Platform:
    return platform


@asynccontextmanager
async def put_together(
    app: App,
    call: SlackApiClient,
    hearing: SocketWatch,
    listens: Callable[[str], None],
    *,
    clock: Clock = HASTY,
    at_desk: Callable[[Platform], Platform] = _itself,
) -> AsyncIterator[Platform]:
    """Run a bot within the block, by its parts.

    Args:
        app: What is opened, with a Slack in its settings.
        call: The way to it.
        hearing: What watches the socket.
        listens: Is told where requests are taken, in the mode http.
        clock: The desk's.
        at_desk: Makes of the platform what the desk sees of it.
    """
    platforms = dict[str, Platform]()
    desk = open_desk(app, platforms, clock=clock)
    async with AsyncExitStack() as stack:
        platform, routes = await stack.enter_async_context(open_workspace(app, desk, call, hearing))
        platforms["slack"] = at_desk(platform)
        await stack.enter_async_context(desk.running())
        if routes:
            application = http_server.build_http_app({}, build_redactor(()), routes)
            address = await stack.enter_async_context(http_server.serve_http(HttpSettings(port=0), application))
            listens(address + PATH)
        await stack.enter_async_context(platform.connected())
        async with asyncio.timeout(60):
            while platform.ready:  # noqa: ASYNC110 - the bot tells nobody
                await asyncio.sleep(0.005)
        yield platform
