"""A platform from its users' point of view, so that one test runs on Slack, Discord and Mattermost.

A workspace holds a strict fake server that outlives the bot: users write and read there, and one bot after the other
connects to it. Messages are read as the plain text that a client shows.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from bot.app import App
from bot.desk.platform_port import Platform
from bot.desk.supervisor import Clock as DeskClock
from bot.settings.tables.settings_tables import ChannelValues
from tests.platforms.clock import HASTY, Clock
from tests.platforms.example_app import with_settings
from tests.platforms.fake_server import LIMITED, LOST, UNAVAILABLE, Fault

Call = Literal["post", "edit", "delete", "find"]
Failure = Literal["limited", "broken", "lost"]
"""How a call fails once: 429 with a time to wait; 5xx; done, but its response is lost."""
_FAILURES: dict[Failure, Fault] = {"limited": LIMITED, "broken": UNAVAILABLE, "lost": LOST}


@dataclass(frozen=True)
class Read:
    """A message of the bot as a user reads it."""

    id: str
    text: str
    buttons: tuple[str, ...]
    """The actions that can be pressed, by `Action`."""


@dataclass(frozen=True)
class Target:
    """The server to which a bot connects, and the clock by which it waits."""

    url: str
    clock: Clock
    http: bool = False
    """Whether the server reaches the bot over HTTP."""
    set_bot_url: Callable[[str], None] = lambda _: None
    """Receives the bot's address."""


def unchanged(value: Any) -> Any:
    return value


async def wait_until_ready(platform: Platform, check: Callable[[str], None] = lambda _: None) -> None:
    """Wait until events can arrive. `check` receives the reason why they cannot yet."""
    async with asyncio.timeout(60):
        while reason := platform.ready:
            check(reason)
            await asyncio.sleep(0.005)


