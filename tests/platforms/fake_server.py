"""The durable half of the fake platform: a strict chat server on 127.0.0.1, which outlives the bot that is tested.

It holds channels, messages and what clients make of them, refuses what real platforms refuse, fails as told, and hands
out events until they are acknowledged. `fake_platform` is the other half, in the process under test.

    async with serve(SLACK) as server:
        message = await server.say("When does the quay open?")
        await server.until(lambda it: it.answers(message))
"""

import asyncio
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import WSMsgType, web

from tests.platforms.dialects import Dialect
from tests.platforms.reading import Reading

BOT = "B0"
WORKSPACE = "T1"
_BEGAN = 1_700_000_000


@dataclass(frozen=True)
class Stumble:
    """How the server fails a call. The status 0 resets the connection."""

    status: int = 0
    seconds: float = 0.0
    """What a 429 asks to wait."""
    done: bool = False
    """Whether the call has its effect all the same, and only its answer fails."""
    until: asyncio.Event | None = None
    """What the answer waits for before anything happens."""


LIMITED = Stumble(429, 0.01)
BROKEN = Stumble(503)
RESET = Stumble(0)
LOST = Stumble(0, done=True)
"""The call has its effect, but nobody hears so."""


@dataclass(frozen=True)
class Message:
    """A message of a channel, as it stands."""

    id: str
    channel: str
    thread: str
    user: str
    """`BOT` for the bot's."""
    parts: tuple[str, ...]
    read: tuple[Reading, ...] = ()
    key: str = ""
    """The question that it answers, as it was marked."""
    buttons: tuple[tuple[str, int], ...] = ()
    """Action and ticket of each."""
    only: str = ""
    """Who alone sees it; empty for all."""
    edits: int = 0

    @property
    def plain(self) -> str:
        """What a person reads."""
        return "\n".join(one.plain for one in self.read) if self.read else "\n".join(self.parts)


class Refused(Exception):
    """A call that the platform refuses for good, by its code."""


