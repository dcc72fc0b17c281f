"""A bot at the fake Slack as `footnote serve` builds it, with the real bolt and SDK, over either transport."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import MappingProxyType
from typing import Any

from bot.app import App
from bot.desk.platform_port import Platform
from bot.desk.supervisor import Clock as DeskClock
from bot.desk.turn_policy import open_desk
from bot.platforms.shared.rate_limit import Lanes
from bot.platforms.slack import SlackSettings
from bot.platforms.slack.client import open_api
from bot.platforms.slack.transport import PATH, SocketWatch
from bot.platforms.slack.wiring import open_workspace
from bot.server import http_server
from bot.server.monitoring.server_log import build_redactor
from bot.settings.tables.network_settings import HttpSettings
from tests.platforms.clock import HASTY
from tests.platforms.example_app import with_settings
from tests.platforms.slack.state import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET
from tests.platforms.workspace import Target, unchanged, wait_until_ready

ACTIONS: Mapping[str, str] = MappingProxyType(
    {
        "chat.appendStream": "edit",
        "chat.postEphemeral": "post",
        "chat.postMessage": "post",
        "chat.startStream": "post",
        "chat.update": "edit",
        "respond": "post",
    }
)
"""What a method does, for crash points."""


def configure(app: App, target: Target) -> App:
    """Return the app with this Slack in its settings; the other settings stay."""
    given = {"mode": "http" if target.http else "socket", "api_url": f"{target.url}/api/", "bot_token": BOT_TOKEN}
    given |= {"signing_secret": SIGNING_SECRET} if target.http else {"app_token": APP_TOKEN}
    kept = app.settings.slack.model_dump(exclude=set(SlackSettings.SECRETS), exclude_unset=True)
    return with_settings(app, slack=SlackSettings.model_validate({**kept, **given}))


@asynccontextmanager
async def run_bot(
    app: App,
    target: Target,
    *,
    desk_clock: DeskClock = HASTY,
    watch: SocketWatch | None = None,
    wrap_client: Callable[[Any], Any] = unchanged,
    wrap_platform: Callable[[Any], Any] = unchanged,
) -> AsyncIterator[Platform]:
    """Run a bot within the block. `watch`: what watches its socket, if by another clock than the server's."""
    now, sleep = target.clock.now, target.clock.sleep
    app = configure(app, target)
    platforms = dict[str, Platform]()
    desk = open_desk(app, platforms, clock=desk_clock)
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(open_api(BOT_TOKEN, f"{target.url}/api/", Lanes(now, sleep)))
        client = wrap_client(api)
        opened = await stack.enter_async_context(open_workspace(app, desk, client, watch or SocketWatch(now, sleep)))
        platform, routes = opened
        platforms["slack"] = wrap_platform(platform)
        await stack.enter_async_context(desk.running())
        if routes:
            application = http_server.build_http_app({}, build_redactor(()), routes)
            address = await stack.enter_async_context(http_server.serve_http(HttpSettings(port=0), application))
            target.set_bot_url(address + PATH)
        await stack.enter_async_context(platform.connected())
        await wait_until_ready(platform)
        yield platform
