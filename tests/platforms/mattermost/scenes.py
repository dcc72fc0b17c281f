"""The fake Mattermost as a place where bots are killed: `killing.scenes.Scene`."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.platforms.desks import SOONER
from tests.platforms.killing.fuses import Point
from tests.platforms.killing.lives import Child, Life
from tests.platforms.killing.scenes import Scene
from tests.platforms.mattermost.house import MattermostStreet
from tests.platforms.mattermost.server import serve
from tests.platforms.mattermost.world import TEAM
from tests.platforms.slack.clock import FastClock


@dataclass
class MattermostScene:
    """A server."""

    street: MattermostStreet
    only_asker: bool = False
    recites: bool = False
    """Whether the bot says all that it finds."""
    lingers: bool = False
    """Whether it waits after its first sentence until that is shown."""
    certain: bool = True
    follows: bool = True

    async def ask(self, question: str, *, thread: str = "") -> str:
        where: dict[str, Any] = {"user": self.street.people[0], "channel": self.street.channels[0], "thread": thread}
        return await self.street.say(question, only_asker=self.only_asker, **where)

    def key(self, message: str) -> str:
        return f"mattermost:{TEAM}/{self.street.channels[0]}/{message}"

    def life(self, home: Path) -> Life:
        server = self.street.server
        traits = {"recites": self.recites, "lingers": self.lingers, "now": server.clock.now()}
        return Life(str(home), "mattermost", server.url, traits)

    def heard(self, word: str, what: str) -> None:
        """Nothing has to be known: it finds us."""

    async def kills(self, child: Child, point: Point) -> None:
        """Kill it when the server has sent an event, or knows that it was read: nobody else knows that moment."""
        if point.name == "ack":
            arrived = {"before": lambda: True, "after": lambda: not self.street.pending}
            await self.street.until(arrived[point.moment])
            await child.kill()

    @property
    def posted(self) -> int:
        return self.street.server.posted


def scene(**facts: bool) -> Callable[[], AbstractAsyncContextManager[Scene]]:
    """Return what opens a server."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Scene]:
        async with serve(clock=FastClock(SOONER)) as server:
            yield MattermostScene(MattermostStreet(server), **facts)
            assert server.errors == []
            assert server.refused == []

    return opened


SCENES: Mapping[str, Callable[[], AbstractAsyncContextManager[Scene]]] = MappingProxyType(
    {
        "mattermost": scene(lingers=True),
        "mattermost, private": scene(only_asker=True, lingers=True),
        "mattermost, long": scene(recites=True, lingers=True),
    }
)
