"""A bot in a workspace, with helpers by which tests act there and wait for results."""

import asyncio
import inspect
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.app import App
from bot.desk.platform_port import Platform
from bot.types import QuestionState
from storage.types import EntryKind, QueuedQuestion
from tests.platforms.example_app import BUILT, RISES, open_example_app
from tests.platforms.systems import Gated
from tests.platforms.workspace import Read, Workspace

BUSY = ("[Stop]", "Footnote is thinking")
"""Texts that users see while an answer is in progress."""


@dataclass
class Bot:
    workspace: Any
    home: Path
    stack: AsyncExitStack
    system: Gated = field(default_factory=Gated)
    settings: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    """Parts of the app that replace the real ones."""
    wrapping: dict[str, Callable[[Any], Any]] = field(default_factory=dict)
    """Wrappers of parts of the app."""
    app: Any = None
    platform: Any = None

    @property
    def server(self) -> Any:
        return self.workspace.server

    @property
    def people(self) -> Any:
        return self.server.people

    async def start(self, **settings: Any) -> Platform:
        """Start the bot, with the settings of earlier starts and these."""
        self.settings |= settings
        app = self.stack.enter_context(open_example_app(self.home, **self.settings))
        app = replace(app, **{name: wrap(getattr(app, name)) for name, wrap in self.wrapping.items()})
        self.app = replace(self.system.answering(app), **self.changes)
        self.platform = await self.stack.enter_async_context(self.workspace.joined(self.app))
        return self.platform

    async def stop(self) -> None:
        await self.stack.aclose()
        self.app = None

    async def ask(self, text: str = BUILT, *, person: int = 0, channel: int = 0, **more: Any) -> str:
        workspace = self.workspace
        return await workspace.say(text, user=workspace.users[person], channel=workspace.channels[channel], **more)

    async def answered(self, message: str) -> tuple[Read, ...]:
        """Wait for the final answer to a message."""
        await self.workspace.until(lambda: finished(self.workspace.answer(message)))
        return self.workspace.answer(message)

    async def press(self, action: str, message: str, *, person: int = 0) -> None:
        (shown,) = [one for one in self.workspace.answer(message) if action in one.buttons]
        await self.workspace.press(action, shown.id, user=self.workspace.users[person])

    def posted(self, channel: int = 0, *, person: int = 0) -> list[str]:
        """Return the texts of the bot that a user sees in a channel."""
        workspace = self.workspace
        return [message.text for message in workspace.seen(workspace.channels[channel], by=workspace.users[person])]

    async def until_posted(self, text: str, channel: int = 0, *, person: int = 0) -> None:
        """Wait until a user sees a text of the bot."""
        await self.workspace.until(lambda: any(text in one for one in self.posted(channel, person=person)))

    # The whole channel as a user sees it, on Slack and Discord.

    def sees(self, channel: str = "", *, by: str = "") -> str:
        """Return what a user sees of a channel, except who is typing."""
        channel, by = channel or self.workspace.channels[0], by or self.workspace.users[0]
        return self.server.seen(channel, by=by).replace("\n… Footnote is typing", "")

    async def until(self, *words: str, channel: str = "", by: str = "") -> str:
        """Wait until a user sees all of these words, and no answer is in progress."""

        def is_shown() -> bool:
            seen = self.sees(channel, by=by)
            return all(word in seen for word in words) and not any(sign in seen for sign in BUSY)

        await self.server.until(is_shown)
        return self.sees(channel, by=by)

    async def modal(self, *words: str, user: str = "") -> str:
        """Wait until a user has a modal open that shows all of these words, and return its text."""
        user = user or self.workspace.users[0]
        await self.server.until(lambda: (shown := self.workspace.modal(user)) and all(word in shown for word in words))
        return self.workspace.modal(user)

    # The queue and the record.

    def id(self, channel: int = 0) -> str:
        """Return a channel's id in the settings."""
        return f"{self.workspace.name}:{self.workspace.team}/{self.workspace.channels[channel]}"

    def user_id(self, person: int) -> str:
        """Return a user's id in the settings."""
        return f"{self.workspace.name}:{self.workspace.team}/{self.workspace.users[person]}"

    async def row(self, message: str, channel: int = 0) -> QueuedQuestion:
        row = await self.app.queue.by_message(self.id(channel), message)
        assert row
        return row

    async def over(self, message: str) -> QueuedQuestion:
        """Wait until the desk has finished a question, and return its row."""
        # Questions of one conversation are answered one after another: when this is done, so is that before it.
        await self.answered(await self.ask(RISES, thread=message))
        return await self.done(message)

    async def done(self, message: str, outcome: str = "") -> QueuedQuestion:
        """Wait until a question has ended, perhaps with an outcome, and return its row."""
        return await self._until_done(lambda: self.row(message), outcome)

    async def outcome(self, ticket: int, outcome: str = "") -> QueuedQuestion:
        """Wait until the question with a ticket has ended, perhaps with an outcome, and return its row."""
        return await self._until_done(lambda: self.app.queue.get(ticket), outcome)

    async def _until_done(self, get: Callable[[], Any], outcome: str) -> QueuedQuestion:
        async def done_row() -> QueuedQuestion | None:
            row: QueuedQuestion | None = await get()
            return row if row and row.state == QuestionState.DONE and outcome in {"", row.outcome} else None

        row: QueuedQuestion = await eventually(done_row)
        return row

    async def bodies(self, row: QueuedQuestion, kind: EntryKind) -> list[Any]:
        """Return the record's entries of a kind about a question."""
        return [entry.body for entry in await self.app.audit.turn(row.turn_id) if entry.kind is kind]


@asynccontextmanager
async def bot_in(
    opening: AbstractAsyncContextManager[Workspace], filled: Path, home: Path, **options: Any
) -> AsyncIterator[Bot]:
    """Open a workspace, and yield a bot there that is not started yet; its home is a copy of `filled`."""
    shutil.copytree(filled, home)
    async with opening as workspace:
        for name, value in options.items():
            setattr(workspace, name, value)
        async with AsyncExitStack() as stack:
            yield Bot(workspace, home, stack)
        workspace.check()


async def eventually(holds: Callable[[], Any]) -> Any:
    """Poll until `holds` returns something true, perhaps after an await, and return that."""
    async with asyncio.timeout(60):
        while not (found := await value if inspect.isawaitable(value := holds()) else value):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        return found


async def until_idle(app: App, workspace: Workspace) -> None:
    """Wait until no question is open, and nothing is pending."""

    async def is_idle() -> bool:
        return not workspace.pending and not await app.queue.open("nobody", datetime.now(UTC), sole=True)

    await eventually(is_idle)


def finished(messages: tuple[Read, ...]) -> bool:
    """Return whether an answer is final; the buttons of long answers are on their last message."""
    return bool(messages) and "stop" not in {action for message in messages for action in message.buttons}


def text(messages: tuple[Read, ...]) -> str:
    return "\n".join(message.text for message in messages)
