"""Socket Mode: addresses for one connection, `hello`, envelopes and acknowledgements, disconnects, silent sockets."""

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import WSMsgType, web

from tests.platforms.clock import Clock
from tests.platforms.fake_server import abort
from tests.platforms.slack import limits
from tests.platforms.slack.calls import Refusal
from tests.platforms.slack.delivery import Delivery, first

Deafness = Literal["", "silent", "mute"]
"""Empty: it hears. `silent`: it answers nothing, not even pings. `mute`: it answers pings, but does nothing else."""
_GRACE = 10
"""[K] Seconds between the warning and the end of a connection."""


@dataclass(eq=False)
class Link:
    """One connection."""

    number: int
    socket: web.WebSocketResponse
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    deaf: Deafness = ""
    leaving: bool = False
    """Whether it was asked to disconnect: it gets nothing new."""


@dataclass
class Sockets:
    """All connections of the app. Implements `delivery.Transport`."""

    clock: Clock
    notify: Callable[[], None]
    app_id: str
    ack_seconds: float = limits.ACK_SECONDS
    links: list[Link] = field(default_factory=list)
    made: int = 0
    """How many connections there ever were."""
    strange: list[Any] = field(default_factory=list)
    """Invalid frames from the app, such as acknowledgements of unknown envelopes."""
    allowed: bool = True
    """Whether Socket Mode is switched on."""
    _tickets: dict[str, float] = field(default_factory=dict)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))
    _waiting: dict[str, Delivery] = field(default_factory=dict)
    _linked: asyncio.Event = field(default_factory=asyncio.Event)
    _turn: int = 0

    def ticket(self) -> str:
        """Return a ticket for one connection. Raises `Refusal`."""
        if not self.allowed:
            raise Refusal("socket_mode_disabled")  # [K] the name
        ticket = f"ticket-{next(self._numbers)}"
        leisure = self.ack_seconds / limits.ACK_SECONDS
        self._tickets[ticket] = self.clock.now() + limits.TICKET_SECONDS * leisure
        return ticket

    async def connect(self, request: web.Request) -> web.StreamResponse:
        """Serve a connection until it ends."""
        until = self._tickets.pop(request.query.get("ticket", ""), 0.0)
        if until < self.clock.now():
            return web.Response(status=408 if until else 404)
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        link = Link(self.made, socket)
        self.made += 1
        with suppress(ConnectionError):
            await socket.send_json(self._hello())
        self.links.append(link)
        self._tell()
        try:
            await self._listen(link)
        finally:
            self.links.remove(link)
            link.closed.set()
            self._tell()
        return socket

    def _hello(self) -> dict[str, Any]:
        debug = {"host": "applink-1", "build_number": 1, "approximate_connection_time": 3600}
        count = len(self.links) + 1
        return {
            "type": "hello",
            "num_connections": count,
            "debug_info": debug,
            "connection_info": {"app_id": self.app_id},
        }

    async def _listen(self, link: Link) -> None:
        async for frame in link.socket:
            if link.deaf == "silent":
                continue
            if frame.type is WSMsgType.PING:
                with suppress(ConnectionError):
                    await link.socket.pong(frame.data)
            elif frame.type is WSMsgType.TEXT and not link.deaf:
                self._heard(frame.data)

    def _heard(self, text: str) -> None:
        try:
            frame = json.loads(text)
            delivery = self._waiting.pop(frame["envelope_id"])
        except (ValueError, KeyError, TypeError):
            self.strange.append(text)
        else:
            delivery.acknowledge(frame.get("payload"))
        self._tell()

    def _tell(self) -> None:
        (self._linked.set if self._open() else self._linked.clear)()
        self.notify()

    def _open(self) -> list[Link]:
        return [link for link in self.links if not link.leaving]

    async def send(self, delivery: Delivery) -> str:
        """Send an envelope over the connections in turn; without any, wait a little for one."""
        timeout = asyncio.ensure_future(self.clock.sleep(self.ack_seconds))
        try:
            while not self._open() and not timeout.done():
                await first(timeout, self._linked.wait())
            if not self._open():
                return "timeout"
            self._turn += 1
            link = self._open()[self._turn % len(self._open())]
            await self._post(link, delivery)
            await first(timeout, delivery.answer, link.closed.wait())
            if delivery.answer.done():
                return ""
            return "timeout" if timeout.done() else "connection_closed"
        finally:
            timeout.cancel()

    async def _post(self, link: Link, delivery: Delivery) -> None:
        envelope = f"envelope-{next(self._numbers)}"
        self._waiting[envelope] = delivery
        body = {"type": delivery.kind, "envelope_id": envelope, "payload": delivery.payload}
        body["accepts_response_payload"] = delivery.kind != "events_api"
        if delivery.kind == "events_api":
            body |= {"retry_attempt": delivery.attempt, "retry_reason": delivery.reason}
        delivery.sent.append(time.monotonic())
        if not link.deaf:
            with suppress(ConnectionError):
                await link.socket.send_json(body)
        self.notify()

    async def disconnect(self, reason: str = "refresh_requested") -> None:
        """Ask for all connections to be replaced: `warning`, `refresh_requested` or `link_disabled`.

        After a warning they end a little later by the clock, else at once.
        """
        self.allowed = self.allowed and reason != "link_disabled"
        for link in list(self.links):
            link.leaving = True
            with suppress(ConnectionError):
                await link.socket.send_json(
                    {"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}}
                )
        self._tell()
        leaving = list(self.links)
        if reason == "warning":
            await self.clock.sleep(_GRACE)
        for link in leaving:
            await link.socket.close()

    async def cut(self) -> None:
        """Cut all connections."""
        for link in list(self.links):
            abort(link.socket)
            await link.closed.wait()

    async def close(self) -> None:
        for link in list(self.links):
            await link.socket.close()
