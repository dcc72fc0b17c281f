"""A stage for scenes: the real bot, and the tests' Discord, where people act."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.app import App
from tests.platforms.discord.components import nested
from tests.platforms.discord.joining import joined
from tests.platforms.discord.server import serve
from tests.platforms.discord.state import FakeDiscord
from tests.platforms.discord.world import EPOCH, LOADING, Message
from tests.platforms.slack.clock import FastClock
from tools.pictures.discord.discord_page import Before, Shown
from tools.pictures.scene import PATIENCE

CHANNEL, ADMIN, COLLEAGUE = "201", "109", "102"
_FASTER = 3
"""So many times as fast as in truth does time pass there, for the pace that Discord sets."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A server with the bot in it."""

    discord: FakeDiscord

    @property
    def names(self) -> Mapping[str, str]:
        """Whom each id means."""
        return {user.id: user.name.title() for user in self.discord.world.users.values()}

    @property
    def channel(self) -> str:
        """The channel's name."""
        return self.discord.world.channels[CHANNEL].name

    def shown(self, message: Message) -> Shown:
        """Return a message as its reader sees it now."""
        at = datetime.fromtimestamp(((int(message.id) >> 22) + EPOCH) / 1000, UTC).strftime("%H:%M")
        name, before, edited = self.names[message.user], self._before(message), message.edited is not None
        alone = bool(message.only)
        return Shown(name, at, tuple(message.components), message.content, before, alone=alone, edited=edited)

    def ours(self) -> list[Message]:
        """Return what the bot wrote, oldest first."""
        return self.discord.world.ours()

    async def answered(self, *, pages: int = 1) -> list[Message]:
        """Wait until the bot's messages are whole, and return them."""
        await self.discord.until(lambda: len(self.ours()) >= pages and not any(map(_waiting, self.ours())), PATIENCE)
        return self.ours()

    def button(self, action: str) -> tuple[str, str]:
        """Return the last button of a kind that there is, and the message that it is on."""
        found = [(name, one.id) for one in self.ours() for name in _pressable(one) if f":{action}:" in name]
        return found[-1]

    def _before(self, message: Message) -> Before | None:
        world = self.discord.world
        if used := world.interactions.get(message.interaction):
            return Before(self.names[used.user], f"/{used.name}", command=True) if used.kind == 2 else None
        root = world.messages.get((message.reference or {}).get("message_id", ""))
        return Before(self.names[root.user], root.content) if root else None


@asynccontextmanager
async def staged(app: App, at: datetime) -> AsyncIterator[Stage]:
    """Let the bot join a server. `at`: what the clocks show there."""
    async with serve(clock=FastClock(_FASTER, at.timestamp()), leisure=_FASTER) as discord, joined(app, discord):
        yield Stage(discord)


def _pressable(message: Message) -> list[str]:
    return [one["custom_id"] for _, one in nested(message.components) if one.get("custom_id")]


def _waiting(message: Message) -> bool:
    """Return whether a message is on its way still: put off, or with a button that stops it."""
    return bool(message.flags & LOADING) or any(":stop:" in one for one in _pressable(message))
