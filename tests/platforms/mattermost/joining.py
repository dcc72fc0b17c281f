"""A bot at the fake Mattermost as `footnote serve` puts it together."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import aiohttp
from starlette.routing import Route

from bot.app import App
from bot.desk.platform_port import Platform
from bot.desk.supervisor import Clock
from bot.desk.turn_policy import open_desk
from bot.platforms.mattermost import MattermostSettings, read_mattermost_settings
from bot.platforms.mattermost.actions import PATH
from bot.platforms.mattermost.client import MattermostApiClient, MattermostRateLimit
from bot.platforms.mattermost.wiring import open_client
from bot.server import http_server
from bot.server.monitoring.server_log import build_redactor
from bot.settings.tables.settings_tables import HttpSettings
from tests.platforms.desks import HASTY
from tests.platforms.mattermost.server import FakeMattermost
from tests.platforms.mattermost.world import TEAM, TOKEN
from tests.platforms.slack.clock import Clock as Time
from tests.platforms.world import reconfigured


def configured_at(app: App, url: str, **more: Any) -> App:
    """Return the app with the Mattermost at an address in its settings; what else is set there stays."""
    kept = read_mattermost_settings(app.settings).model_dump(exclude={"token"}, exclude_unset=True)
    settings = MattermostSettings.model_validate({"teams": [TEAM], **kept, "token": TOKEN, "url": url, **more})
    return reconfigured(app, mattermost=settings)


@asynccontextmanager
async def joined(app: App, server: FakeMattermost, *, buttons: bool = False) -> AsyncIterator[Platform]:
    """Run a bot within the block. `buttons`: whether the server reaches it over HTTP."""

    def listens(address: str) -> None:
        server.reached = address

    told = listens if buttons else None
    async with put_together(configured_at(app, server.url), server.clock, told) as platform:
        yield platform


class _Relay:
    """Hands a request on to what is opened later."""

    def __init__(self) -> None:
        self.route: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.route.app(scope, receive, send)


def _itself(wrapped: Any) -> Any:
    return wrapped


@asynccontextmanager
async def put_together(
    app: App,
    time: Time,
    listens: Callable[[str], None] | None = None,
    *,
    calling: Callable[[Any], Any] = _itself,
    at_desk: Callable[[Any], Any] = _itself,
) -> AsyncIterator[Platform]:
    """Run a bot within the block, by its parts.

    `listens`: is told where it takes what is pressed, where it does. `calling`, `at_desk`: make of the way to the
    server, and of the platform, another.
    """
    platforms = dict[str, Platform]()
    desk = open_desk(app, platforms, clock=HASTY)
    ours = Clock(lambda: datetime.fromtimestamp(time.now(), UTC), time.sleep)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()))
        relay = _Relay()
        if listens:  # where it listens stands in the settings that make the platform
            application = http_server.build_http_app({}, build_redactor(()), (Route(PATH, relay, methods=["POST"]),))
            address = await stack.enter_async_context(http_server.serve_http(HttpSettings(port=0), application))
            app = configured_at(app, read_mattermost_settings(app.settings).url, callback_url=address)
            listens(address)
        settings = read_mattermost_settings(app.settings)
        pacing = MattermostRateLimit(settings.calls_per_second, time.now, time.sleep)
        call = calling(MattermostApiClient(session, TOKEN, settings.url, pacing))
        opened = await stack.enter_async_context(open_client(app, desk, session, call, ours))
        relay.route = next(iter(opened.routes), None)
        platforms["mattermost"] = at_desk(opened.platform)
        await stack.enter_async_context(desk.running())
        await stack.enter_async_context(opened.platform.connected())
        async with asyncio.timeout(60):
            while opened.platform.ready:  # noqa: ASYNC110 - the bot tells nobody
                await asyncio.sleep(0.005)
        yield opened.platform
