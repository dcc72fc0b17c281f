"""What every platform's tests provide, so that the contract suite runs on it: a house adds itself to `HOUSES`.

A house starts a strict server that outlives the bot (people write there, and read), and makes platforms that connect
to it, one after the other. What people read is plain text: what their client makes of what was posted.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol

from bot.app import App
from bot.desk.platform_port import Platform
from bot.desk.supervisor import Clock
from tests.platforms.desks import HASTY, opened_bot
from tests.platforms.dialects import DISCORD, SLACK, Dialect
from tests.platforms.fake_platform import client
from tests.platforms.fake_server import BROKEN, LIMITED, LOST, WORKSPACE, FakeServer, serve
from tests.platforms.wire import wired

Call = Literal["post", "edit", "delete", "find"]
"""What a platform does with messages, whatever it calls that."""
Failure = Literal["limited", "broken", "lost"]
"""How a call fails once: 429 with a time to wait; 5xx; done, but its answer is lost."""


@dataclass(frozen=True)
class Read:
    """One message of the bot's as a person reads it."""

    id: str
    text: str
    buttons: tuple[str, ...]
    """The actions that can be pressed, by `Action`."""


class Street(Protocol):
    """People and what they do, on a platform that is up for as long as the test."""

    name: str
    """As in `Place.platform`."""
    workspace: str
    """Where the channels are, as settings name it."""
    people: tuple[str, str, str]
    """The ids of three people there."""
    channels: tuple[str, str, str]
    """The ids of three channels there."""
    longest: int
    """How many characters a message of the bot's holds at most."""

    async def say(self, text: str, *, user: str, channel: str, thread: str = "", dm: bool = False, **more: Any) -> str:
        """Write to the bot, and return the message's id. `more`: `only_asker`, `unasked`, as the bot would find."""
        ...

    async def again(self, message: str) -> None:
        """Deliver the event of a message once more."""
        ...

    async def rewrite(self, message: str, text: str) -> None:
        """Edit a message as its author."""
        ...

    async def erase(self, message: str) -> None:
        """Delete a message, a person's or the bot's."""
        ...

    async def press(self, action: str, message: str, *, user: str) -> None:
        """Press a button of a message of the bot's."""
        ...

    async def archive(self, channel: str) -> None:
        """Let nobody write to a channel any more."""
        ...

    async def invite(self, channel: str) -> bool:
        """Take the bot into a channel; return False where a platform tells it nothing of that."""
        ...

    def answer(self, message: str) -> tuple[Read, ...]:
        """Return the messages that stand now in answer to a message, in order."""
        ...

    def seen(self, channel: str, *, by: str) -> tuple[Read, ...]:
        """Return all of the bot's messages that somebody sees in a channel, in order."""
        ...

    def stumble(self, call: Call, failure: Failure) -> None:
        """Let the next call of a kind fail once."""
        ...

    @property
    def pending(self) -> int:
        """How many events are not acknowledged yet."""
        ...

    @property
    def refused(self) -> list[str]:
        """What the platform refused, by its codes."""
        ...

    @property
    def pings(self) -> list[str]:
        """Every mention that a client found in anything that was ever posted."""
        ...

    @property
    def links(self) -> list[str]:
        """Every address that a client made a link of."""
        ...

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds, looked at again after everything that happens there."""
        ...

    def joined(self, app: App) -> AbstractAsyncContextManager[Platform]:
        """Run the bot within the block: the platform connected to a desk over this app."""
        ...


@dataclass
class FakeStreet:
    """The fake platform's street."""

    server: FakeServer
    longest: int
    people: tuple[str, str, str] = ("101", "102", "103")
    channels: tuple[str, str, str] = ("201", "202", "203")
    clock: Clock = HASTY
    workspace: str = WORKSPACE

    @property
    def name(self) -> str:
        return self.server.dialect.name

    async def say(self, text: str, *, user: str, channel: str, thread: str = "", dm: bool = False, **more: Any) -> str:
        return await self.server.say(text, user=user, channel=channel, thread=thread, dm=dm, **more)

    async def again(self, message: str) -> None:
        await self.server.again(message)

    async def rewrite(self, message: str, text: str) -> None:
        await self.server.rewrite(message, text)

    async def erase(self, message: str) -> None:
        await self.server.erase(message)

    async def press(self, action: str, message: str, *, user: str) -> None:
        await self.server.press(action, message, user=user)

    async def archive(self, channel: str) -> None:
        self.server.archived.add(channel)

    async def invite(self, channel: str) -> bool:  # noqa: ARG002 - nobody is told
        return False

    def answer(self, message: str) -> tuple[Read, ...]:
        return tuple(map(_read, self.server.answers(message)))

    def seen(self, channel: str, *, by: str) -> tuple[Read, ...]:
        return tuple(map(_read, self.server.ours(channel, by=by)))

    def stumble(self, call: Call, failure: Failure) -> None:
        self.server.stumbles[call].append({"limited": LIMITED, "broken": BROKEN, "lost": LOST}[failure])

    @property
    def pending(self) -> int:
        return len(self.server.unacked)

    @property
    def refused(self) -> list[str]:
        return self.server.refused

    @property
    def pings(self) -> list[str]:
        return [ping for reading in self.server.read for ping in reading.pings]

    @property
    def links(self) -> list[str]:
        return [link for reading in self.server.read for link in reading.links]

    async def until(self, holds: Callable[[], object]) -> None:
        await self.server.until(lambda _: holds())

    @asynccontextmanager
    async def joined(self, app: App) -> AsyncIterator[Platform]:
        async with wired(self.server.url) as wire:
            platform = client(wire, self.server.dialect, pace=1.0)
            async with opened_bot(app, platform, clock=self.clock):
                yield platform
            assert platform.faults == []


def _read(message: Any) -> Read:
    return Read(message.id, message.plain, tuple(action for action, _ in message.buttons))


def _fake(dialect: Dialect) -> Callable[[], AbstractAsyncContextManager[Street]]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Street]:
        async with serve(dialect) as server:
            yield FakeStreet(server, dialect.limits.message)

    return opened


HOUSES: Mapping[str, Callable[[], AbstractAsyncContextManager[Street]]] = MappingProxyType(
    {"fake slack": _fake(SLACK), "fake discord": _fake(DISCORD), "fake discord, short": _fake(DISCORD.smaller(400))}
)
"""Everything that the contract suite runs on, by name."""
