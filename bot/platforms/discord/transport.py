"""Receive Discord's events through discord.py, which sends heartbeats, resumes sessions and connects shards.

Settings may redirect the library to a proxy, or to a test server.
"""

import asyncio
import copy
import json
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import discord
from discord.gateway import DiscordWebSocket, KeepAliveHandler
from discord.http import HTTPClient, Route

from bot.desk.platform_port import PlatformError
from bot.desk.supervisor import Clock, TaskSupervisor, compute_backoff
from bot.platforms.discord import DiscordSettings
from bot.platforms.discord.events import list_intents, parse_snowflake_time, read_id
from bot.platforms.shared.catch_up import StartCatchUp
from bot.platforms.shared.payload_text import Json

log = logging.getLogger(__name__)


def redirect_library(route: Route, api_url: str) -> Route:
    """Return a copy of discord.py's route with another server's address; its rate limits stay the same."""
    redirected = copy.copy(route)
    redirected.url = api_url.rstrip("/") + route.url.removeprefix(Route.BASE)
    return redirected


class RedirectedHttp(HTTPClient):
    """discord.py's HTTP client, redirected to configured addresses."""

    def __init__(self, api_url: str, gateway_url: str, **options: Any) -> None:
        super().__init__(**options)
        self._api_url, self._gateway_url = api_url, gateway_url

    async def request(self, route: Route, **options: Any) -> Any:
        """Send a request. Raises what discord.py raises."""
        return await super().request(redirect_library(route, self._api_url) if self._api_url else route, **options)

    async def ws_connect(self, url: str, *, compress: int = 0) -> Any:
        """Connect to the configured gateway, or to the address at which the server resumes a session."""
        usual = str(DiscordWebSocket.DEFAULT_GATEWAY)
        if self._gateway_url and url.startswith(usual):
            url = self._gateway_url.rstrip("/") + "/" + url.removeprefix(usual)
        return await super().ws_connect(url, compress=compress)


class RedirectedShards(discord.AutoShardedClient):
    """discord.py's client of several shards, redirected to configured addresses; an empty address is Discord's own."""

    def __init__(self, *, api_url: str = "", gateway_url: str = "", **options: Any) -> None:
        self._addresses = api_url, gateway_url
        super().__init__(**options)

    async def close(self) -> None:
        """Close all connections and end their heartbeats, even if cancelled in the meantime.

        A session that is just starting is missed: call this again once it has started.
        """
        await asyncio.shield(self._close_all())

    async def _close_all(self) -> None:
        await super().close()
        await end_heartbeats(lambda socket: getattr(socket, "_connection", None) is self._connection)

    def _get_state(self, **options: Any) -> Any:
        # discord.py's own shards override this too: it is called after `http` is set, and before it is used.
        patience = options.get("max_ratelimit_timeout")
        self.http = RedirectedHttp(*self._addresses, loop=self.loop, max_ratelimit_timeout=patience)
        return super()._get_state(**options)


END_SECONDS = 5.0  # limit for heartbeat threads to end
_LOOK_SECONDS = 0.005


async def end_heartbeats(ours: Callable[[DiscordWebSocket], bool]) -> None:
    """Stop the heartbeat threads of our connections, and wait for their end.

    They need the event loop to run until then.
    """
    heartbeats = [
        thread for thread in threading.enumerate() if isinstance(thread, KeepAliveHandler) and ours(thread.ws)
    ]
    for thread in heartbeats:
        thread.stop()
    try:
        async with asyncio.timeout(END_SECONDS):
            while any(thread.is_alive() for thread in heartbeats):  # noqa: ASYNC110 - a thread does not signal its end
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        log.warning("a heartbeat thread of discord.py does not stop")


class ShardProgress:
    """When each shard last received a message, in seconds since 1970. Each shard may miss different events."""

    def __init__(self, since: float | None) -> None:
        self._before, self._last = since, dict[int, float]()
        self._shards = 1

    def begun(self, shard: tuple[int, int], now: float) -> float | None:
        """Note a new session, and return since when its shard has missed events; None if it missed none."""
        number, self._shards = shard
        since = self._last.get(number, self._before)
        self._last[number] = now
        return since

    def message(self, message: Json) -> None:
        number, guild = read_id(message, "id"), read_id(message, "guild_id")
        if not number:
            return
        shard = (int(guild or 0) >> 22) % self._shards
        self._last[shard] = max(self._last.get(shard, 0.0), parse_snowflake_time(number).timestamp())


def shard_of(ready: Json) -> tuple[int, int]:
    """Return a session's shard and the number of shards; pure."""
    match ready.get("shard"):
        case [int(number), int(shards)] if 0 <= number < shards:
            return number, shards
        case _:
            return 0, 1


HandleEvent = Callable[[str, Json], Awaitable[None]]

AGAIN_SECONDS, LONGEST_SECONDS = 5.0, 300.0
"""The first and the longest wait before a new connection: Discord allows 1,000 a day."""
_LEAVING_SECONDS = 0.2
IDENTIFY_SECONDS = 5.0
LAST_SECONDS = 3.0  # for events in progress when the connection is closed
_REFUSED: Mapping[int, str] = {
    4004: "Discord refuses the bot token: copy it again from the application's page, under Bot.",
    4010: "Discord refuses the shard: see [discord] shards.",
    4011: "Discord wants more shards: set [discord] shards = 0.",
    4013: "Discord does not know an intent.",
    4014: "Discord does not grant the intent Message Content: enable it on the application's page, under Bot, or set "
    "[discord] message_content = false.",
}  # why Discord closes a connection permanently


