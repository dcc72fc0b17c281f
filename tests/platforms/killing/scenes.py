"""Where bots are killed: a street that outlives them, and what a test has to know of it beside what people see."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from tests.platforms.contract import FakeStreet, Street
from tests.platforms.dialects import DISCORD, SLACK, Dialect
from tests.platforms.fake_server import serve
from tests.platforms.killing.fuses import Point
from tests.platforms.killing.lives import Child, Life


class Scene(Protocol):
    """A street, and how a bot lives there in a process of its own."""

    street: Street
    certain: bool
    """Whether it can always be known what stands there."""

    async def ask(self, question: str, *, thread: str = "") -> str:
        """Ask, and return the message."""
        ...

    @property
    def follows(self) -> bool:
        """Whether one can ask on in the conversation, so that what was asked before is done with first."""
        ...

    def key(self, message: str) -> str:
        """Return the key of a question at the desk."""
        ...

    def life(self, home: Path) -> Life:
        """Return how a bot lives here."""
        ...

    def heard(self, word: str, what: str) -> None:
        """Hear what a bot tells, such as where it listens."""
        ...

    async def kills(self, child: Child, point: Point) -> None:
        """Kill it at a point that its own fuses do not have; at others do nothing."""
        ...

    @property
    def posted(self) -> int:
        """How many messages the bot ever posted in answer to anything."""
        ...


@dataclass(frozen=True)
class Traits:
    """What can be done with the answer on the tests' own platform."""

    dialect: Dialect = SLACK
    edits: bool = True
    reads_back: bool = True
    only_asker: bool = False
    message: int = 0
    """The longest message there, where it is not the dialect's."""
    pace: float = 0.0


@dataclass
class FakeScene:
    """The tests' own platform."""

    street: FakeStreet
    traits: Traits
    follows: bool = True

    @property
    def certain(self) -> bool:
        return self.traits.reads_back and not self.traits.only_asker

    async def ask(self, question: str, *, thread: str = "") -> str:
        people, channels = self.street.people, self.street.channels
        where = {"user": people[0], "channel": channels[0], "thread": thread}
        return await self.street.say(question, only_asker=self.traits.only_asker, **where)

    def key(self, message: str) -> str:
        return f"{self.street.name}:T1/{self.street.channels[0]}/{message}"

    def life(self, home: Path) -> Life:
        known = self.traits
        told: dict[str, Any] = {"dialect": known.dialect.name, "edits": known.edits, "reads_back": known.reads_back}
        return Life(str(home), "fake", self.street.server.url, told | {"message": known.message, "pace": known.pace})

    def heard(self, word: str, what: str) -> None:
        """Nothing has to be known: it finds us."""

    async def kills(self, child: Child, point: Point) -> None:
        """Its fuses have every point."""

    @property
    def posted(self) -> int:
        return self.street.server.posts.total()


def fake(traits: Traits) -> Callable[[], AbstractAsyncContextManager[Scene]]:
    """Return what opens a scene of the tests' own platform."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Scene]:
        dialect = traits.dialect.smaller(traits.message) if traits.message else traits.dialect
        async with serve(dialect) as server:
            yield FakeScene(FakeStreet(server, dialect.message), traits)

    return opened


SHORT = {"message": 160, "pace": 1_000.0}
"""So short a message that an answer and its source need two; so slow that nothing is shown on the way."""
FAKES: Mapping[str, Callable[[], AbstractAsyncContextManager[Scene]]] = MappingProxyType(
    {
        "editable": fake(Traits()),
        "ephemeral": fake(Traits(only_asker=True)),
        "unreadable": fake(Traits(DISCORD, reads_back=False)),
        "editable, short": fake(Traits(**SHORT)),
        "ephemeral, short": fake(Traits(only_asker=True, **SHORT)),
        "unreadable, short": fake(Traits(DISCORD, reads_back=False, **SHORT)),
    }
)
