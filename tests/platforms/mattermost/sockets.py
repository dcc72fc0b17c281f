"""The WebSocket: authentication, the greeting, numbered events, and resumed connections."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from tests.platforms.fake_server import abort
from tests.platforms.mattermost.state import BOT, State

KEPT = 128
"""How many events of a connection that broke off are kept."""


@dataclass
class Link:
    """A connection by its id, which may be resumed."""

    id: str
    sent: list[dict[str, Any]] = field(default_factory=list)
    people: list[int] = field(default_factory=list)
    """Which of them are of what people did."""
    read: int = 0
    """How many events were surely read: frames are answered in order."""
    socket: web.WebSocketResponse | None = None
    writing: asyncio.Queue[dict[str, Any] | None] = field(default_factory=asyncio.Queue)

    def send_event(self, event: str, data: dict[str, Any], channel: str = "", *, own: bool = True) -> None:
        self.people += [] if own else [len(self.sent)]
        broadcast = {"omit_users": None, "user_id": "", "channel_id": channel, "team_id": "", "connection_id": ""}
        frame = {"event": event, "data": data, "broadcast": broadcast, "seq": len(self.sent)}
        self.sent.append(frame)
        self.writing.put_nowait(frame)

    @property
    def unread(self) -> int:
        """How many actions of users the bot may not have read yet."""
        return sum(number >= self.read for number in self.people) if self.socket else 0


class Sockets:
    """The bot's connections."""

    def __init__(self, state: State, notify: Callable[[], None]) -> None:
        self._state, self._notify = state, notify
        self.links: dict[str, Link] = {}
        self.resumed, self.greeted = 0, 0
        self.bare = False
        """Whether a proxy takes away the header by which a connection proves itself."""
        self.forgets = False
        """Whether the server keeps nothing of connections that broke off, as after its restart."""

    @property
    def unread(self) -> int:
        return sum(link.unread for link in self.links.values())

    def send_event(self, event: str, data: dict[str, Any], channel: str, *, by: str) -> None:
        """Send an event to the bot, if it may know of it."""
        if not channel or BOT in self._state.channels[channel].members:
            for link in self.links.values():
                link.send_event(event, data, channel, own=by == BOT)
        self._notify()

    def skip(self) -> None:
        """Lose the next event of every connection."""
        for link in self.links.values():
            link.sent.append({})
            link.read += 1

    def cut(self) -> None:
        for link in self.links.values():
            if link.socket:
                abort(link.socket)

    async def close(self) -> None:
        for link in list(self.links.values()):
            if link.socket:
                await link.socket.close()

    async def connect(self, request: web.Request) -> web.StreamResponse:
        """Serve a connection, which authenticates by its header or by a challenge."""
        header = request.headers.get("Authorization", "") if not self.bare else ""
        known = header.removeprefix("Bearer ") in self._state.tokens
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        if not known and not await self._challenged(socket):
            return socket
        link = self._resume(request) if known else None
        link = link or self._greet()
        link.socket = socket
        writing = asyncio.create_task(_write(link, socket), name="fake-mattermost-socket")
        try:
            async for frame in socket:
                if frame.type is WSMsgType.PING:
                    await socket.pong(frame.data)
                elif frame.type is WSMsgType.PONG and frame.data:
                    link.read = max(link.read, int(frame.data))
                    self._notify()
        finally:
            writing.cancel()
            if link.socket is socket:
                link.socket, link.writing = None, asyncio.Queue()
            if socket.close_code in {1000, 1001}:
                self.links.pop(link.id, None)
            self._notify()
        return socket

    async def _challenged(self, socket: web.WebSocketResponse) -> bool:
        frame = await socket.receive(timeout=60)
        challenge = json.loads(frame.data) if frame.type is WSMsgType.TEXT else {}
        if challenge.get("action") != "authentication_challenge" or not challenge.get("seq", 0) > 0:
            await socket.close()
            return False
        if challenge["data"].get("token") not in self._state.tokens:
            await socket.send_json({"status": "FAIL", "seq_reply": challenge["seq"], "error": {"status_code": 401}})
            await socket.close()
            return False
        await socket.send_json({"status": "OK", "seq_reply": challenge["seq"]})
        return True

    def _resume(self, request: web.Request) -> Link | None:
        link, number = self.links.get(request.query.get("connection_id", "")), request.query.get("sequence_number", "")
        if link is None or self.forgets or not number.isdigit() or not 0 <= len(link.sent) - int(number) <= KEPT:
            return None
        self.resumed += 1
        link.writing = asyncio.Queue()
        for frame in link.sent[int(number) :]:
            link.writing.put_nowait(frame)
        return link

    def _greet(self) -> Link:
        self.greeted += 1
        self.links = {name: one for name, one in self.links.items() if not self.forgets or one.socket}
        link = Link(self._state.new_id())
        self.links[link.id] = link
        link.send_event("hello", {"connection_id": link.id, "server_version": "10.11.0"})
        return link


async def _write(link: Link, socket: web.WebSocketResponse) -> None:
    writing = link.writing
    while True:
        frame = await writing.get()
        if frame:
            await socket.send_json(frame)
            await socket.ping(str(frame["seq"] + 1).encode())
