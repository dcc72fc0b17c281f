"""The gateway: HELLO, IDENTIFY or RESUME, heartbeats, events, and the end of connections."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import WSMsgType, web

from tests.platforms.clock import Clock
from tests.platforms.discord import limits
from tests.platforms.discord.jsons import guild_json, user_json
from tests.platforms.discord.sessions import GUILDS, MESSAGE_CONTENT, PRIVILEGED, Link, Session
from tests.platforms.discord.state import APP, BOT, State
from tests.platforms.fake_server import abort

Teller = Callable[[bool], dict[str, Any]]
"""Receives whether contents may be read, and returns an event's body."""


class Closed(Exception):
    """The server closes a connection with a code of its own."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Gateway:
    """Sessions, and the connections that they have."""

    def __init__(self, clock: Clock, state: State, notify: Callable[[], None]) -> None:
        self._clock, self._world, self._notify = clock, state, notify
        self.url = ""
        self.shards = 1
        """How many shards Discord asks for."""
        self.granted = MESSAGE_CONTENT
        """The privileged intents that the app was given in Discord's portal."""
        self.heartbeat_ms = limits.HEARTBEAT_MS
        self.sessions: dict[str, Session] = {}
        self.identifies, self.resumes, self.beats = 0, 0, 0
        self.closes: list[tuple[int, str]] = []
        """The codes that connections were closed with by the server, and why."""
        self.links: list[Link] = []

    @property
    def connected(self) -> list[Session]:
        return [session for session in self.sessions.values() if session.link]

    @property
    def flags(self) -> int:
        """The application's flags: which privileged intents it has, as one of fewer than a hundred servers."""
        return (1 << 19) * bool(self.granted & MESSAGE_CONTENT)

    def send_event(self, name: str, body: Teller, *, needed: int = 0, guild: str = "") -> int:
        """Send an event to every session that wants it, and return how many do."""
        self._forget()
        wanting = [session for session in self.sessions.values() if session.wants(needed) and session.holds(guild)]
        for session in wanting:
            session.send_event(name, body(bool(session.intents & MESSAGE_CONTENT)))
        self._notify()
        return len(wanting)

    # Disturbances.

    def reconnect(self) -> None:
        """Ask every client to connect again and resume (op 7)."""
        for session in self.connected:
            session.link.send({"op": 7, "d": None})  # type: ignore[union-attr]

    def invalidate(self, *, resumable: bool) -> None:
        """Tell every client that its session is invalid (op 9)."""
        for session in self.connected:
            session.link.send({"op": 9, "d": resumable})  # type: ignore[union-attr]
            if not resumable:
                self.sessions.pop(session.id)
                session.link = None

    def cut(self) -> None:
        """Cut every connection. Sessions can be resumed."""
        for link in self.links:
            abort(link.socket)

    async def close(self, code: int = 1001) -> None:
        for link in list(self.links):
            link.ended = True
            await link.socket.close(code=code)

    # A connection.

    async def connect(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        link = Link(socket)
        self.links.append(link)
        writing = asyncio.create_task(link.write(), name="fake-discord-gateway")
        try:
            link.send({"op": 10, "d": {"heartbeat_interval": self.heartbeat_ms}})
            await self._listen(link)
        except Closed as closed:
            self.closes.append((closed.code, str(closed)))
            await socket.close(code=closed.code, message=str(closed).encode())
        finally:
            writing.cancel()
            self.links.remove(link)
            self._lost(link)
        return socket

    async def _listen(self, link: Link) -> None:
        session: Session | None = None
        async for frame in link.socket:
            if link.deaf or await _is_ping(link, session, frame):
                self._notify()
                continue
            session = self._take(link, session, json.loads(frame.data))
            self._notify()

    def _take(self, link: Link, session: Session | None, payload: dict[str, Any]) -> Session | None:
        operation, body = payload.get("op"), payload.get("d")
        match operation:
            case 1:
                self.beats += 1
                link.send({"op": 11, "d": None})
            case 2:
                return self._identify(link, body or {})
            case 6:
                return self._resume(link, body or {})
            case _:
                raise Closed(4001, "Unknown opcode")
        return session

    def _identify(self, link: Link, body: dict[str, Any]) -> Session:
        self.identifies += 1
        if body.get("token") not in self._world.tokens:
            raise Closed(4004, "Authentication failed")
        (number, count), intents = body.get("shard", (0, 1)), body["intents"]
        if intents & PRIVILEGED & ~self.granted:
            raise Closed(4014, "Disallowed intent(s)")
        session = Session(f"session{self.identifies}", (number, count), intents, link)
        self.sessions[session.id] = session
        self._begin(session)
        return session

    def _begin(self, session: Session) -> None:
        guilds = [guild for guild in self._world.guilds.values() if BOT in guild.members and session.holds(guild.id)]
        ready = {"v": 10, "user": user_json(self._world, BOT), "session_id": session.id, "session_type": "normal"}
        ready |= {"resume_gateway_url": f"{self.url}/resume", "shard": list(session.shard)}
        ready |= {"guilds": [{"id": one.id, "unavailable": True} for one in guilds]}
        session.send_event("READY", {**ready, "application": {"id": APP, "flags": self.flags}})
        for guild in guilds if session.intents & GUILDS else ():
            session.send_event("GUILD_CREATE", guild_json(self._world, guild))

    def _resume(self, link: Link, body: dict[str, Any]) -> Session | None:
        self._forget()
        if body.get("token") not in self._world.tokens:
            raise Closed(4004, "Authentication failed")
        session = self.sessions.get(str(body.get("session_id")))
        if session is None:
            link.send({"op": 9, "d": False})
            return None
        self.resumes += 1
        session.link, session.until = link, None
        for event in session.sent[body.get("seq") or 0 :]:
            link.send(event)
        session.send_event("RESUMED", {})
        return session

    def _lost(self, link: Link) -> None:
        """Note that a connection is gone; a client that closed it has ended the session."""
        for session in self.connected:
            if session.link is link:
                session.link, session.until = None, self._clock.now() + limits.RESUME_SECONDS
                if link.socket.close_code in {1000, 1001} and not link.deaf and not link.ended:
                    del self.sessions[session.id]
        self._notify()

    def _forget(self) -> None:
        now = self._clock.now()
        self.sessions = {
            session.id: session for session in self.sessions.values() if session.until is None or now < session.until
        }


async def _is_ping(link: Link, session: Session | None, frame: Any) -> bool:
    if frame.type is WSMsgType.PING:
        await link.socket.pong(frame.data)
    if frame.type is WSMsgType.PONG and session:
        session.read = max(session.read, int(frame.data or 0))
    return frame.type in {WSMsgType.PING, WSMsgType.PONG}
