"""A stage for scenes: the real bot, and the tests' Slack, where people act."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bot.app import App
from tests.platforms.slack.clock import FastClock
from tests.platforms.slack.joining import joined
from tests.platforms.slack.server import serve
from tests.platforms.slack.state import FakeSlack
from tests.platforms.slack.world import BOT as BOT_USER
from tests.platforms.slack.world import Message, Stream
from tools.pictures.picture_page import BOT
from tools.pictures.scene import PATIENCE
from tools.pictures.slack.slack_page import Shown

CHANNEL = "C1"
ADMIN = "U9"
_FASTER = 3
"""So many times as fast as in truth does time pass there, for the pace that Slack sets."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A workspace with the bot in it."""

    slack: FakeSlack

    @property
    def names(self) -> Mapping[str, str]:
        """Whom each id means."""
        return {user.id: BOT if user.id == BOT_USER else user.name.title() for user in self.slack.world.users.values()}

    @property
    def channel(self) -> str:
        """The channel's name."""
        return self.slack.world.channels[CHANNEL].name

    def shown(self, message: Message) -> Shown:
        """Return a message as its reader sees it now."""
        at = datetime.fromtimestamp(float(message.ts), UTC).strftime("%H:%M")
        blocks = (*live(message), *message.blocks)
        return Shown(self.names[message.user], at, blocks, message.text, alone=bool(message.only))

    def ours(self) -> list[Message]:
        """Return what the bot wrote, oldest first."""
        return self.slack.world.ours()

    async def answered(self, *, pages: int = 1) -> list[Message]:
        """Wait until the bot's messages are whole, and return them."""
        await self.slack.until(lambda: len(self.ours()) >= pages and not any(map(_waiting, self.ours())), PATIENCE)
        return self.ours()

    async def modal(self, user: str) -> Mapping[str, Any]:
        """Wait until somebody has a modal open, and return it."""
        await self.slack.until(lambda: self.slack.world.views.get(user), PATIENCE)
        body: Mapping[str, Any] = self.slack.world.views[user][-1].body
        return body


@asynccontextmanager
async def staged(app: App, at: datetime) -> AsyncIterator[Stage]:
    """Let the bot join a workspace. `at`: what the clocks show there."""
    async with serve(clock=FastClock(_FASTER, at.timestamp()), leisure=_FASTER) as slack, joined(app, slack):
        yield Stage(slack)


def live(message: Message) -> list[dict[str, Any]]:
    """Return what a live message shows, as blocks; nothing of one that is none."""
    stream = message.stream
    return [block for kind, part in stream.parts for block in _part(stream, kind, part)] if stream else []


def _part(stream: Stream, kind: str, part: Any) -> list[dict[str, Any]]:
    match kind:
        case "text":
            return [{"type": "markdown", "text": part}]
        case "task":
            return [{**stream.tasks[part], "type": "task_update"}]
        case _:
            return list(part)


def _waiting(message: Message) -> bool:
    """Return whether a message is on its way still: live, or with a button that stops it."""
    pressable = (one.get("action_id") for block in message.blocks for one in block.get("elements", ()))
    return message.stream is not None or "footnote:stop" in pressable