@dataclass
class Workspace(ABC):
    """Users and their channels, in which they act and read."""

    server: Any
    every: bool = True
    """Whether the channels' settings have every question answered, also without a mention."""
    http: bool = False
    desk_clock: DeskClock = HASTY
    options: dict[str, Any] = field(default_factory=dict)
    """More arguments for the bot."""
    _closing: set[str] = field(default_factory=set)
    _presses: list[tuple[str, str, str]] = field(default_factory=list)
    """Buttons pressed while no bot was running."""
    _is_running: bool = False

    name: ClassVar[str]
    """The name in `Place.platform`."""
    team: ClassVar[str]
    users: ClassVar[tuple[str, str, str]]
    channels: ClassVar[tuple[str, str, str]]
    required: ClassVar[dict[str, str]] = {}
    """Settings without which the platform's other settings are not valid."""
    calls: ClassVar[dict[Call, tuple[str, ...]]]
    """The server's calls of each kind."""

    def __post_init__(self) -> None:
        for names in self.calls.values():
            shared: list[Fault] = []
            self.server.faults.update(dict.fromkeys(names, shared))

    @staticmethod
    @abstractmethod
    def run(app: App, target: Target, **options: Any) -> AbstractAsyncContextManager[Platform]:
        """Run a bot within the block."""

    @property
    def target(self) -> Target:
        return Target(self.server.url, self.server.clock, self.http, self._set_bot_url)

    @abstractmethod
    def _set_bot_url(self, url: str) -> None: ...

    @asynccontextmanager
    async def joined(self, app: App) -> AsyncIterator[Platform]:
        """Run a bot within the block. Buttons that were pressed while none was running are pressed now."""
        app = self._answering_all(app) if self.every else app
        async with self.run(app, self.target, desk_clock=self.desk_clock, **self.options) as platform:
            self._is_running = True
            self.hear("ready", "")
            while self._presses:
                action, message, user = self._presses.pop(0)
                await self.press(action, message, user=user)
            try:
                yield platform
            finally:
                self._is_running = False
        self.check()

    def _answering_all(self, app: App) -> App:
        channels = {channel.id: channel for channel in app.settings.channel}
        for name in (f"{self.name}:{self.team}/{channel}" for channel in self.channels):
            channels[name] = channels.get(name, ChannelValues(id=name)).model_copy(update={"answer": "every"})
        return with_settings(app, channel=tuple(channels.values()))

    def hear(self, word: str, value: str) -> None:
        """Handle a report of a bot: that it is `ready`, or the address at which it `listens`."""
        if word == "listens":
            self._set_bot_url(value)

    def check(self) -> None:
        """Assert that the server had no error, and that the bot kept to the protocol."""
        assert self.server.errors == []

    # Actions of users.

    @abstractmethod
    async def say(
        self,
        text: str,
        *,
        user: str = "",
        channel: str = "",
        thread: str = "",
        dm: bool = False,
        unasked: bool = False,
        only_asker: bool = False,
        silent: bool = False,
        **options: Any,
    ) -> str:
        """Write a message, and return its id.

        It mentions the bot except in a DM, and with `unasked` or `silent`, which also sends no event. With `only_asker`
        the answer is for the asker alone.
        """

    @abstractmethod
    async def again(self, message: str) -> None:
        """Deliver the event of a message once more."""

    @abstractmethod
    async def rewrite(self, message: str, text: str) -> None:
        """Edit a message as its author. A mention of the bot stays."""

    @abstractmethod
    async def erase(self, message: str) -> None:
        """Delete a message, a user's or the bot's."""

    async def press(self, action: str, message: str, *, user: str) -> None:
        """Press a button of a message of the bot's, or, while no bot is running, once one is."""
        if self._is_running:
            await self._press(action, message, user)
        else:
            self._presses.append((action, message, user))

    @abstractmethod
    async def _press(self, action: str, message: str, user: str) -> None: ...

    @abstractmethod
    async def turn_page(self, user: str) -> None:
        """Turn to the next page of the evidence that a user has open."""

    async def archive(self, channel: str) -> None:
        """Close a channel as soon as one more message was written there."""
        self._closing.add(channel)

    @abstractmethod
    async def invite(self, channel: str) -> None:
        """Add the bot to a channel."""

    # Messages that users read.

    @abstractmethod
    def answer(self, message: str) -> tuple[Read, ...]:
        """Return the messages that answer a message now, in order."""

    @abstractmethod
    def seen(self, channel: str, *, by: str) -> tuple[Read, ...]:
        """Return the bot's messages that a user sees in a channel, in order."""

    @abstractmethod
    def find_thread(self, text: str) -> str:
        """Return the message under which the bot wrote a text."""

    @abstractmethod
    def read_payloads(self, message: str) -> list[Any]:
        """Return the payloads of the bot's answer to a message."""

    # Facts about the server.

    def admin_settings(self, person: int) -> dict[str, Any]:
        """Return the settings by which a user is an admin."""
        return {self.name: {**self.required, "admins": [f"{self.name}:{self.team}/{self.users[person]}"]}}

    def question_key(self, message: str) -> str:
        """Return the key of a message at the desk."""
        return f"{self.name}:{self.team}/{self.channels[0]}/{message}"

    @property
    @abstractmethod
    def pending(self) -> int:
        """How many actions of users are not acknowledged yet."""

    @property
    def event_sent(self) -> bool:
        """Whether the last event was sent to the bot."""
        return True

    @property
    @abstractmethod
    def posted(self) -> int:
        """How many messages the bot ever posted."""

    @property
    def refused(self) -> list[str]:
        return list(map(str, self.server.refused))

    @property
    def pings(self) -> list[str]:
        """Every user that a client could have notified for the bot, once for each message."""
        return self.server.pings

    @property
    def links(self) -> list[str]:
        """Every address that a client could have linked for the bot, once for each message."""
        return self.server.links

    def fail_next(self, call: Call, failure: Failure) -> None:
        self.server.faults[self.calls[call][0]].append(_FAILURES[failure])

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until `holds` returns something true; checked again after each change of the server."""
        await self.server.until(holds)

    async def settled(self) -> None:
        """Wait until the bot handled all actions of users."""
        await self.until(lambda: not self.pending)
