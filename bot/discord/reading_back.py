"""What stands in a conversation, read from Discord itself: all pages of it, ours among it by their marks."""

import re
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from bot.desk.types import ConversationMessage, Place, PostedMessages, Question
from bot.discord import routes
from bot.discord.calling import Calling
from bot.discord.happening import Us
from bot.discord.posting import channel_of, mark, marked
from bot.discord.reading import moment, said, snowflake_at, written
from bot.discord.refusals import NoChannel
from bot.platform import PostGone
from bot.views.sanitize import WORD_JOINER
from storage.language.lazy_pattern import lazy_compile

Json = Mapping[str, Any]

PAGE = 100
"""Messages that are asked for at once."""
_REPLY, _STARTER = 19, 21
"""Types of messages: a reply, and what stands in a thread for the message that it was opened on."""
_LINK = lazy_compile(r"(?<!\\)\[((?:\\.|[^\\\[\]])*)\]\(<[^<>]*>\)")
_MARKUP = lazy_compile(r"\\([!-/:-@\[-`{-~])|\*\*|^(?:-#|>) ", re.MULTILINE)


def asked_at(question: Question) -> str:
    """Return the id that is smaller than those of all that came after a question."""
    return question.message or str(snowflake_at(question.at.timestamp()))


async def posted(call: Calling, place: Place, key: str, after: str, us: Us) -> PostedMessages:
    """Return our messages that carry the mark of a key, in the order in which they stand."""
    ours = [one async for one in _after(call, channel_of(place), after) if _is_ours(one, us)]
    return PostedMessages(tuple(sorted((str(one["id"]) for one in ours if marked(one) == mark(key)), key=int)))


async def heard(call: Calling, question: Question, us: Us, most: int) -> tuple[ConversationMessage, ...]:
    """Return the last messages before a question in its conversation, oldest first.

    In a thread and in a DM those are the messages before it, elsewhere those that it is a reply to; before a command
    that is a conversation by itself there are none.
    """
    if not question.message and question.conversation == question.key:
        return ()
    place, found = question.place, deque[ConversationMessage]()
    apart = not place.workspace or place.thread not in {"", question.message}
    async for message in _before(call, channel_of(place), asked_at(question)) if apart else _replied(call, question):
        if one := _heard(message, us):
            found.appendleft(one)
        if len(found) >= most:
            break
    return tuple(found)


def words(message: Json) -> str:
    """Return what a message of ours says in plain words; pure."""
    return "\n".join(_plain(text) for text in _texts(message))


async def _after(call: Calling, channel: str, after: str) -> AsyncIterator[Json]:
    """Yield what stands in a channel after a message; nothing where the channel is gone."""
    while page := await _page(call, channel, after=after):
        for message in page:
            yield message
        after = max((str(one["id"]) for one in page), key=int)


async def _before(call: Calling, channel: str, before: str) -> AsyncIterator[Json]:
    """Yield what stands in a channel before a message, newest first."""
    while page := await _page(call, channel, before=before):
        for message in sorted(page, key=lambda one: int(one["id"]), reverse=True):
            first = message.get("referenced_message") if message.get("type") == _STARTER else None
            yield first if isinstance(first, Mapping) else message
        before = min((str(one["id"]) for one in page), key=int)


async def _replied(call: Calling, question: Question) -> AsyncIterator[Json]:
    """Yield what a question replies to, what that replies to, and so on, for as long as it is there."""
    channel = question.place.channel
    found = await _one(call, channel, question.message) if question.message else None
    while found and (reply_to := str((found.get("message_reference") or {}).get("message_id", ""))):
        given = found.get("referenced_message")
        found = given if isinstance(given, Mapping) and _is_complete(given) else await _one(call, channel, reply_to)
        if found:
            yield found


async def _page(call: Calling, channel: str, **where: str) -> list[Json]:
    try:
        page = await call(routes.READ, query={"limit": str(PAGE), **where}, channel=channel)
    except NoChannel:
        return []
    return page if isinstance(page, list) else []


async def _one(call: Calling, channel: str, message: str) -> Json | None:
    try:
        found = await call(routes.READ_ONE, channel=channel, message=message)
    except (PostGone, NoChannel):
        return None
    return found if isinstance(found, Mapping) else None


def _heard(message: Json, us: Us) -> ConversationMessage | None:
    number = str(message["id"])
    if _is_ours(message, us):
        text, user = words(message), ""
    elif person := written(message, us):
        text, user = said(person.raw, us, person.names), person.user
    else:
        return None
    return ConversationMessage(number, user, text, moment(number)) if text.strip() else None


def _is_complete(message: Json) -> bool:
    """Return whether a message that came with its reply says what it is a reply to itself."""
    return message.get("type") != _REPLY or bool(message.get("message_reference"))


def _is_ours(message: Json, us: Us) -> bool:
    return bool((message.get("author") or {}).get("id") == us.user)


def _texts(component: Json) -> Iterator[str]:
    if isinstance(content := component.get("content"), str) and content:
        yield content
    for inner in component.get("components") or ():
        yield from _texts(inner)


def _plain(text: str) -> str:
    labelled = _LINK.sub(r"\1", text)
    return _MARKUP.sub(lambda found: found[1] or "", labelled).replace(WORD_JOINER, "")
