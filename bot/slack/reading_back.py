"""What stands in a conversation, read from Slack itself: all pages of it, ours among it by their marks.

Only a live message carries no mark until it is stopped. One of ours after a question and without any mark is taken
for its answer, for the questions of a conversation are answered one after another.
"""

from collections import deque
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

from bot.desk.types import ConversationMessage, Place, PostedMessages, Question
from bot.platform import PostGone
from bot.slack.calling import Calling
from bot.slack.happening import Us
from bot.slack.posting import ANSWER, CALL, marked
from bot.slack.reading import said
from bot.slack.unescaping import plain

Json = Mapping[str, Any]

PAGE = 200
"""Messages that are asked for at once."""


async def posted(call: Calling, question: Question, us: str) -> PostedMessages:
    """Return our messages in answer to a question, in the order in which they stand."""
    after, found, unmarked = _asked_at(question), list[str](), list[str]()
    async for message in _messages(call, question.place, oldest=after):
        if message.get("user") != us or _moment(message) <= float(after):
            continue
        if marked(message, ANSWER) == question.key:
            found.append(str(message["ts"]))
        elif not message.get("metadata") and "#" not in question.key:  # what is shared is never live
            unmarked.append(str(message["ts"]))
    return PostedMessages(tuple(sorted([*found, *([] if found else unmarked[:1])], key=float)))


async def called(call: Calling, place: Place, key: str) -> PostedMessages:
    """Return the call for help that has this key, if it stands in a thread, or among the newest posts of a channel."""
    looked = 0
    async for message in _messages(call, place):
        looked += 1
        if marked(message, CALL) == key:
            return PostedMessages((str(message["ts"]),))
        if not place.thread and looked == PAGE:  # a channel is read backwards
            break
    return PostedMessages()


async def heard(call: Calling, question: Question, us: str, most: int) -> tuple[ConversationMessage, ...]:
    """Return the last messages before a question in its thread, oldest first.

    What has no thread is a conversation by itself, such as a command: what a channel's people say is none of its.
    """
    if not question.place.thread:
        return ()
    before, found = float(_asked_at(question)), deque[ConversationMessage](maxlen=most)
    async for message in _messages(call, question.place):
        if _moment(message) < before and (one := _heard(message, us)).text:
            found.append(one)
    return tuple(sorted(found, key=lambda one: float(one.message)))


async def _messages(call: Calling, place: Place, *, oldest: str = "0") -> AsyncIterator[Json]:
    """Yield what stands in a thread, or in a channel since a moment; nothing where that is gone."""
    facts: dict[str, Any] = {"channel": place.channel, "limit": PAGE, "include_all_metadata": True}
    facts |= {"ts": place.thread} if place.thread else {"oldest": oldest}
    method = "conversations.replies" if place.thread else "conversations.history"
    while True:
        try:
            page = await call(method, **facts)
        except PostGone:
            return
        for message in page.get("messages") or ():
            if not ("cursor" in facts and message.get("ts") == place.thread):  # it begins every page
                yield message
        cursor = (page.get("response_metadata") or {}).get("next_cursor")
        if not cursor:
            return
        facts["cursor"] = cursor


def _asked_at(question: Question) -> str:
    """Return the moment of a question as Slack's timestamp."""
    return question.message or f"{question.at.timestamp():.6f}"


def _moment(message: Json) -> float:
    return float(message.get("ts", 0))


def _heard(message: Json, us: str) -> ConversationMessage:
    user = str(message.get("user") or message.get("bot_id") or "?")
    at = datetime.fromtimestamp(_moment(message), UTC)
    raw = str(message.get("text") or "")
    text = plain(raw) if user == us else said(raw, Us("", us))
    return ConversationMessage(str(message["ts"]), "" if user == us else user, text, at)
