"""What was asked while nobody listened: mentions, replies to us, and follow-ups in threads that we take part in.

The channels and open threads of our servers are read from the last message that was taken anywhere, a day back at most.
What is found goes the way of events, under the same keys, so that what was taken before is known. What nobody asked us
is left alone; what was written in DMs is not found, for Discord does not tell a bot which it has.
"""

import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from datetime import datetime
from typing import Any

from bot.desk.desk import Desk
from bot.desk.types import Taken
from bot.discord import reading
from bot.discord.calling import Calling
from bot.discord.happening import Learned, Us, Written
from bot.discord.refusals import Refused
from bot.discord.routes import ACTIVE_THREADS, CHANNELS, READ
from bot.discord.taking import Taking
from bot.platform import PlatformError
from storage.errors import StorageError
from storage.queue import Queue

Json = Mapping[str, Any]

log = logging.getLogger(__name__)

FURTHEST_SECONDS = 86_400.0
"""What was asked before that is not answered any more."""
PAGE = 100
_WITHOUT_MESSAGES = frozenset({4, 14, 15, 16})
"""Categories, directories, and forums, whose posts are threads."""


class CatchingUp:
    """Takes what was missed."""

    def __init__(
        self,
        queue: Queue,
        desk: Desk,
        call: Calling,
        us: Us,
        taking: Taking,
        guilds: Collection[str],
        now: Callable[[], datetime],
    ) -> None:
        """Take the queue, the desk, the way to Discord, who we are, what takes messages, our servers, and the date."""
        self._queue, self._desk, self._call, self._us, self._taking = queue, desk, call, us, taking
        self._guilds, self._now = tuple(guilds), now

    async def since(self) -> int | None:
        """Return the id of what was taken last; None where nothing was. To be asked before events arrive again.

        Raises:
            StorageError: It cannot be looked up.
        """
        last = await self._queue.newest("discord")
        number = last.key.partition("#")[0].rpartition("/")[2] if last else ""
        return int(number) if number.isascii() and number.isdigit() else None

    async def run(self, since: int | None) -> None:
        """Take all that was missed since then; what cannot be read is told in the log, and the rest goes on."""
        if since is None:
            return
        since, taken = max(since, reading.snowflake_at(self._now().timestamp() - FURTHEST_SECONDS)), 0
        for guild in self._guilds:
            try:
                taken += await self._guild(guild, since)
            except (PlatformError, StorageError) as error:
                log.warning("not all that was missed could be looked for", extra={"cause": str(error)})
        if taken:
            log.info("questions that were asked meanwhile: %d", taken)

    async def _guild(self, guild: str, since: int) -> int:
        channels = list(await self._call(CHANNELS, guild=guild) or ())
        threads = list((await self._call(ACTIVE_THREADS, guild=guild) or {}).get("threads") or ())
        found = [one for data in (*channels, *threads) if (one := reading.channel_of(data, guild))]
        self._taking.places.learn(Learned(guild, tuple(found)))
        quiet = {str(data.get("id")) for data in (*channels, *threads) if _is_quiet(data, since)}
        return sum([await self._channel(one.id, guild, since) for one in found if one.id not in quiet])

    async def _channel(self, channel: str, guild: str, since: int) -> int:
        taken = 0
        try:
            async for message in self._missed(channel, since):
                written = reading.written(message, self._us, guild)
                taken += await self._take(written) if written else 0
        except Refused:  # a channel that we may not read: nobody could ask us there
            return taken
        except PlatformError as error:
            log.warning("a channel could not be caught up", extra={"channel": channel, "cause": str(error)})
        return taken

    async def _missed(self, channel: str, since: int) -> AsyncIterator[Json]:
        """Yield a channel's messages after an id, oldest first."""
        while True:
            query = {"after": str(since), "limit": str(PAGE)}
            page = sorted(await self._call(READ, query=query, channel=channel) or (), key=lambda one: int(one["id"]))
            for message in page:
                yield message
            if len(page) < PAGE:
                return
            since = int(page[-1]["id"])

    async def _take(self, written: Written) -> int:
        question = await self._taking.question(written)
        if question is None or question.unasked or question.only_asker:
            return 0
        taken = await self._desk.take(question)
        if taken is Taken.KNOWN and written.edited:
            await self._desk.edited(question.key, question.text)
        return int(taken is Taken.NEW)


def _is_quiet(channel: Json, since: int) -> bool:
    """Return whether nothing was written in a channel since an id, as far as Discord says."""
    last = channel.get("last_message_id")
    never = channel.get("type") in _WITHOUT_MESSAGES
    return never or (isinstance(last, str) and last.isdecimal() and int(last) <= since)
