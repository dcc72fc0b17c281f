"""The bot that is killed while it talks to the fake Mattermost: the real adapter, with fuses in its calls."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from bot.app import App
from bot.platforms.mattermost import client
from bot.platforms.mattermost.client import Route
from tests.platforms.desks import SOONER
from tests.platforms.killing.fuses import Fuse, FusedPlatform, Tell
from tests.platforms.killing.lives import Life
from tests.platforms.mattermost.joining import configured_at, put_together
from tests.platforms.slack.clock import FastClock

_NAMES: Mapping[Route, str] = MappingProxyType({client.POST: "post", client.EDIT: "edit"})
"""What a route does, in the words of `FusedWire`."""


@dataclass(frozen=True)
class FusedCalling:
    """The way to Mattermost: a fuse is before and after every call, by what that does."""

    inner: Any
    fuse: Fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def __call__(self, route: Route, *given: Any, **facts: Any) -> Any:
        work = partial(self.inner, route, *given, **facts)
        if route not in _NAMES:
            return await work()
        around = partial(self.fuse.around, _NAMES[route], work)
        return await (self.fuse.around(f"final {_NAMES[route]}", around) if self.fuse.final else around())


@asynccontextmanager
async def mattermost_bot(app: App, life: Life, fuse: Fuse, tell: Tell) -> AsyncIterator[None]:
    """Be a bot in Mattermost, to which time passes as fast as to the server."""
    time = FastClock(SOONER, life.traits["now"])
    fused = {"calling": lambda call: FusedCalling(call, fuse), "at_desk": lambda one: FusedPlatform(one, fuse)}
    async with put_together(configured_at(app, life.url), time, **fused):
        tell("ready", "")
        yield
