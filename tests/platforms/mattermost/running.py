"""A bot at the fake Mattermost as `footnote serve` builds it."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from starlette.routing import Route as WebRoute

from bot.app import App
from bot.desk.platform_port import Platform
from bot.desk.supervisor import Clock as DeskClock
from bot.desk.turn_policy import open_desk
from bot.platforms.mattermost import MattermostSettings, client
from bot.platforms.mattermost.actions import PATH
from bot.platforms.mattermost.client import build_pacing, open_api
from bot.platforms.mattermost.wiring import open_client
from bot.platforms.shared.rate_limit import Route
from bot.server import http_server
from bot.server.monitoring.server_log import build_redactor
from bot.settings.tables.network_settings import HttpSettings
from tests.platforms.clock import HASTY
from tests.platforms.example_app import with_settings
from tests.platforms.mattermost.state import TEAM, TOKEN
from tests.platforms.workspace import Target, unchanged, wait_until_ready

ACTIONS: Mapping[Route, str] = MappingProxyType({client.POST: "post", client.EDIT: "edit"})
"""What a route does, for crash points."""


def configure(app: App, target: Target, **settings: Any) -> App:
    """Return the app with this Mattermost in its settings; the other settings stay."""
    kept = MattermostSettings.read_from(app.settings).model_dump(exclude={"token"}, exclude_unset=True)
    given = {"teams": [TEAM], **kept, "token": TOKEN, "url": target.url, **settings}
    return with_settings(app, mattermost=MattermostSettings.model_validate(given))


class _Relay:
    """Passes requests to a route that is opened later: its address is in the settings that make it."""

    def __init__(self) -> None:
        self.route: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.route.app(scope, receive, send)


@asynccontextmanager
async def run_bot(
    app: App,
    target: Target,
    *,
    desk_clock: DeskClock = HASTY,
    wrap_client: Callable[[Any], Any] = unchanged,
    wrap_platform: Callable[[Any], Any] = unchanged,
) -> AsyncIterator[Platform]:
    app, time = configure(app, target), target.clock
    platforms = dict[str, Platform]()
    desk = open_desk(app, platforms, clock=desk_clock)
    clock = DeskClock(lambda: datetime.fromtimestamp(time.now(), UTC), time.sleep)
    async with AsyncExitStack() as stack:
        relay = _Relay()
        if target.http:
            routes = (WebRoute(PATH, relay, methods=["POST"]),)
            application = http_server.build_http_app({}, build_redactor(()), routes)
            address = await stack.enter_async_context(http_server.serve_http(HttpSettings(port=0), application))
            app = configure(app, target, callback_url=address)
            target.set_bot_url(address)
        settings = MattermostSettings.read_from(app.settings)
        rate_limit = build_pacing(settings.calls_per_second, time.now, time.sleep)
        api = await stack.enter_async_context(open_api(TOKEN, settings.url, rate_limit))
        opened = await stack.enter_async_context(open_client(app, desk, wrap_client(api), clock))
        relay.route = next(iter(opened.routes), None)
        platforms["mattermost"] = wrap_platform(opened.platform)
        await stack.enter_async_context(desk.running())
        await stack.enter_async_context(opened.platform.connected())
        await wait_until_ready(opened.platform)
        yield opened.platform
