"""A bot at the fake Discord as `footnote serve` builds it, with the real discord.py."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from bot.app import App
from bot.desk.platform_port import CannotPost, Platform
from bot.desk.supervisor import Clock as DeskClock
from bot.desk.turn_policy import open_desk
from bot.platforms.discord import DiscordSettings, client
from bot.platforms.discord.client import DiscordRateLimit, open_api
from bot.platforms.discord.wiring import open_client
from bot.platforms.shared.rate_limit import Route
from tests.platforms.clock import HASTY
from tests.platforms.discord.state import BOT_TOKEN, GUILD
from tests.platforms.example_app import with_settings
from tests.platforms.workspace import Target, unchanged, wait_until_ready

ACTIONS: Mapping[Route, str] = MappingProxyType(
    {
        client.CALLBACK: "defer",
        client.EDIT: "edit",
        client.EDIT_REPLY: "edit",
        client.FOLLOW_UP: "post",
        client.POST: "post",
    }
)
"""What a route does, for crash points."""


def configure(app: App, target: Target, **settings: Any) -> App:
    """Return the app with this Discord in its settings; the other settings stay."""
    kept = app.settings.discord.model_dump(exclude={"token"}, exclude_unset=True)
    given = {"token": BOT_TOKEN, "api_url": f"{target.url}/api/v10", "gateway_url": target.url.replace("http", "ws")}
    return with_settings(
        app,
        discord=DiscordSettings.model_validate(
            {"servers": [GUILD], "message_content": True, **kept, **settings, **given}
        ),
    )


@asynccontextmanager
async def run_bot(
    app: App,
    target: Target,
    *,
    desk_clock: DeskClock = HASTY,
    wrap_client: Callable[[Any], Any] = unchanged,
    wrap_platform: Callable[[Any], Any] = unchanged,
    **settings: Any,
) -> AsyncIterator[Platform]:
    """Run a bot within the block. Raises `CannotPost` if Discord refuses it permanently."""
    app, time = configure(app, target, **settings), target.clock
    platforms = dict[str, Platform]()
    desk = open_desk(app, platforms, clock=desk_clock)
    clock = DeskClock(lambda: datetime.fromtimestamp(time.now(), UTC), time.sleep)
    async with AsyncExitStack() as stack:
        rate_limit = DiscordRateLimit(time.now, time.sleep)
        api = await stack.enter_async_context(open_api(BOT_TOKEN, f"{target.url}/api/v10", rate_limit))
        api_client = wrap_client(api)
        platform = await stack.enter_async_context(open_client(app, desk, api_client, clock))
        platforms["discord"] = wrap_platform(platform)
        await stack.enter_async_context(desk.running())
        await stack.enter_async_context(platform.connected())
        await wait_until_ready(platform, _raise_refusal)
        yield platform


def _raise_refusal(reason: str) -> None:
    if reason.startswith("Discord "):
        raise CannotPost(reason)
