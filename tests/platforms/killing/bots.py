"""The bots that are killed, by name: each an app with fuses in it, connected to its platform."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType
from typing import Any

from bot.app import App
from tests.platforms.desks import opened_bot
from tests.platforms.dialects import DIALECTS
from tests.platforms.discord.killed import discord_bot
from tests.platforms.fake_platform import FakePlatform
from tests.platforms.killing.fuses import Fuse, FusedPlatform, FusedWire, Tell
from tests.platforms.killing.lives import Life
from tests.platforms.mattermost.killed import mattermost_bot
from tests.platforms.slack.killed import slack_bot
from tests.platforms.wire import wired


@asynccontextmanager
async def fake_bot(app: App, life: Life, fuse: Fuse, tell: Tell) -> AsyncIterator[None]:
    """Be the bot of the tests' own platform."""
    traits = dict(life.traits)
    dialect, message = DIALECTS[traits.pop("dialect")], traits.pop("message", 0)
    async with wired(life.url) as wire:
        made = dialect.smaller(message) if message else dialect
        platform = FakePlatform(made, FusedWire(wire, fuse), wire.url, wire.http, **traits)
        fused: Any = FusedPlatform(platform, fuse)
        async with opened_bot(app, platform, at_desk=fused):
            tell("ready", "")
            yield


BOTS: Mapping[str, Callable[[App, Life, Fuse, Tell], AbstractAsyncContextManager[None]]] = MappingProxyType(
    {"fake": fake_bot, "slack": slack_bot, "discord": discord_bot, "mattermost": mattermost_bot}
)
