"""What our servers keep of what was written: their channels and open threads.

What was written in DMs is not found, for Discord does not tell a bot which it has.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from typing import Any

from bot.catching_up import Missed, patiently
from bot.discord import reading
from bot.discord.calling import Calling
from bot.discord.happening import Learned, Us
from bot.discord.refusals import Refused
from bot.discord.routes import ACTIVE_THREADS, CHANNELS, READ, Route
from bot.discord.taking import Taking
from storage.queue import Queue

Json = Mapping[str, Any]

log = logging.getLogger(__name__)

PAGE = 100
_NOT_OURS = frozenset({10003, 10004, 50001, 50013})
"""What Discord says where we are not, or may not read."""
_WITHOUT_MESSAGES = frozenset({4, 14, 15, 16})
"""Categories, directories, and forums, whose posts are threads."""


class DiscordArchive:
    """The servers that are the team's own. Implements `bot.catching_up.Archive`."""

    def __init__(self, queue: Queue, call: Calling, us: Us, taking: Taking, guilds: Collection[str]) -> None:
        """Take the queue, the way to Discord, who we are, what makes questions of messages, and our servers."""
        self._queue, self._call, self._us, self._taking = queue, call, us, taking
        self._guilds = tuple(guilds)
        self._guild: dict[str, str] = {}

    async def since(self) -> float | None:
        """Return when the last question was asked, by its id. Raises `StorageError`."""
        last = await self._queue.newest("discord")
        number = last.key.partition("#")[0].rpartition("/")[2] if last else ""
        return reading.moment(number).timestamp() if number.isascii() and number.isdigit() else None

    async def channels(self, since: float) -> AsyncIterator[str]:
        """Yield the channels and open threads in which something was written since then. Raises `PlatformError`."""
        for guild in self._guilds:
            try:
                listed = list(await self._read(CHANNELS, {"guild": guild}) or ())
                listed += (await self._read(ACTIVE_THREADS, {"guild": guild}) or {}).get("threads") or ()
            except Refused as error:
                if error.code not in _NOT_OURS:
                    raise
                log.warning("a server could not be caught up", extra={"server": guild, "cause": str(error)})
                continue
            found = [one for data in listed if (one := reading.channel_of(data, guild))]
            self._taking.places.learn(Learned(guild, tuple(found)))
            quiet = {str(data.get("id")) for data in listed if _is_quiet(data, since)}
            for one in found:
                if one.id not in quiet:
                    self._guild[one.id] = guild
                    yield one.id

    async def missed(self, channel: str, since: float) -> AsyncIterator[Missed]:
        """Yield the questions in a channel or thread. Raises `PlatformError`, `StorageError`."""
        async for message in self._written(channel, since):
            written = reading.written(message, self._us, self._guild.get(channel, ""))
            question = await self._taking.question(written) if written else None
            if written and question and not question.only_asker:
                yield Missed(question, written.edited)

    async def _written(self, channel: str, since: float) -> AsyncIterator[Json]:
        """Yield a channel's messages since then, oldest first; none where we may not read, and nobody could ask us."""
        after = str(reading.snowflake_at(since))
        while True:
            try:
                found = await self._read(READ, {"channel": channel}, {"after": after, "limit": str(PAGE)})
            except Refused as error:
                if error.code not in _NOT_OURS:
                    raise
                return
            page = sorted(found or (), key=lambda one: int(one["id"]))
            for message in page:
                yield message
            if len(page) < PAGE:
                return
            after = str(page[-1]["id"])

    async def _read(self, route: Route, ids: Mapping[str, str], query: Mapping[str, str] | None = None) -> Any:
        call: Callable[..., Awaitable[Any]] = self._call
        pacing = self._call.pacing
        return await patiently(lambda: call(route, query=query, **ids), lambda: pacing.spare(route, ids), pacing.sleep)


def _is_quiet(channel: Json, since: float) -> bool:
    """Return whether nothing was written in a channel since then, as far as Discord says."""
    last = channel.get("last_message_id")
    never = channel.get("type") in _WITHOUT_MESSAGES
    return never or (isinstance(last, str) and last.isdecimal() and int(last) < reading.snowflake_at(since))
