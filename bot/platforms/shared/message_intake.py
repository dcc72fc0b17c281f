"""Hand messages of a platform to the desk in order: an edit or a deletion follows its message."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from bot.access import Asker
from bot.app import App
from bot.desk.desk import Desk
from bot.desk.jobs.job import decode_question
from bot.desk.supervisor import TaskSupervisor
from bot.types import IntakeStatus, Place, Question
from bot.views.catalog import translate

EMPTY_MENTION = "hello"  # what somebody says who mentions us and says nothing else

_REMEMBERED = 1_000  # of how many messages it is remembered that they were taken


class Audience(StrEnum):
    """Whose a message is."""

    OURS = "ours"  # somebody asks us
    ANYBODYS = "anybodys"  # nobody asked us, but we may answer
    THEIRS = "theirs"  # it is no business of ours


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message, as far as it tells whose it is."""

    addressed: bool  # whether it mentions us, replies to us, or stands in a DM
    to_others: bool  # whether it is said to somebody else, or to all who are there
    within: bool  # whether it stands in a thread that began before it
    edited: bool = False  # whether its author has changed it since


Participates = Callable[[bool], Awaitable[bool]]
"""Says whether we take part in a thread; given True, whether we do so because this message's author asked us there."""


def classify_audience(remark: IncomingMessage, *, joined: bool, follows: bool, every: bool) -> Audience:
    """Return whose a message is; pure."""
    if remark.addressed:
        return Audience.OURS
    if remark.to_others:
        return Audience.THEIRS
    if remark.within:
        asked = follows and not every
        return Audience.THEIRS if not joined else Audience.OURS if asked else Audience.ANYBODYS
    # What nobody asked us when it was written is not asked by a change of it.
    return Audience.ANYBODYS if every and not remark.edited else Audience.THEIRS


async def find_audience(remark: IncomingMessage, joined: Participates, *, every: bool) -> Audience:
    """Return the same, and look up only what it depends on. Raises what `joined` raises."""
    in_thread = remark.within and not (remark.addressed or remark.to_others)
    takes_part = in_thread and await joined(False)  # noqa: FBT003 - see `Participates`
    follows = takes_part and not every and await joined(True)  # noqa: FBT003 - see `Participates`
    return classify_audience(remark, joined=takes_part, follows=follows, every=every)


def is_edit_addressed(remark: IncomingMessage, *, unasked: bool) -> bool:
    """Return whether an edit changes a question that was taken; pure.

    An edit that takes our mention away makes it no less a question to us, and in a thread none has to mention us.
    """
    return not unasked or remark.addressed or remark.within


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


def build_welcome(by: Asker, place: Place, at: datetime, language: str) -> Question:
    """Return the question who we are, as whoever invited us would ask it; its answer stands in the channel itself.

    Its key is the channel's, so that the desk answers it once, however often we are invited.
    """
    key = f"{place.channel_id}/welcome"
    return Question(key, "ask", translate("intro_question", language or "en"), by, place, key, at)
