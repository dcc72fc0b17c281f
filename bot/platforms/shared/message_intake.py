"""Hand messages of a platform to the desk in order: an edit or a deletion follows its message."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from bot.app import App
from bot.desk.desk import Desk
from bot.desk.jobs.job import decode_question
from bot.desk.supervisor import TaskSupervisor
from bot.platforms.shared.addressing import Audience, IncomingMessage, find_audience, is_edit_addressed
from bot.types import IntakeStatus, Question

EMPTY_MENTION = "hello"  # what somebody says who mentions us and says nothing else

_REMEMBERED = 1_000  # of how many messages it is remembered that they were taken


class MessageIntake:
    """What happens in one channel is taken in the order in which it arrives, whichever is looked up faster."""

    def __init__(self, app: App, desk: Desk, tasks: TaskSupervisor) -> None:
        self._app, self._desk, self._tasks = app, desk, tasks
        self._locks = WeakValueDictionary[str, asyncio.Lock]()
        self._taken = OrderedDict[str, None]()

    async def take(self, channel: str, key: str, read: Callable[[], Awaitable[Question | None]]) -> IntakeStatus | None:
        """Take a message, if it is read as a question. Raises `StorageError` where that cannot be told.

        Of what comes twice, as each mention does in Slack, the second is known without asking the database.
        """
        async with self._lock(channel):
            if key in self._taken:
                return IntakeStatus.KNOWN
            question = await read()
            status = await self._desk.take(question) if question else None
            if status in {IntakeStatus.NEW, IntakeStatus.KNOWN}:
                self._taken[key] = None
                if len(self._taken) > _REMEMBERED:
                    self._taken.popitem(last=False)
            return status

    async def edit(
        self,
        channel: str,
        key: str,
        read: Callable[[], Awaitable[tuple[str, IncomingMessage] | None]],
        admit: Callable[[Question, str], bool] = lambda _, __: True,
        take: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Have an edited question answered anew, if it was taken. Raises `StorageError`.

        `admit` says whether a question may be asked in other words just now. `take` takes what was none before.
        """
        await self._settle(channel)
        row = await self._app.queue.by_key(key)
        if row is None and take:
            await take()
            return
        text, message = (row and await read()) or ("", None)
        text = text or (EMPTY_MENTION if message and message.addressed else "")
        if not (row and text and message and is_edit_addressed(message, unasked=bool(row.body.get("unasked")))):
            return
        question = decode_question(row)
        if question.text != text and admit(question, text):
            await self._tasks.wait_briefly(self._desk.edit_question(key, text))

    async def delete(self, channel: str, withdraw: Coroutine[Any, Any, None]) -> None:
        """Take back the answers to what was deleted. Raises `StorageError`."""
        await self._settle(channel)
        await self._tasks.wait_briefly(withdraw)

    async def find_audience(self, message: IncomingMessage, conversation: str, author: str, *, every: bool) -> Audience:
        """Return whose a message is. Raises `StorageError`."""
        return await find_audience(message, partial(self._participates, conversation, author), every=every)

    async def _participates(self, conversation: str, author: str, by_author: bool) -> bool:  # noqa: FBT001 - see `Participates`
        return await self._desk.participates(conversation, author if by_author else "")

    def _lock(self, channel: str) -> asyncio.Lock:
        return self._locks.setdefault(channel, asyncio.Lock())

    async def _settle(self, channel: str) -> None:
        """Wait until what is just being taken in a channel is known."""
        async with self._lock(channel):
            pass
