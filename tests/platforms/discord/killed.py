"""The bot that is killed while it talks to the fake Discord: the real adapter, with fuses in its calls."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from bot.app import App
from bot.platforms.discord import DiscordSettings, client
from bot.platforms.discord.client import Route
from tests.platforms.desks import SOONER
from tests.platforms.discord.joining import calling_at, configured_at, put_together
from tests.platforms.killing.fuses import Fuse, FusedPlatform, Tell
from tests.platforms.killing.lives import Life
from tests.platforms.slack.clock import FastClock

_NAMES: Mapping[Route, str] = MappingProxyType(
    {
        client.CALLBACK: "defer",
        client.EDIT: "edit",
        client.EDIT_REPLY: "edit",
        client.FOLLOW_UP: "post",
        client.POST: "post",
    }
)
"""What a route does, in the words of `FusedWire`."""


@dataclass(frozen=True)
class FusedCalling:
    """The way to Discord: a fuse is before and after every call, by what that does."""

    inner: Any
    fuse: Fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def __call__(self, route: Route, *given: Any, **facts: Any) -> Any:
        def work() -> Any:
            return self.inner(route, *given, **facts)

        if route not in _NAMES:
            return await work()
        name = _NAMES[route]
        around = partial(self.fuse.around, name, work)
        return await (self.fuse.around(f"final {name}", around) if self.fuse.final else around())


@asynccontextmanager
async def discord_bot(app: App, life: Life, fuse: Fuse, tell: Tell) -> AsyncIterator[None]:
    """Be a bot in Discord, to which time passes as fast as to the server, or which comes back after a while."""
    api, gateway = f"{life.url}/api/v10", life.url.replace("http", "ws")
    time = FastClock(SOONER, life.traits["now"])

    def fused(platform: Any) -> Any:
        return FusedPlatform(platform, fuse)

    given = DiscordSettings.model_validate(life.traits.get("discord", {}))
    app = replace(app, settings_source=app.settings.model_copy(update={"discord": given}))
    async with calling_at(api, time) as call:
        rigged: Any = FusedCalling(call, fuse)
        async with put_together(configured_at(app, api, gateway), rigged, time, at_desk=fused):
            tell("ready", "")
            yield
