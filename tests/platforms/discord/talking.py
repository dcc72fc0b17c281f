"""A bot at the fake Discord that answers from three small pages, and what tests wait for there."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.app import App
from bot.desk.platform_port import Platform
from storage.types import QueuedQuestion
from tests.platforms.discord.components import nested
from tests.platforms.discord.joining import joined
from tests.platforms.discord.seeing import modal
from tests.platforms.discord.server import serve
from tests.platforms.discord.state import FakeDiscord
from tests.platforms.discord.world import Message
from tests.platforms.slack.clock import FastClock
from tests.platforms.systems import Gated
from tests.platforms.world import open_world

WAITING = "[Stop]"
TYPING = "\n… Footnote is typing"
THINKING = "Footnote is thinking"


@dataclass
class Talk:
    """What goes on between people and the bot."""

    discord: FakeDiscord
    home: Path
    system: Gated
    stack: AsyncExitStack
    app: App | None = None
    platform: Platform | None = None
    kept: dict[str, Any] = field(default_factory=dict)
    times: float = 1
    """How many times as fast Discord's time passes."""

    @property
    def acts(self) -> Any:
        return self.discord.acts

    async def start(self, **settings: Any) -> Platform:
        """Start the bot, with other settings if any are given."""
        self.kept |= settings
        self.app = self.system.answering(self.stack.enter_context(open_world(self.home, **self.kept)))
        self.platform = await self.stack.enter_async_context(joined(self.app, self.discord))
        return self.platform

    async def stop(self) -> None:
        """Shut it down."""
        await self.stack.aclose()

    def sees(self, channel: str = "201", *, by: str = "101") -> str:
        """Return what somebody sees of a channel, but for who is typing there."""
        return self.discord.seen(channel, by=by).replace(TYPING, "")

    async def until(self, *words: str, channel: str = "201", by: str = "101") -> str:
        """Wait until somebody sees all of these words, and nothing is under way."""

        def there() -> bool:
            seen = self.sees(channel, by=by)
            return all(one in seen for one in words) and WAITING not in seen and THINKING not in seen

        await self.discord.until(there)
        return self.sees(channel, by=by)

    async def press(self, action: str, message: Message, *, user: str = "101") -> None:
        """Press a button of a message of the bot's by what it does."""
        await self.acts.press(actions(message)[action], message.id, user=user)

    async def take_back(self, message: Message, *, user: str = "101") -> None:
        """Press the button that takes an answer back, and that one is sure."""
        asked = {one.id for one in self.discord.world.ours()}
        await self.press("retract", message, user=user)

        def doubts() -> list[Message]:
            return [one for one in self.discord.world.ours() if one.id not in asked and "back" in actions(one)]

        await self.discord.until(doubts)
        (sure,) = doubts()
        await self.press("back", sure, user=user)

    async def answered(self, asked: str) -> Message:
        """Wait for the answer to a message as it stays, and is known to stand; return its last message."""
        answers, world = self.acts.answers, self.discord.world
        await self.discord.until(lambda: answers(asked) and "stop" not in actions(answers(asked)[-1]))
        last: Message = answers(asked)[-1]
        place = world.parent(world.channels[last.channel])
        assert self.app
        async with asyncio.timeout(60):
            while not await self.app.queue.by_message(f"discord:{place.guild}/{place.id}", last.id):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        return last

    async def done(self, count: int) -> None:
        """Wait until so many questions were taken and all are done with."""
        for ticket in range(1, count + 1):
            await self.outcome(ticket)

    async def outcome(self, ticket: int, outcome: str = "") -> QueuedQuestion:
        """Wait until a question is done with, perhaps in a certain way, and return what the queue has of it."""
        assert self.app
        async with asyncio.timeout(60):
            while True:
                row = await self.app.queue.get(ticket)
                if row and row.state == "done" and outcome in {"", row.outcome}:
                    return row
                await asyncio.sleep(0.005)

    async def passed(self) -> None:
        """Wait until all that happened before was heard: a command that is used now is answered after it."""
        used = await self.acts.command("privacy", user="103", channel="203")
        await self.discord.until(lambda: used.acked)

    async def modal(self, *words: str, user: str = "101") -> str:
        """Wait until somebody has a modal open that says all of these words, and return what it says."""

        def shown() -> str:
            opened = self.discord.modals.get(user)
            return modal(opened.modal, self.discord.world) if opened and opened.modal else ""

        await self.discord.until(lambda: shown() and all(one in shown() for one in words))
        return shown()


@asynccontextmanager
async def talking(home: Path, filled: Path, times: float = 8) -> AsyncIterator[Talk]:
    """Serve a Discord, whose time passes so many times as fast, and a home to start the bot in."""
    shutil.copytree(filled, home)
    async with serve(clock=FastClock(times), leisure=times) as discord:
        async with AsyncExitStack() as stack:
            yield Talk(discord, home, Gated(), stack, times=times)
        assert discord.errors == []


def actions(message: Message) -> dict[str, str]:
    """Return the custom ids of a message's buttons by what they do."""
    found = [one["custom_id"] for _, one in nested(message.components) if one.get("custom_id")]
    return {one.split(":")[1]: one for one in found}


def field_of(modal: Mapping[str, Any]) -> str:
    """Return the custom id of a modal's only field."""
    (one,) = [one["custom_id"] for _, one in nested(modal["components"]) if one.get("custom_id")]
    return str(one)
