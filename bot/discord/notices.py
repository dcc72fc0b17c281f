"""What we post in Discord besides answers: a call for help, and that there is no way to show something to its asker."""

import logging
import secrets
from collections.abc import Sequence
from dataclasses import replace

from bot.desk.types import Place, PostedMessages, Question
from bot.discord import reading_back, routes
from bot.discord.calling import Calling
from bot.discord.happening import Us
from bot.discord.posting import channel_of, nonce, post
from bot.discord.reading import snowflake_at
from bot.discord.rendering import messages
from bot.discord.ways import InChannel
from bot.platform import PlatformError, PlatformUnavailable
from bot.views.catalog import translate
from bot.views.turn_view import View

log = logging.getLogger(__name__)

_SKEW = 60.0
"""Seconds by which our clock may be ahead of Discord's."""


async def called(call: Calling, us: Us, place: Place, text: str, people: Sequence[str], now: float) -> PostedMessages:
    """Post a sentence that mentions these people; one whose post is in doubt is looked for, not repeated.

    `now`: in seconds since 1970.

    Raises:
        PlatformError: It was not posted, or nobody knows.
    """
    once, sent, begun = secrets.token_hex(8), list[str](), str(snowflake_at(now - _SKEW))
    for page, message in enumerate(messages(View(0, text=text, mentions=tuple(people)))):
        key = f"{once}/{page}"
        try:
            answer = await call(routes.POST, post(message, key, nonce(key, page)), channel=channel_of(place))
        except PlatformUnavailable as error:
            found = PostedMessages()
            if error.seconds is None:
                found = await reading_back.posted(call, place, key, begun, us)
            if not found:
                raise
            sent += found.messages
        else:
            sent.append(str(answer["id"]))
    return PostedMessages(tuple(sent))


async def unseen(call: Calling, channel: InChannel, question: Question, language: str) -> None:
    """Tell an asker that nothing can be shown to them alone any more, as far as they can be told.

    Whoever used a command is told by a DM, so that nobody else learns of it; without a word of the answer, for what
    may be read in one place is not for every place. Who asked before everybody is told there.
    """
    occasion = "discord_late" if question.handle else "discord_ask_by_command"
    (message, *_) = messages(View(0, text=translate(occasion, language or "en")))
    try:
        if not question.handle:
            await channel.post(0, message)
            return
        opened = await call(routes.OPEN_DM, {"recipient_id": question.asker.user})
        key = unseen_of(question).key
        await call(routes.POST, post(message, key, nonce(key, 0)), channel=str(opened["id"]))
    except PlatformError as error:
        log.warning("an asker could not be told that nothing can be shown", extra={"cause": str(error)})


def unseen_of(question: Question) -> Question:
    """Return what the notice is marked as."""
    return replace(question, key=f"{question.key}#unseen")