class Gateway:
    """Keeps the connection to Discord's gateway open, and passes its events on."""

    def __init__(
        self,
        settings: DiscordSettings,
        hear: HandleEvent,
        tasks: TaskSupervisor,
        catch_up: StartCatchUp,
        since: float | None,
        clock: Clock,
    ) -> None:
        self._settings, self._handle, self._tasks, self._clock = settings, hear, tasks, clock
        self._catch_up, self._progress = catch_up, ShardProgress(since)
        self._client: _Client | None = None
        self._in_flight, self._closing, self._reason = set[asyncio.Task[Any] | None](), False, ""
        self._refusal = asyncio.Event()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Keep the connection open within the block; reconnect whenever it ends."""
        async with self._tasks.kept():
            living = asyncio.create_task(self._run(), name="discord")
            try:
                yield
            finally:
                self._closing = True
                if self._in_flight:
                    await asyncio.wait(set(filter(None, self._in_flight)), timeout=LAST_SECONDS)
                await self._disconnect(living)

    def ready(self) -> str:
        """Return why events cannot arrive now; empty if they can."""
        is_open = self._client is not None and self._client.is_complete
        return self._reason or ("" if is_open else "The connection to Discord is not open.")

    async def refused(self) -> PlatformError:
        """Wait until Discord refuses the bot permanently, and return why."""
        await self._refusal.wait()
        return PlatformError(self._reason)

    async def _disconnect(self, living: asyncio.Task[None]) -> None:
        """Cancel the connection repeatedly until it ends, then close it.

        While a session starts, discord.py ignores a cancellation.
        """
        while not living.done():
            living.cancel()
            if self._client:
                await self._client.shut_down()
            await asyncio.wait({living}, timeout=_LEAVING_SECONDS)
        if self._client:
            # A session that started meanwhile has a heartbeat that the first close missed.
            await self._client.shut_down()

    async def _run(self) -> None:
        failures = 0
        while not (self._reason or self._closing):
            client = self._client = _Client(self._settings, self._handle_event, self._clock)
            try:
                await client.start(self._settings.token.get_secret_value())
            except discord.LoginFailure:
                self._stop(_REFUSED[4004])
            except discord.PrivilegedIntentsRequired:
                self._stop(_REFUSED[4014])
            except discord.ConnectionClosed as error:
                if error.code in _REFUSED:
                    self._stop(_REFUSED[error.code])
                else:
                    log.warning("Discord closed the connection", extra={"cause": str(error.code)})
            except Exception as error:  # noqa: BLE001 - any error leads to a retry
                log.warning("connection to Discord ended", extra={"cause": f"{type(error).__name__}: {error}"})
            finally:
                with suppress(Exception):
                    await client.shut_down()
            failures = 0 if client.was_connected else failures + 1
            if not (self._reason or self._closing):
                await self._clock.sleep(compute_backoff(failures, first=AGAIN_SECONDS, longest=LONGEST_SECONDS))

    def _stop(self, why: str) -> None:
        self._reason = why
        self._refusal.set()
        log.error("Discord refuses the bot: %s", why)

    async def _handle_event(self, name: str, data: Json) -> None:
        """Pass an event on; start a catch-up if a new session missed events."""
        if self._closing:
            return
        now = self._clock.now().timestamp()
        if name == "READY" and (since := self._progress.begun(shard_of(data), now)) is not None:
            self._tasks.spawn(self._catch_up(since))
        task = asyncio.current_task()
        self._in_flight.add(task)
        try:
            await self._handle(name, data)
        finally:
            self._in_flight.discard(task)
            if name == "MESSAGE_CREATE":
                self._progress.message(data)


class _Client(RedirectedShards):
    """discord.py's client with almost no cache."""

    def __init__(self, settings: DiscordSettings, event: HandleEvent, clock: Clock) -> None:
        # Do not warn about missing voice support.
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
        intents = discord.Intents.none()
        intents.value = list_intents(message_content=settings.message_content)
        super().__init__(
            api_url=settings.api_url,
            gateway_url=settings.gateway_url,
            intents=intents,
            shard_count=settings.shards or None,
            shard_ids=list(settings.shard_ids) or None,
            enable_debug_events=True,
            max_messages=None,
            chunk_guilds_at_startup=False,
            member_cache_flags=discord.MemberCacheFlags.none(),
            allowed_mentions=discord.AllowedMentions.none(),
        )
        self._handle_event, self._clock = event, clock
        self._connected_shards = set[int]()
        self.was_connected = False

    @property
    def is_complete(self) -> bool:
        return len(self._connected_shards) == (len(self.shard_ids) if self.shard_ids else self.shard_count)

    async def before_identify_hook(self, _: int | None, *, initial: bool = False) -> None:
        """Start one session at a time: Discord allows one every five seconds."""
        if not initial:
            await self._clock.sleep(IDENTIFY_SECONDS)

    async def on_socket_raw_receive(self, message: str) -> None:
        frame = json.loads(message)
        if frame.get("op") == 0 and isinstance(frame.get("d"), dict):
            await self._handle_event(str(frame.get("t")), frame["d"])

    async def on_shard_connect(self, shard: int) -> None:
        self._connected_shards.add(shard)
        self.was_connected = True

    async def on_shard_resumed(self, shard: int) -> None:
        self._connected_shards.add(shard)

    async def on_shard_disconnect(self, shard: int) -> None:
        self._connected_shards.discard(shard)

    async def on_error(self, event_method: str, /, *_: Any, **__: Any) -> None:
        """Log a failed event without its content."""
        log.error("discord.py failed to handle an event", extra={"event": event_method})

    async def shut_down(self) -> None:
        self._connected_shards.clear()
        await self.close()
