"""Decide which messages are questions to the bot, and hand them to the desk in order."""

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

EMPTY_MENTION = "hello"  # the question of a mention without text

_REMEMBERED = 1_000  # accepted messages whose keys are kept in memory


class Audience(StrEnum):
    OURS = "ours"  # the bot
    ANYBODYS = "anybodys"  # no one in particular: the bot may answer
    THEIRS = "theirs"  # others


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """The facts about a message that decide its audience."""

    addressed: bool  # it mentions the bot, replies to it, or is in a DM
    to_others: bool  # it addresses someone else, or everyone
    within: bool  # it is in a thread that began before it
    edited: bool = False  # its author has edited it


Participates = Callable[[bool], Awaitable[bool]]
"""Returns whether the bot takes part in a thread; given True, whether the message's author asked it there."""


def classify_audience(message: IncomingMessage, *, joined: bool, follows: bool, every: bool) -> Audience:
    if message.addressed:
        return Audience.OURS
    if message.to_others:
        return Audience.THEIRS
    if message.within:
        continued = follows and not every
        return Audience.THEIRS if not joined else Audience.OURS if continued else Audience.ANYBODYS
    # An edit does not turn a message into a question to no one in particular.
    return Audience.ANYBODYS if every and not message.edited else Audience.THEIRS


async def find_audience(message: IncomingMessage, joined: Participates, *, every: bool) -> Audience:
    """Return a message's audience; with `every`, the bot may answer messages that address no one in particular.

    Calls `joined` only if the audience depends on the thread, and raises what it raises.
    """
    in_thread = message.within and not (message.addressed or message.to_others)
    takes_part = in_thread and await joined(False)  # noqa: FBT003 - see `Participates`
    follows = takes_part and not every and await joined(True)  # noqa: FBT003 - see `Participates`
    return classify_audience(message, joined=takes_part, follows=follows, every=every)


def is_edit_addressed(message: IncomingMessage, *, unasked: bool) -> bool:
    """Return whether an accepted question is answered again after an edit; pure.

    It is, if the bot was addressed before the edit (not `unasked`) or is addressed now, or if the message is in a
    thread.
    """
    return not unasked or message.addressed or message.within


class MessageIntake:
    """Handles the messages of each channel in the order in which they arrive."""

    def __init__(self, app: App, desk: Desk, tasks: TaskSupervisor) -> None:
        self._app, self._desk, self._tasks = app, desk, tasks
        self._locks = WeakValueDictionary[str, asyncio.Lock]()
        self._taken = OrderedDict[str, None]()

    async def take(self, channel: str, key: str, read: Callable[[], Awaitable[Question | None]]) -> IntakeStatus | None:
        """Accept a message if it is a question. Raises `StorageError`.

        A message that is delivered again is recognised without the database; Slack delivers each mention twice.
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
        """Answer an edited question again, if it was accepted before. Raises `StorageError`.

        `admit` returns whether the question may be asked again now. `take` accepts a message that was not a question.
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
        """Retract the answers to deleted messages. Raises `StorageError`."""
        await self._settle(channel)
        await self._tasks.wait_briefly(withdraw)

    async def find_audience(self, message: IncomingMessage, conversation: str, author: str, *, every: bool) -> Audience:
        """Return a message's audience. Raises `StorageError`."""
        return await find_audience(message, partial(self._participates, conversation, author), every=every)

    async def _participates(self, conversation: str, author: str, by_author: bool) -> bool:  # noqa: FBT001 - see `Participates`
        return await self._desk.participates(conversation, author if by_author else "")

    def _lock(self, channel: str) -> asyncio.Lock:
        return self._locks.setdefault(channel, asyncio.Lock())

    async def _settle(self, channel: str) -> None:
        """Wait until the channel's messages in progress are stored."""
        async with self._lock(channel):
            pass


def build_welcome(by: Asker, place: Place, at: datetime, language: str) -> Question:
    """Return the question that asks the bot to introduce itself in a channel, on behalf of the user who invited it.

    Its key is made from the channel, so that the bot introduces itself once, however often it is invited.
    """
    key = f"{place.channel_id}/welcome"
    return Question(key, "ask", translate("intro_question", language or "en"), by, place, key, at)
