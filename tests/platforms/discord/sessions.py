"""A session of the gateway: its intents, its events, and its present connection."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

GUILDS, MEMBERS, PRESENCES = 1 << 0, 1 << 1, 1 << 8
GUILD_MESSAGES = 1 << 9
DIRECT_MESSAGES, MESSAGE_CONTENT = 1 << 12, 1 << 15
PRIVILEGED = MEMBERS | PRESENCES | MESSAGE_CONTENT


class Link:
    """A connection. Its own task sends the payloads in order."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket
        self.deaf = False
        """Whether nothing is sent nor heard any more, as after a fault of the network."""
        self.ended = False
        """Whether it was the server that closed it."""
        self._out: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def send(self, payload: dict[str, Any]) -> None:
        if not self.deaf:
            self._out.put_nowait(payload)

    async def write(self) -> None:
        """Send the payloads, until cancelled or closed."""
        while not self.socket.closed:
            payload = await self._out.get()
            try:
                await self.socket.send_str(json.dumps(payload))
                # An answered ping shows that all before it was read.
                await self.socket.ping(str(payload.get("s") or 0).encode())
            except ConnectionError:
                return


@dataclass
class Session:
    """The events of a client, in order, over one connection after another."""

    id: str
    shard: tuple[int, int]
    intents: int
    link: Link | None = None
    until: float | None = None
    """When it can be resumed no more, once its connection is gone."""
    sent: list[dict[str, Any]] = field(default_factory=list)
    """Every event, in order: the sequence number is its place, from 1."""
    read: int = 0
    """The number of the last one that the client has surely read."""

    def send_event(self, name: str, body: dict[str, Any]) -> None:
        """Send an event, or store it until the session is resumed."""
        self.sent.append({"op": 0, "t": name, "s": len(self.sent) + 1, "d": body})
        if self.link:
            self.link.send(self.sent[-1])

    @property
    def unread(self) -> int:
        """How many events the client may not have read yet, except those of bots."""
        return sum(not (one["d"].get("author") or {}).get("bot") for one in self.sent[self.read :])

    def wants(self, needed: int) -> bool:
        return not needed or bool(self.intents & needed)

    def holds(self, guild: str) -> bool:
        """Return whether a guild, or with an empty one DMs, belongs to its shard."""
        return ((int(guild) >> 22) % self.shard[1] if guild else 0) == self.shard[0]