@dataclass
class FakeServer:
    """The server's state, and what people and tests do to it."""

    dialect: Dialect
    url: str = ""
    messages: dict[str, Message] = field(default_factory=dict)
    gone: dict[str, Message] = field(default_factory=dict)
    """What was deleted, by whomever."""
    archived: set[str] = field(default_factory=set)
    received: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Every call that reached us, with its arguments, in order."""
    refused: list[str] = field(default_factory=list)
    """The codes of refused calls."""
    posts: Counter[str] = field(default_factory=Counter)
    """How many messages were posted in answer to each question's key."""
    read: list[Reading] = field(default_factory=list)
    """What clients made of everything that was ever posted or edited."""
    stumbles: dict[str, list[Stumble]] = field(default_factory=lambda: defaultdict(list))
    """By call how the next ones fail."""
    unacked: dict[int, dict[str, Any]] = field(default_factory=dict)
    connected: list[web.WebSocketResponse] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ids = itertools.count(1)
        self._events = itertools.count(1)
        self._changed = asyncio.Event()
        self._sent: dict[str, dict[str, Any]] = {}

    # What people do.

    async def say(
        self, text: str, *, user: str = "U1", channel: str = "C1", thread: str = "", dm: bool = False, **more: Any
    ) -> str:
        """Write a message, and hand the event out. `more`: `only_asker`, `unasked`, `task`; `silent` hands out none."""
        message = self._new(channel, thread, user, (text,))
        if more.pop("silent", False):
            return message.id
        event = {"type": "asked", "message": message.id, "text": text, "user": user, "channel": channel}
        self._sent[message.id] = event | {"thread": thread, "dm": dm, **more}
        await self._hand_out(self._sent[message.id])
        return message.id

    async def again(self, message: str) -> None:
        """Hand out once more, as a new event, that a message was written."""
        await self._hand_out(self._sent[message])

    async def rewrite(self, message: str, text: str) -> None:
        """A person edits a message."""
        self.messages[message] = replace(self.messages[message], parts=(text,))
        self._sent[message] = self._sent[message] | {"text": text}
        await self._hand_out(self._sent[message] | {"type": "edited"})

    async def erase(self, message: str) -> None:
        """A person deletes a message, their own or the bot's."""
        self.gone[message] = self.messages.pop(message)
        self.notify()
        if message in self._sent:
            await self._hand_out(self._sent[message] | {"type": "deleted"})

    async def press(self, action: str, message: str, *, user: str = "U1") -> None:
        """Somebody presses a button of a message that they see."""
        shown = self.messages[message]
        (ticket,) = {ticket for name, ticket in shown.buttons if name == action}
        pressed = {"type": "pressed", "action": action, "ticket": ticket, "user": user, "message": message}
        await self._hand_out(pressed | {"channel": shown.channel, "thread": shown.thread})

    # What tests look at.

    def answers(self, message: str) -> list[Message]:
        """Return what stands now in answer to a message, in order."""
        marked = [one for one in self.messages.values() if one.user == BOT and one.key.endswith(f"/{message}")]
        return sorted(marked, key=lambda one: one.id)

    def shown(self, message: str) -> str:
        """Return the whole answer to a message as people read it; empty while there is none."""
        return "\n".join(one.plain for one in self.answers(message))

    def ours(self, channel: str = "C1", *, by: str = "") -> list[Message]:
        """Return all that the bot wrote in a channel and that somebody sees."""
        mine = [one for one in self.messages.values() if one.user == BOT and one.channel == channel]
        return sorted((one for one in mine if one.only in {"", by}), key=lambda one: one.id)

    def calls(self, name: str) -> list[dict[str, Any]]:
        """Return the arguments of every call of a name."""
        return [facts for called, facts in self.received if called == name]

    async def until(self, holds: Callable[["FakeServer"], object], seconds: float = 20) -> None:
        """Wait until something holds of the server."""
        try:
            async with asyncio.timeout(seconds):
                while not holds(self):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            shown = [(one.key, one.only, one.plain) for one in self.messages.values() if one.user == BOT]
            raise AssertionError(f"it did not come to that; we posted {shown}; calls {self.received[-20:]}") from None

    async def redeliver(self) -> None:
        """Hand out again what was not acknowledged, as platforms do after a while."""
        for number, event in list(self.unacked.items()):
            await self._send(number, event)

    def notify(self) -> None:
        """Wake whoever waits for a change."""
        self._changed.set()

    # What the bot calls.

    def do(self, name: str, facts: dict[str, Any]) -> Any:
        """Do what a call asks for. Raises `Refused`."""
        return getattr(self, f"_do_{name}")(**facts)

    def _do_post(
        self, channel: str, thread: str, key: str, parts: list[str], buttons: list[list[Any]], only: str = ""
    ) -> str:
        read = self._accepted(channel, parts)
        posted = self._new(channel, thread, BOT, tuple(parts))
        pressed = tuple((action, ticket) for action, ticket in buttons)
        self.messages[posted.id] = replace(posted, read=read, key=key, buttons=pressed, only=only)
        self.posts[key] += 1
        return posted.id

    def _do_edit(self, message: str, parts: list[str], buttons: list[list[Any]]) -> None:
        old = self._mine(message)
        read = self._accepted(old.channel, parts)
        pressed = tuple((action, ticket) for action, ticket in buttons)
        self.messages[message] = replace(old, parts=tuple(parts), read=read, buttons=pressed, edits=old.edits + 1)

    def _do_delete(self, message: str) -> None:
        self.gone[message] = self._mine(message)
        del self.messages[message]

    def _do_find(self, key: str) -> list[str]:
        return [
            one.id for one in sorted(self.messages.values(), key=lambda one: one.id) if one.key == key and not one.only
        ]

    def _do_history(self, channel: str, thread: str, cursor: str) -> dict[str, Any]:
        """Return a page of three messages, the newest first, and where the next page begins."""
        here = [one for one in self.messages.values() if one.channel == channel and not one.only]
        here = [one for one in here if not thread or thread in {one.thread, one.id}]
        here = sorted((one for one in here if not cursor or one.id < cursor), key=lambda one: one.id, reverse=True)
        page = [{"id": one.id, "user": one.user, "text": one.plain} for one in here[:3]]
        return {"messages": page, "cursor": here[2].id if len(here) > 3 else ""}

    def _mine(self, message: str) -> Message:
        found = self.messages.get(message)
        if found is None:
            raise Refused("message_not_found")
        if found.user != BOT or found.only:
            raise Refused("cant_update_message")
        return found

    def _accepted(self, channel: str, parts: list[str]) -> tuple[Reading, ...]:
        """Return how clients read it. Raises `Refused` for what no platform takes."""
        if channel in self.archived:
            raise Refused("is_archived")
        if not any(part.strip() for part in parts):
            raise Refused("no_text")
        dialect = self.dialect
        too_long = max(map(len, parts)) > dialect.part or sum(map(len, parts)) > dialect.message
        if too_long or len(parts) > dialect.parts:
            raise Refused("msg_too_long")
        read = tuple(map(dialect.read, parts))
        self.read += read
        return read

    def _new(self, channel: str, thread: str, user: str, parts: tuple[str, ...]) -> Message:
        number = next(self._ids)
        message = Message(f"{_BEGAN + number}.{number:06}", channel, thread, user, parts)
        self.messages[message.id] = message
        return message

    # Events.

    async def _hand_out(self, event: dict[str, Any]) -> None:
        number = next(self._events)
        self.unacked[number] = event | {"workspace": WORKSPACE}
        await self._send(number, self.unacked[number])
        self.notify()

    async def _send(self, number: int, event: dict[str, Any]) -> None:
        for socket in self.connected[:1]:
            with suppress(ConnectionError):
                await socket.send_json(event | {"event": number})

    async def connect(self, request: web.Request) -> web.WebSocketResponse:
        """Hand out events to a bot until it leaves; what is not acknowledged by then, the next one gets."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.connected.insert(0, socket)
        self.notify()
        try:
            await self.redeliver()
            async for frame in socket:
                if frame.type is WSMsgType.TEXT:
                    self.unacked.pop(json.loads(frame.data)["ack"], None)
                    self.notify()
        finally:
            self.connected.remove(socket)
            self.notify()
        return socket

    async def call(self, request: web.Request) -> web.Response:
        """Answer a call, or fail it as told."""
        name, facts = request.match_info["name"], await request.json()
        waiting = self.stumbles[name]
        stumble = waiting.pop(0) if waiting else None
        if stumble and stumble.until:
            await stumble.until.wait()
        if stumble and not stumble.done and not stumble.until:
            return _fail(request, stumble)
        self.received.append((name, facts))
        try:
            result = self.do(name, facts)
        except Refused as refusal:
            self.refused.append(str(refusal))
            return web.json_response({"error": str(refusal)}, status=400)
        finally:
            self.notify()
        return _fail(request, stumble) if stumble and stumble.done else web.json_response({"result": result})


def _fail(request: web.Request, stumble: Stumble) -> web.Response:
    if stumble.status:
        return web.Response(status=stumble.status, headers={"Retry-After": str(stumble.seconds)})
    if request.transport:
        request.transport.abort()
    return web.Response(status=500)


@asynccontextmanager
async def serve(dialect: Dialect) -> AsyncIterator[FakeServer]:
    """Serve on a free port until the block is left."""
    fake = FakeServer(dialect)
    app = web.Application(client_max_size=10**8)
    app.add_routes([web.post("/call/{name}", fake.call), web.get("/events", fake.connect)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield fake
    finally:
        for socket in list(fake.connected):
            await socket.close()
        await runner.cleanup()
