"""How an interaction is answered: within 3 s by a deferral or a sentence, then by changing what stands there.

What is said here is for whoever invoked, and seen by nobody else. That something could not be said is in the log.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bot.discord.calling import Calling
from bot.discord.escaping import escaped
from bot.discord.invoking import Invoked
from bot.discord.routes import CALLBACK, DELETE_ANSWER, EDIT_ANSWER, FOLLOW_UP
from bot.platform import PlatformError

Json = Mapping[str, Any]

log = logging.getLogger(__name__)

SAY, DEFER, DEFER_UPDATE, MODAL = 4, 5, 6, 9
"""Kinds of first answers."""
EPHEMERAL, NO_EMBEDS = 1 << 6, 1 << 2
PATIENCE = 2.5
"""Discord takes a first answer for 3 s."""
SETTLED_SECONDS = 10.0
"""So long an answer waits at most for its deferral."""
_LONGEST = 2_000
_ANSWERED = 40060
"""Discord's code for an interaction that was answered: by the call before, whose answer was lost."""


class Answering:
    """Answers interactions."""

    def __init__(self, call: Calling) -> None:
        """Take the way to Discord."""
        self._call = call
        self._under_way: dict[str, asyncio.Event] = {}

    @contextmanager
    def deferring(self, key: str) -> Iterator[None]:
        """Within the block a question is stored and then deferred: until its end, `settled` waits."""
        done = self._under_way[key] = asyncio.Event()
        try:
            yield
        finally:
            del self._under_way[key]
            done.set()

    async def settled(self, key: str) -> None:
        """Wait until a question is deferred: before that Discord knows of no answer that could be changed."""
        if done := self._under_way.get(key):
            try:
                async with asyncio.timeout(SETTLED_SECONDS):
                    await done.wait()
            except TimeoutError:
                log.warning("an answer did not wait for its deferral any longer")

    async def defer(self, found: Invoked, *, private: bool) -> bool:
        """Say that an answer comes, and return whether Discord heard."""
        return await self._first(found, DEFER, {"flags": EPHEMERAL} if private else {})

    async def accept(self, found: Invoked) -> bool:
        """Say that a press arrived, and that nothing is shown for it."""
        return await self._first(found, DEFER_UPDATE)

    async def modal(self, found: Invoked, modal: Json) -> bool:
        """Open a modal."""
        return await self._first(found, MODAL, modal)

    async def say(self, found: Invoked, words: str, *rows: Json) -> bool:
        """Answer at once with a sentence, and perhaps rows of buttons beneath it."""
        return await self._first(found, SAY, {**sentence(words), "components": list(rows)})

    async def change(self, found: Invoked, body: Json) -> None:
        """Put something in the place of what was deferred, or of the message whose button was pressed."""
        application, token = found.handle.application, found.handle.token
        await _tried(self._call(EDIT_ANSWER, body, application=application, token=token, message="@original"))

    async def remove(self, found: Invoked) -> None:
        """Delete the message whose button was pressed."""
        application, token = found.handle.application, found.handle.token
        await _tried(self._call(DELETE_ANSWER, application=application, token=token, message="@original"))

    async def add(self, found: Invoked, words: str) -> None:
        """Say something besides."""
        application, token = found.handle.application, found.handle.token
        await _tried(self._call(FOLLOW_UP, sentence(words), application=application, token=token))

    async def _first(self, found: Invoked, kind: int, data: Json | None = None) -> bool:
        body = {"type": kind, "data": data} if data else {"type": kind}
        token = found.handle.token
        try:
            await self._call(CALLBACK, body, patience=PATIENCE, interaction=found.id, token=token)
        except PlatformError as error:
            if getattr(error, "code", 0) == _ANSWERED:
                return True
            log.warning("Discord did not take a first answer", extra={"cause": str(error)})
            return False
        return True


async def _tried(call: Awaitable[object]) -> None:
    try:
        await call
    except PlatformError as error:
        log.warning("somebody could not be answered", extra={"cause": str(error)})


def sentence(words: str, shown: Callable[[str], str] = escaped) -> dict[str, Any]:
    """Return a message of our own words that its reader alone sees; pure. `shown` makes them safe to be shown."""
    content = shown(words)
    while len(content.encode("utf-16-le", "replace")) // 2 > _LONGEST:
        words = words[: len(words) * 3 // 4]
        content = shown(f"{words} …")
    return {
        "content": content,
        "components": [],
        "flags": EPHEMERAL | NO_EMBEDS,
        "allowed_mentions": {"parse": []},
    }
