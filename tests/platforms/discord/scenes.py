"""The fake Discord as a place where bots are killed: `killing.scenes.Scene`."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.platforms.desks import SOONER
from tests.platforms.discord.house import DiscordStreet
from tests.platforms.discord.joining import joined
from tests.platforms.discord.server import serve
from tests.platforms.discord.world import GUILD
from tests.platforms.killing.fuses import Point
from tests.platforms.killing.lives import Child, Life
from tests.platforms.killing.scenes import Scene
from tests.platforms.slack.clock import FastClock

_EXPECTED = {("get_response", 10015), ("edit_response", 10015), ("get_messages", 50001)}
"""Whose interaction was not answered in time finds none; who catches up asks where it may not read."""


@dataclass
class DiscordScene:
    """A server."""

    street: DiscordStreet
    command: bool = False
    """Whether the bot is asked by a command."""
    only_asker: bool = False
    recites: bool = False
    """Whether the bot says all that it finds."""
    lingers: bool = False
    """Whether it waits after its first sentence until that is shown."""

    @property
    def certain(self) -> bool:
        """Return whether it can be known: who used a command is shown at most what its one answer holds."""
        return True

    @property
    def follows(self) -> bool:
        return not self.command  # a command is a conversation by itself

    async def ask(self, question: str, *, thread: str = "") -> str:
        where: dict[str, Any] = {"user": self.street.people[0], "channel": self.street.channels[0]}
        if self.command:
            options = {"question": question} | ({"private": True} if self.only_asker else {})
            return f"command {(await self.street.discord.acts.command('ask', **where, **options)).id}"
        return await self.street.say(question, thread=thread, **where)

    def key(self, message: str) -> str:
        if self.command:
            return f"discord:interaction/{message.split()[1]}"
        return f"discord:{GUILD}/{self.street.channels[0]}/{message}"

    def life(self, home: Path) -> Life:
        discord = self.street.discord
        traits = {"recites": self.recites, "lingers": self.lingers, "now": discord.clock.now()}
        return Life(str(home), "discord", discord.url, traits)

    def heard(self, word: str, what: str) -> None:
        """Nothing has to be known: it finds us."""

    async def kills(self, child: Child, point: Point) -> None:
        """Kill it when Discord has sent an event, or knows that it was read: nobody else knows that moment."""
        if point.name == "ack":
            connected = self.street.discord.gateway.connected
            arrived = {"before": lambda: True, "after": lambda: not any(one.unread for one in connected)}
            await self.street.until(arrived[point.moment])
            await child.kill()

    @property
    def posted(self) -> int:
        return self.street.discord.posts


def scene(**facts: bool) -> Callable[[], AbstractAsyncContextManager[Scene]]:
    """Return what opens a server."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Scene]:
        async with serve(clock=FastClock(SOONER), leisure=SOONER) as discord:
            yield DiscordScene(DiscordStreet(discord, joined), **facts)
            assert discord.errors == []
            assert discord.gateway.closes == []
            assert {(one.name, one.code) for one in discord.refused} <= _EXPECTED

    return opened


SCENES: Mapping[str, Callable[[], AbstractAsyncContextManager[Scene]]] = MappingProxyType(
    {
        "discord": scene(lingers=True),
        "discord, command": scene(command=True, lingers=True),
        "discord, private": scene(command=True, only_asker=True, lingers=True),
        "discord, long": scene(recites=True, lingers=True),
        "discord, long command": scene(command=True, recites=True),
        "discord, long private": scene(command=True, only_asker=True, recites=True),
    }
)
