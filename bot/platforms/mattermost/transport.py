"""Receive Mattermost's events over its WebSocket; after a break, resume it or catch up."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from bot.desk.platform_port import AccessDenied, PlatformError
from bot.desk.supervisor import Clock, TaskSupervisor, cancel_tasks, compute_backoff
from bot.platforms.shared.catch_up import StartCatchUp
from bot.platforms.shared.payload_text import Json, read_object

log = logging.getLogger(__name__)

AGAIN_SECONDS, LONGEST_SECONDS = 1.0, 60.0  # the first and the longest wait before a new socket
HELLO_SECONDS = 10.0  # within which a server must greet
HEARTBEAT_SECONDS = 30.0  # between pings
SKEW_SECONDS = 60.0  # between the server's clock and ours
_MAX_FRAME = 1 << 24
_REFUSED = "Mattermost refuses the token: make one on the bot account's page."
_LOCKED_OUT = frozenset({401, 403})

HandleEvent = Callable[[Json], Awaitable[None]]


class SocketGap(Exception):
    """The socket failed, and another one has to be opened."""


class TokenRefused(SocketGap):
    """The server refuses our token."""


class EventOrder:
    """Checks the numbers of a connection's events, to notice missing ones. Pure."""

    def __init__(self) -> None:
        self.connection, self._next = "", 0

    @property
    def query(self) -> Mapping[str, str]:
        """The query fields by which the server resumes the last connection; empty if there is none to resume."""
        return {"connection_id": self.connection, "sequence_number": str(self._next)} if self.connection else {}

    def begin(self, connection: str) -> bool:
        """Note the server's greeting, and return whether the connection is a new one."""
        fresh = connection != self.connection or not connection
        self.connection, self._next = connection, 0 if fresh else self._next
        return fresh

    def follow(self, number: int) -> bool:
        """Note an event's number, and return whether it is the next one."""
        if number != self._next:
            self.connection, self._next = "", 0
            return False
        self._next += 1
        return True


class MattermostSocket:
    """Keeps the connection to Mattermost's WebSocket open, and passes its events on."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        token: str,
        hear: HandleEvent,
        tasks: TaskSupervisor,
        catch_up: StartCatchUp,
        since: float | None,
        clock: Clock,
        check: Callable[[], Awaitable[object]],
    ) -> None:
        """`check` calls the API; it raises `AccessDenied` if our token is refused."""
        self._session, self._url, self._token = session, f"{url}/api/v4/websocket".replace("http", "ws", 1), token
        self._handle, self._tasks, self._catch_up, self._clock = hear, tasks, catch_up, clock
        self._check, self._since, self._order = check, since, EventOrder()
        self._open, self._reason, self._refusal = False, "", asyncio.Event()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Keep the connection open within the block; reconnect whenever it ends."""
        async with self._tasks.kept():
            living = asyncio.create_task(self._run(), name="mattermost")
            try:
                yield
            finally:
                await cancel_tasks([living])

    def ready(self) -> str:
        """Return why events cannot arrive now; empty if they can."""
        return self._reason or ("" if self._open else "The connection to Mattermost is not open.")

    async def refused(self) -> PlatformError:
        """Wait until Mattermost refuses the bot permanently, and return why."""
        await self._refusal.wait()
        return PlatformError(self._reason)

    async def _run(self) -> None:
        failures = 0
        while not self._reason:
            greeted = False
            try:
                async for _ in self._listen():
                    greeted = True
            except (aiohttp.ClientError, OSError, TimeoutError, SocketGap) as error:
                log.warning("connection to Mattermost ended", extra={"cause": f"{type(error).__name__}: {error}"})
                status = error.status if isinstance(error, aiohttp.WSServerHandshakeError) else 0
                if isinstance(error, TokenRefused) or status in _LOCKED_OUT:
                    await self._ask_why()
            finally:
                self._open = False
            failures = 0 if greeted else failures + 1
            if not self._reason:
                wait = compute_backoff(failures, first=AGAIN_SECONDS, longest=LONGEST_SECONDS)
                await self._clock.sleep(wait)

    async def _listen(self) -> AsyncIterator[None]:
        """Pass on the events of one connection, until it ends."""
        headers, challenge = {"Authorization": f"Bearer {self._token}"}, {"token": self._token}
        connecting = self._session.ws_connect(
            self._url, headers=headers, params=self._order.query, heartbeat=HEARTBEAT_SECONDS, max_msg_size=_MAX_FRAME
        )
        async with connecting as socket:
            # A proxy may have removed the header.
            await socket.send_json({"seq": 1, "action": "authentication_challenge", "data": challenge})
            self._open = bool(self._order.connection)  # a resumed connection is not greeted again
            while not socket.closed:
                async with asyncio.timeout(None if self._open else HELLO_SECONDS):
                    frame = await socket.receive()
                if frame.type is not aiohttp.WSMsgType.TEXT:
                    break
                await self._take(_parse(frame.data))
                yield

    async def _take(self, frame: Json) -> None:
        if "seq_reply" in frame:
            if frame.get("status") != "OK":
                raise TokenRefused("token refused")
            return
        if frame.get("event") == "hello":
            self._greet(str(read_object(frame, "data").get("connection_id") or ""))
        number = frame.get("seq")
        if not isinstance(number, int) or not self._order.follow(number):
            raise SocketGap("an event is missing")
        self._since = self._clock.now().timestamp()
        await self._tasks.wait_briefly(self._handle(frame))

    def _greet(self, connection: str) -> None:
        """Handle the server's greeting: a new connection catches up with missed questions, a resumed one does not."""
        self._open = True
        if self._order.begin(connection):
            self._tasks.spawn(self._catch_up(None if self._since is None else self._since - SKEW_SECONDS))

    async def _ask_why(self) -> None:
        """Stop if the API refuses our token too. Otherwise only a proxy refused the socket, and it is retried."""
        try:
            await self._check()
        except AccessDenied:
            self._reason = _REFUSED
            self._refusal.set()
            log.error("Mattermost refuses the bot: %s", _REFUSED)  # noqa: TRY400 - the cause is one line
        except PlatformError as error:
            log.warning("cannot find out why Mattermost refuses the socket", extra={"cause": str(error)})


def _parse(data: Any) -> Json:
    try:
        frame = json.loads(data)
    except ValueError:
        frame = None
    return frame if isinstance(frame, Mapping) else {"seq": -1}
