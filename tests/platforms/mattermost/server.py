"""A strict fake Mattermost on 127.0.0.1, made from its documents and its source: its API v4 and its WebSocket."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.platforms.clock import Clock, FastClock
from tests.platforms.fake_server import FakeServer, Fault, Refused, serving
from tests.platforms.mattermost.api import ROUTES, Call, Handler, Refusal, post_json
from tests.platforms.mattermost.sockets import Sockets
from tests.platforms.mattermost.state import BOT, Channel, Post, State, make_state
from tests.platforms.mattermost.transcript import of_post

_LIMITED = {"X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1", "Retry-After": "1"}


@dataclass(kw_only=True)
class FakeMattermost(FakeServer):
    """The server."""

    state: State
    page: int = 200
    """Posts on a page at most."""
    is_silenced: bool = False
    """Whether the bot may write nowhere."""
    edit_limit: float | None = None
    """For how many seconds a post may be edited."""
    pending_ids: dict[str, str] = field(default_factory=dict)
    """The posts that were made by `pending_post_id`."""
    typed: list[str] = field(default_factory=list)
    post_states: list[tuple[str, str]] = field(default_factory=list)
    """The channel and content of each state of the bot's posts."""
    bot_url: str = ""
    """Where the bot listens, if it is reached over HTTP."""
    whispered: list[tuple[str, str, str]] = field(default_factory=list)
    """User, channel and text that the user alone was shown for a while."""

    triggers: dict[str, str] = field(default_factory=dict)
    """The users who pressed a button, by trigger."""
    dialogs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The dialogs that users have open, as they were requested."""

    def __post_init__(self) -> None:
        self.sockets = Sockets(self.state, self.notify)

    def write(self, user: str, channel: Channel, message: str, *, silent: bool = False, **facts: Any) -> Post:
        """Add a post, and send its event unless `silent`."""
        made = Post(self.state.new_id(), user, channel.id, message, create_at=self.state.now(), **facts)
        self.state.posts[made.id], channel.last_post_at = made, made.create_at
        self._showed(made)
        if not silent:
            self.send_posted_event(made)
        return made

    def send_posted_event(self, post: Post) -> None:
        channel, sender = self.state.channels[post.channel], self.state.users[post.user]
        facts = {"channel_name": channel.name, "channel_type": channel.kind, "team_id": channel.team}
        data = {**facts, "sender_name": f"@{sender.name}", "post": json.dumps(post_json(post)), "set_online": True}
        self.sockets.send_event("posted", data, post.channel, by=post.user)

    def rewrite(self, post: Post, message: str, props: dict[str, Any]) -> None:
        post.edit_at = self.state.now() if message != post.message else post.edit_at
        post.message, post.props = message, props
        self._showed(post)
        self.sockets.send_event("post_edited", {"post": json.dumps(post_json(post))}, post.channel, by=post.user)

    def erase(self, post: Post, *, by: str = "") -> None:
        """Delete a post, and with a root its thread; one event has the post as it was."""
        data = json.dumps(post_json(post))
        for one in self.state.thread(post.id) if not post.root else [post]:
            one.delete_at = self.state.now()
        self.sockets.send_event("post_deleted", {"post": data}, post.channel, by=by)

    def react(self, user: str, post: Post, emoji: str) -> None:
        if (user, emoji) not in post.reactions:
            post.reactions.append((user, emoji))
        data = {"user_id": user, "post_id": post.id, "emoji_name": emoji, "channel_id": post.channel}
        self.sockets.send_event("reaction_added", {"reaction": json.dumps(data)}, post.channel, by=user)

    def whisper(self, user: str, channel: str, text: str) -> None:
        self.whispered.append((user, channel, text))
        self.notify()

    def describe(self) -> str:
        return (
            f"the bot wrote {[post.message for post in self.state.posts.values() if post.user == BOT]}; {self.errors}"
        )

    def _showed(self, post: Post) -> None:
        if post.user == BOT:
            self.post_states.append((post.channel, f"{post.message} {post.props}"))
            self.texts[of_post(post, {user.name: user.id for user in self.state.users.values()})] = None
        self.notify()

    async def answer(self, request: web.Request, kind: str, handler: Handler) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        fault = self.log(kind, body, {"path": request.path.removeprefix("/api/v4")})
        if fault and not fault.done:
            return _fail(request, fault)
        try:
            answered = await handler(Call(self, request, body))
        except Refusal as refusal:
            self.refused.append(Refused(kind, refusal.code, refusal.status))
            self.notify()
            return _refuse(refusal.status, refusal.code)
        except Exception as error:  # noqa: BLE001 - the test reads it
            self.errors.append(error)
            return web.Response(status=500, text="broken")
        self.notify()
        if fault:
            return _fail(request, fault)
        return web.json_response(answered, status=201 if request.method == "POST" else 200)

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/api/v4/websocket", self.sockets.connect)
        for verb, path, kind, handler in ROUTES:

            async def answer(request: web.Request, kind: str = kind, handler: Handler = handler) -> web.StreamResponse:
                return await self.answer(request, kind, handler)

            app.router.add_route(verb, f"/api/v4{path}", answer)
        return app

    async def close(self) -> None:
        await self.sockets.close()


def _refuse(status: int, code: str) -> web.Response:
    return web.json_response({"id": code, "message": code, "request_id": "", "status_code": status}, status=status)


def _fail(request: web.Request, fault: Fault) -> web.StreamResponse:
    if fault.code:
        return _refuse(fault.status or 500, str(fault.code))
    if fault.status == 429:
        return web.Response(status=429, text="limit exceeded", headers=_LIMITED)
    return fault.respond_with_page(request)


@asynccontextmanager
async def serve(*, clock: Clock | None = None, leisure: float = 1) -> AsyncIterator[FakeMattermost]:
    """Serve until the block is left. Mattermost waits for nothing, so that `leisure` has no effect."""
    del leisure
    clock = clock or FastClock()
    async with serving(FakeMattermost(clock=clock, state=make_state(clock))) as server:
        yield server
