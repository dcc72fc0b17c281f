"""A strict fake Mattermost on 127.0.0.1: its API v4 and its WebSocket, over real HTTP.

Made from its documents and its source. A message is one post, whatever is edited; each state of it is read.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.platforms.mattermost import seeing
from tests.platforms.mattermost.api import ROUTES, Call, Handler, Refused, post_json
from tests.platforms.mattermost.sockets import Sockets
from tests.platforms.mattermost.world import BOT, Channel, Post, World, town
from tests.platforms.slack.clock import Clock, FastClock
from tests.platforms.waiting import until


@dataclass(frozen=True)
class Fault:
    """How one call fails."""

    status: int = 0
    """0 cuts the connection."""
    code: str = ""
    """The server's own word for it; without one it is a page, as of a proxy before it."""
    done: bool = False
    """Whether it has its effect all the same."""


LIMITED, BROKEN, LOST = Fault(429), Fault(503), Fault(done=True)


@dataclass
class FakeMattermost:
    """The server, as tests see it."""

    clock: Clock
    world: World
    url: str = ""
    page: int = 200
    """How many posts a page has at most."""
    silenced: bool = False
    """Whether the bot may write nowhere."""
    edit_limit: float | None = None
    """For how many seconds a post may be edited."""
    posted: int = 0
    seen: dict[str, str] = field(default_factory=dict)
    """The posts that were made by `pending_post_id`."""
    typed: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    states: list[tuple[str, str]] = field(default_factory=list)
    """All that a post of the bot's ever said, and in which channel."""
    pings: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    faults: defaultdict[str, list[Fault]] = field(default_factory=lambda: defaultdict(list))
    reached: str = ""
    """Where the bot listens, if it is reached over HTTP: another address after each start of a test's."""
    whispered: list[tuple[str, str, str]] = field(default_factory=list)
    """What somebody alone was shown in a channel for a while."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.sockets = Sockets(self.world, self._changed.set)

    def write(self, user: str, channel: Channel, message: str, *, silent: bool = False, **facts: Any) -> Post:
        """Post, and tell of it."""
        made = Post(self.world.new_id(), user, channel.id, message, create_at=self.world.now(), **facts)
        self.world.posts[made.id], channel.last_post_at = made, made.create_at
        self._read(made)
        if not silent:
            self.tell_posted(made)
        return made

    def tell_posted(self, post: Post) -> None:
        channel, sender = self.world.channels[post.channel], self.world.users[post.user]
        facts = {"channel_name": channel.name, "channel_type": channel.kind, "team_id": channel.team}
        told = {**facts, "sender_name": f"@{sender.name}", "post": json.dumps(post_json(post)), "set_online": True}
        self.sockets.tell("posted", told, post.channel, by=post.user)

    def rewrite(self, post: Post, message: str, props: dict[str, Any]) -> None:
        post.edit_at = self.world.now() if message != post.message else post.edit_at
        post.message, post.props = message, props
        self._read(post)
        self.sockets.tell("post_edited", {"post": json.dumps(post_json(post))}, post.channel, by=post.user)

    def erase(self, post: Post, *, by: str = "") -> None:
        """Delete a post, and with one that begins a thread all of that; one event tells of it, as the post was."""
        told = json.dumps(post_json(post))
        for one in self.world.thread(post.id) if not post.root else [post]:
            one.delete_at = self.world.now()
        self.sockets.tell("post_deleted", {"post": told}, post.channel, by=by)

    def react(self, user: str, post: Post, emoji: str) -> None:
        if (user, emoji) not in post.reactions:
            post.reactions.append((user, emoji))
        told = {"user_id": user, "post_id": post.id, "emoji_name": emoji, "channel_id": post.channel}
        self.sockets.tell("reaction_added", {"reaction": json.dumps(told)}, post.channel, by=user)

    def whisper(self, user: str, channel: str, text: str) -> None:
        self.whispered.append((user, channel, text))
        self._changed.set()

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds, looked at again after everything that happens there."""
        await until(holds, self._changed, 20, lambda: f"{self.calls[-12:]} {self.refused} {self.errors}")

    def _read(self, post: Post) -> None:
        """Read a state of a post of the bot's at its worst."""
        if post.user == BOT:
            self.states.append((post.channel, f"{post.message} {post.props}"))
            people = {one.name: one.id for one in self.world.users.values()}
            self.pings += seeing.pings(post, people)
            self.links += seeing.links(post)
        self._changed.set()

    async def answer(self, request: web.Request, kind: str, handler: Handler) -> web.StreamResponse:
        """Answer one call."""
        self.calls.append(f"{request.method} {request.path.removeprefix('/api/v4')}")
        fault = self.faults[kind].pop(0) if self.faults[kind] else None
        if fault and not fault.done:
            return _failed(request, fault)
        try:
            body = await request.json() if request.can_read_body else None
            answered = await handler(Call(self, request, body))
        except Refused as refused:
            self.refused.append(refused.code)
            self._changed.set()
            return _refused(refused.status, refused.code)
        except Exception as error:  # noqa: BLE001 - the test is told
            self.errors.append(repr(error))
            return web.Response(status=500, text="broken")
        self._changed.set()
        if fault:
            return _failed(request, fault)
        return web.json_response(answered, status=201 if request.method == "POST" else 200)


def _refused(status: int, code: str) -> web.Response:
    return web.json_response({"id": code, "message": code, "request_id": "", "status_code": status}, status=status)


def _failed(request: web.Request, fault: Fault) -> web.StreamResponse:
    if not fault.status:
        if request.transport:
            request.transport.abort()
        return web.Response()
    if fault.code:
        return _refused(fault.status, fault.code)
    limits = {"X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1", "Retry-After": "1"}
    return web.Response(status=fault.status, text="limit exceeded", headers=limits if fault.status == 429 else {})


@asynccontextmanager
async def serve(*, clock: Clock | None = None) -> AsyncIterator[FakeMattermost]:
    """Serve on a free port until the block is left."""
    clock = clock or FastClock()
    server = FakeMattermost(clock, town(clock))
    app = web.Application()
    app.router.add_get("/api/v4/websocket", server.sockets.connect)
    for verb, path, kind, handler in ROUTES:

        async def answer(request: web.Request, kind: str = kind, handler: Handler = handler) -> web.StreamResponse:
            return await server.answer(request, kind, handler)

        app.router.add_route(verb, f"/api/v4{path}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await server.sockets.close()
        await runner.cleanup()
