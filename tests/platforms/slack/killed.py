"""The bot that is killed while it talks to the fake Slack: the real adapter, with fuses in its calls."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from bot.app import App
from bot.platforms.slack.client import SlackApiClient, SlackRateLimit, build_web_client
from bot.platforms.slack.transport import SocketWatch
from tests.platforms.desks import SOONER
from tests.platforms.killing.fuses import Fuse, FusedPlatform, Tell
from tests.platforms.killing.lives import Life
from tests.platforms.slack.clock import FastClock
from tests.platforms.slack.joining import configured_at, put_together
from tests.platforms.slack.world import BOT_TOKEN

_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "chat.appendStream": "edit",
        "chat.postEphemeral": "post",
        "chat.postMessage": "post",
        "chat.startStream": "post",
        "chat.update": "edit",
    }
)
"""What a method does, in the words of `FusedWire`."""


@dataclass(frozen=True)
class FusedCalling:
    """The way to Slack: a fuse is before and after every call, by its method and by what that does."""

    inner: Any
    fuse: Fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def __call__(self, method: str, **facts: Any) -> Any:
        return await self._around(method, lambda: self.inner(method, **facts))

    async def respond(self, url: str, body: Mapping[str, Any]) -> None:
        await self._around("post", lambda: self.inner.respond(url, body))

    async def _around(self, method: str, work: Any) -> Any:
        name = _NAMES.get(method, method)
        final = (f"final {name}", f"final {method}") if self.fuse.final else ()
        for one in dict.fromkeys((method, name, *final)):
            work = partial(self.fuse.around, one, work)
        return await work()


@asynccontextmanager
async def slack_bot(app: App, life: Life, fuse: Fuse, tell: Tell) -> AsyncIterator[None]:
    """Be a bot in Slack, to which time passes as fast as to the server."""
    api, clock = f"{life.url}/api/", FastClock(SOONER)
    calling: Any = FusedCalling(
        SlackApiClient(build_web_client(BOT_TOKEN, api), SlackRateLimit(clock.now, clock.sleep)), fuse
    )

    def fused(platform: Any) -> Any:
        return FusedPlatform(platform, fuse)

    async with put_together(
        configured_at(app, api, life.traits["mode"]),
        calling,
        SocketWatch(clock.now, clock.sleep),
        lambda address: tell("listens", address),
        at_desk=fused,
    ):
        tell("ready", "")
        yield
