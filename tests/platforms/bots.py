"""A bot on a street, and what tests ask of it there."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bot.app import App
from bot.desk.platform_port import Platform
from bot.types import QuestionState
from storage.types import EntryKind, QueuedQuestion
from tests.platforms.contract import Read, Street
from tests.platforms.systems import Gated
from tests.platforms.world import BUILT, RISES, open_world


@dataclass
class Bot:
    """A bot on a street, and what is asked of it there."""

    street: Street
    home: Path
    system: Gated
    stack: AsyncExitStack
    app: App | None = None
    platform: Platform | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    """What of the app is another than the real one."""
    wrapping: dict[str, Callable[[Any], Any]] = field(default_factory=dict)
    """What of the app is put into something."""

    async def start(self, **settings: Any) -> None:
        """Start it, with other settings if any are given."""
        self.settings |= settings
        app = self.stack.enter_context(open_world(self.home, **self.settings))
        app = replace(app, **{name: wrap(getattr(app, name)) for name, wrap in self.wrapping.items()})
        self.app = replace(self.system.answering(app), **self.changes)
        self.platform = await self.stack.enter_async_context(self.street.joined(self.app))

    async def stop(self) -> None:
        """Shut it down cleanly."""
        await self.stack.aclose()
        self.app = None

    async def ask(self, text: str = BUILT, *, person: int = 0, channel: int = 0, **more: Any) -> str:
        """Ask, and return the message."""
        street = self.street
        return await street.say(text, user=street.people[person], channel=street.channels[channel], **more)

    async def answered(self, message: str) -> tuple[Read, ...]:
        """Wait for the answer to a message as it stays, and return it."""
        await self.street.until(lambda: finished(self.street.answer(message)))
        return self.street.answer(message)

    async def row(self, message: str, channel: int = 0) -> QueuedQuestion:
        """Return what the queue has of a message."""
        assert self.app
        row = await self.app.queue.by_message(self.id(channel), message)
        assert row
        return row

    async def over(self, message: str) -> QueuedQuestion:
        """Wait until the desk is done with a question, and return what the queue has of it."""
        # Questions of one conversation are answered one after another: when this is done, so is that before it.
        await self.answered(await self.ask(RISES, thread=message))
        return await self.done(message)

    async def done(self, message: str, outcome: str = "") -> QueuedQuestion:
        """Wait until a question is done with, perhaps in a certain way, and return what the queue has of it."""
        async with asyncio.timeout(60):
            while True:
                row = await self.row(message)
                if row.state == QuestionState.DONE and outcome in {"", row.outcome}:
                    return row
                await asyncio.sleep(0.005)

    def id(self, channel: int = 0) -> str:
        """Return a channel as settings name it."""
        return f"{self.street.name}:{self.street.workspace}/{self.street.channels[channel]}"

    async def outcomes(self, row: QueuedQuestion) -> list[str]:
        """Return how a question was done with, as the record has it."""
        assert self.app
        entries = await self.app.audit.turn(row.turn_id)
        return [entry.body["outcome"] for entry in entries if entry.kind is EntryKind.DELIVERED]

    async def press(self, action: str, message: str, *, person: int = 0) -> None:
        """Press a button of the answer to a message."""
        (shown,) = [one for one in self.street.answer(message) if action in one.buttons]
        await self.street.press(action, shown.id, user=self.street.people[person])


def finished(messages: tuple[Read, ...]) -> bool:
    """Return whether an answer of one message stands there for good; the buttons of longer ones are on their last."""
    pressed = {action for one in messages for action in one.buttons}
    return bool(messages) and "stop" not in pressed


def text(messages: tuple[Read, ...]) -> str:
    """Return what people read of an answer."""
    return "\n".join(one.text for one in messages)
