"""Threads as an answer needs them: opened on the message that asks where the channel wants that, and opened again.

A thread on a message has that message's id, and a message has one thread at most: whoever opens it once more after a
crash finds it there.
"""

from typing import Any

from bot.desk.types import Question
from bot.discord import routes
from bot.discord.buttons import label
from bot.discord.calling import Calling
from bot.discord.refusals import Refused
from bot.views.sanitize import defang_text

_THERE = 160004
_LONGEST = 100
_NAMELESS = "Footnote"
_ARCHIVE_MINUTES = 1_440


def is_wanted(question: Question) -> bool:
    """Return whether a thread is to be opened on the very message that asks; pure."""
    return bool(question.message) and question.place.thread == question.message


async def open_for(call: Calling, question: Question) -> None:
    """Open the thread, unless it is there. Raises `PlatformError`."""
    name = label(defang_text(question.text), _LONGEST) if question.text.strip() else _NAMELESS
    body: dict[str, Any] = {"name": name, "auto_archive_duration": _ARCHIVE_MINUTES}
    try:
        await call(routes.OPEN_THREAD, body, channel=question.place.channel, message=question.message)
    except Refused as error:
        if error.code != _THERE:
            raise


async def reopen(call: Calling, thread: str) -> None:
    """Take a thread out of the archive. Raises `CannotPost` where it is locked."""
    await call(routes.CHANGE_CHANNEL, {"archived": False}, channel=thread)
