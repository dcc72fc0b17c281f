"""The connection on which Discord's events arrive: discord.py's, with its heartbeats, RESUME, and shards.

Events are read as they come, before discord.py makes objects of them, so that reading them is pure. Where discord.py
gives up, as over an event that it does not understand, it is begun anew; where Discord refuses us for good, it is not,
and `ready` says why.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import discord

from bot.desk.jobs.ports import Clock
from bot.discord.addresses import AddressedShards
from bot.discord.needs import intents
from bot.discord.shards import Heard, shard_of
from bot.platform import PlatformError
from bot.server.supervisor import TaskSupervisor
from bot.settings.platform_settings import DiscordSettings

Json = Mapping[str, Any]
Hear = Callable[[str, Json], Awaitable[None]]
CatchUp = Callable[[float | None], Awaitable[None]]
"""Takes what was missed since a moment, in seconds since 1970."""

log = logging.getLogger(__name__)

AGAIN_SECONDS, LONGEST_SECONDS = 5.0, 300.0
"""How long to wait before a connection is begun anew, at first and at most: Discord allows 1,000 beginnings a day."""
_LEAVING_SECONDS = 0.2
IDENTIFY_SECONDS = 5.0
LAST_SECONDS = 3.0
"""How long what has arrived may take to be taken in when the connection is closed."""
_REFUSED: Mapping[int, str] = {
    4004: "Discord does not take the bot token: copy it anew from the application's page, under Bot.",
    4010: "Discord refuses the shard: see [discord] shards.",
    4011: "Discord wants more shards: set [discord] shards = 0.",
    4013: "Discord does not know an intent.",
    4014: "Discord does not give the intent Message Content: turn it on on the application's page, under Bot, or set "
    "[discord] message_content = false.",
}
"""Why Discord closes a connection for good."""


class Gateway:
    """Holds the connection, and hands on what arrives."""

    def __init__(
        self,
        settings: DiscordSettings,
        hear: Hear,
        tasks: TaskSupervisor,
        catch_up: CatchUp,
        since: float | None,
        clock: Clock,
    ) -> None:
        """Take the settings, what hears events, what keeps tasks, what catches up since when, and the time."""
        self._settings, self._hear, self._tasks, self._clock = settings, hear, tasks, clock
        self._catch_up, self._heard = catch_up, Heard(since)
        self._client: _Client | None = None
        self._taking, self._closing, self._ended = set[asyncio.Task[Any] | None](), False, ""
        self._over = asyncio.Event()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Hold the connection within the block; that Discord is away is no error, for it is tried until it is there."""
        async with self._tasks.kept():
            living = asyncio.create_task(self._live(), name="discord")
            try:
                yield
            finally:
                self._closing = True
                if self._taking:
                    await asyncio.wait(set(filter(None, self._taking)), timeout=LAST_SECONDS)
                await self._left(living)

    def ready(self) -> str:
        """Say why events cannot arrive just now; nothing when all is well."""
        if self._ended:
            return self._ended
        client = self._client
        return "" if client and client.all_there else "The connection to Discord is not open."

    async def refused(self) -> PlatformError:
        """Wait until Discord refuses us for good, and return why."""
        await self._over.wait()
        return PlatformError(self._ended)

    async def _left(self, living: asyncio.Task[None]) -> None:
        """Break the connection off. While it begins a session, discord.py swallows that, so it is closed besides."""
        while not living.done():
            living.cancel()
            if self._client:
                await self._client.ended()
            await asyncio.wait({living}, timeout=_LEAVING_SECONDS)
        if self._client:
            # What began meanwhile has a heartbeat, which the first closing did not see.
            await self._client.ended()

    async def _live(self) -> None:
        """Connect, and begin anew wherever that ends."""
        wait = AGAIN_SECONDS
        while not (self._ended or self._closing):
            client = self._client = _Client(self._settings, self._event, self._clock)
            try:
                await client.start(self._settings.token.get_secret_value())
            except discord.LoginFailure:
                self._end(_REFUSED[4004])
            except discord.PrivilegedIntentsRequired:
                self._end(_REFUSED[4014])
            except discord.ConnectionClosed as error:
                self._closed(error.code)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
                log.warning("the connection to Discord ended", extra={"cause": f"{type(error).__name__}: {error}"})
            finally:
                with suppress(Exception):
                    await client.ended()
            wait = AGAIN_SECONDS if client.was_there else min(wait * 2, LONGEST_SECONDS)
            if not (self._ended or self._closing):
                await self._clock.sleep(wait)

    def _closed(self, code: int) -> None:
        if code in _REFUSED:
            self._end(_REFUSED[code])
        else:
            log.warning("Discord closed the connection", extra={"cause": str(code)})

    def _end(self, why: str) -> None:
        self._ended = why
        self._over.set()
        log.error("Discord refuses us: %s", why)

    async def _event(self, name: str, data: Json) -> None:
        """Hand on an event, and have what was missed caught up where a new session begins."""
        if self._closing:
            return
        now = self._clock.now().timestamp()
        if name == "READY" and (since := self._heard.begun(shard_of(data), now)) is not None:
            self._tasks.spawn(self._catch_up(since))
        task = asyncio.current_task()
        self._taking.add(task)
        try:
            await self._hear(name, data)
        finally:
            self._taking.discard(task)
            if name == "MESSAGE_CREATE":
                self._heard.message(data)


class _Client(AddressedShards):
    """discord.py's client, which remembers next to nothing of what it sees."""

    def __init__(self, settings: DiscordSettings, event: Hear, clock: Clock) -> None:
        # It would warn that it cannot speak.
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
        super().__init__(
            api_url=settings.api_url,
            gateway_url=settings.gateway_url,
            intents=_intents(settings),
            shard_count=settings.shards or None,
            enable_debug_events=True,
            max_messages=None,
            chunk_guilds_at_startup=False,
            member_cache_flags=discord.MemberCacheFlags.none(),
            allowed_mentions=discord.AllowedMentions.none(),
        )
        self._event, self._clock = event, clock
        self._there = set[int]()
        self.was_there = False
        """Whether it ever was."""

    @property
    def all_there(self) -> bool:
        """Whether all shards are connected."""
        return len(self._there) == self.shard_count

    async def before_identify_hook(self, _: int | None, *, initial: bool = False) -> None:
        """Begin one session at a time: Discord takes one in five seconds."""
        if not initial:
            await self._clock.sleep(IDENTIFY_SECONDS)

    async def on_socket_raw_receive(self, message: str) -> None:
        """Hand on what arrives."""
        frame = json.loads(message)
        if frame.get("op") == 0 and isinstance(frame.get("d"), dict):
            await self._event(str(frame.get("t")), frame["d"])

    async def on_shard_connect(self, shard: int) -> None:
        """Note that a session began."""
        self._there.add(shard)
        self.was_there = True

    async def on_shard_resumed(self, shard: int) -> None:
        """Note that a session goes on."""
        self._there.add(shard)

    async def on_shard_disconnect(self, shard: int) -> None:
        """Note that a connection is lost."""
        self._there.discard(shard)

    async def on_error(self, event_method: str, /, *_: Any, **__: Any) -> None:
        """Tell that an event could not be handed on, and not what it said."""
        log.error("an event of Discord's could not be read", extra={"event": event_method})

    async def ended(self) -> None:
        """Close it, and wait for its own tasks."""
        self._there.clear()
        await self.close()


def _intents(settings: DiscordSettings) -> discord.Intents:
    made = discord.Intents.none()
    made.value = intents(message_content=settings.message_content)
    return made
