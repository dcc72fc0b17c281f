"""The fake Slack as a place where bots are killed: `killing.scenes.Scene`."""

import hashlib
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
from tests.platforms.slack.clock import FastClock
from tests.platforms.slack.faults import refused
from tests.platforms.slack.house import SlackStreet
from tests.platforms.slack.joining import joined
from tests.platforms.slack.server import serve
from tests.platforms.slack.state import Mode
from tests.platforms.slack.world import BOT, TEAM

_EXPECTED = {"feature_not_enabled", "streaming_state_conflict"}
"""A live message of an earlier life is found to be live still when it is to be updated."""


@dataclass
class SlackScene:
    """A workspace."""

    street: SlackStreet
    only_asker: bool = False
    recites: bool = False
    """Whether the bot says all that it finds."""
    lingers: bool = False
    """Whether it waits after its first sentence until that is shown."""

    @property
    def certain(self) -> bool:
        return not self.only_asker

    @property
    def follows(self) -> bool:
        return not self.only_asker  # a command is a conversation by itself

    async def ask(self, question: str, *, thread: str = "") -> str:
        where: dict[str, Any] = {"user": self.street.people[0], "channel": self.street.channels[0], "thread": thread}
        return await self.street.say(question, only_asker=self.only_asker, **where)

    def key(self, message: str) -> str:
        kind, _, trigger = message.partition(" ")
        if trigger:
            return f"slack:{TEAM}/{kind}/{hashlib.sha256(trigger.encode()).hexdigest()[:32]}"
        return f"slack:{TEAM}/{self.street.channels[0]}/{message}"

    def life(self, home: Path) -> Life:
        slack = self.street.slack
        return Life(
            str(home), "slack", slack.url, {"mode": slack.mode, "recites": self.recites, "lingers": self.lingers}
        )

    def heard(self, word: str, what: str) -> None:
        """Send requests to where it listens; Slack would come again within minutes, that is now."""
        if word == "listens":
            self.street.slack.requests.url = what
        if word == "ready":
            self.street.slack.courier.redeliver()

    async def kills(self, child: Child, point: Point) -> None:
        """Kill it when Slack has sent an event, or has heard that it arrived: nobody else knows that moment."""
        courier = self.street.slack.courier
        if point.name == "ack":
            arrived = {"before": lambda: courier.unacked and courier.unacked[0].sent, "after": lambda: courier.done}
            await self.street.until(arrived[point.moment])
            await child.kill()

    @property
    def posted(self) -> int:
        world = self.street.slack.world
        return sum(one.user == BOT for kept in (world.messages, world.gone) for one in kept.values())


def scene(
    *, mode: Mode = "socket", streams: bool = True, **facts: bool
) -> Callable[[], AbstractAsyncContextManager[Scene]]:
    """Return what opens a workspace, one that refuses live messages where it has none."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Scene]:
        async with serve(clock=FastClock(SOONER), mode=mode, leisure=SOONER) as slack:
            street = SlackStreet(slack, joined)
            if not streams:
                slack.faults["chat.startStream"] = [refused("feature_not_enabled")] * 20
            yield SlackScene(street, **facts)
            assert slack.errors == []
            assert slack.sockets.strange == []
            assert {one.error for one in slack.refused} <= _EXPECTED

    return opened


SCENES: Mapping[str, Callable[[], AbstractAsyncContextManager[Scene]]] = MappingProxyType(
    {
        "slack, streamed": scene(lingers=True),
        "slack, updated": scene(streams=False, lingers=True),
        "slack, private": scene(only_asker=True),
        "slack, long": scene(recites=True, lingers=True),
        "slack, long updated": scene(recites=True, streams=False),
        "slack over HTTP": scene(mode="http"),
        "slack over HTTP, private": scene(mode="http", only_asker=True),
    }
)
