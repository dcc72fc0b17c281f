"""Call Mattermost's API v4: at its rate limit, with its errors as the desk's, and no post ever repeated.

Whoever posts looks for the post first where an answer was lost; `pending_post_id` keeps a post that the server is still
saving meanwhile from being saved twice, for half a minute and on one node of a cluster.
"""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import aiohttp

from bot.desk.platform_port import (
    AccessDenied,
    CannotPost,
    ContentRefused,
    PlatformError,
    PlatformUnavailable,
    PostGone,
    RateLimited,
)
from bot.platforms.shared.payload_text import Json
from bot.platforms.shared.rate_limit import (
    LIMITED,
    LOCKED_OUT_SECONDS,
    PATIENCE,
    Busy,
    ObserveCall,
    Rate,
    RateWindow,
    ReplyKind,
    build_retry,
    explain_lost_connection,
    ignore_call,
    retry_call,
    sort_reply,
)


@dataclass(frozen=True, slots=True)
class Route:
    """A call of the API. `repeatable`: it may be made twice."""

    method: str
    path: str
    repeatable: bool = True

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


ME = Route("GET", "/users/me")
MY_TEAMS = Route("GET", "/users/me/teams")
MY_CHANNELS = Route("GET", "/users/me/teams/{team}/channels")
USER = Route("GET", "/users/{user}")
TEAM_MEMBER = Route("GET", "/teams/{team}/members/{user}")
CHANNEL = Route("GET", "/channels/{channel}")
CHANNEL_MEMBER = Route("GET", "/channels/{channel}/members/{user}")
DIRECT = Route("POST", "/channels/direct")  # gives the DM of two people, which it makes once
READ = Route("GET", "/channels/{channel}/posts")
READ_ONE = Route("GET", "/posts/{post}")
THREAD = Route("GET", "/posts/{post}/thread")
POST = Route("POST", "/posts", repeatable=False)
EDIT = Route("PUT", "/posts/{post}/patch")
DELETE = Route("DELETE", "/posts/{post}")
REACT = Route("POST", "/reactions")
UNREACT = Route("DELETE", "/users/me/posts/{post}/reactions/{emoji}")
TYPING = Route("POST", "/users/me/typing")

PAGE = 200  # posts that are asked for at once, the most that there may be


class EditRefused(CannotPost):
    """The post cannot be changed any more. It can be deleted, and said anew."""


class NotAllowed(CannotPost):
    """The bot may not do that there, or it is not told of it."""


class NotFound(CannotPost):
    """There is no such channel, person or membership."""


_GONE = frozenset({"app.post.get.app_error", "api.post.update_post.permissions_details.app_error"})
_UNFIT = ("model.post.is_valid.", "api.post.create_post.attachment", "app.post.save.props")
_TOO_LATE = "api.post.update_post.permissions_time_limit.app_error"
_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "api.context.session_expired.app_error": "The token is not valid: make one on the bot account's page.",
        "api.context.permissions.app_error": "The bot is not in the channel, or may not post there: add it.",
        "api.post.create_post.can_not_post_to_deleted.error": "The channel is archived.",
    }
)
_LOCKED_OUT, _FORBIDDEN, _MISSING = 401, 403, 404
_RETRY_SECONDS = 1.0  # how long to wait where Mattermost does not say


def explain_api_error(
    call: object, status: int, told: Any, headers: Mapping[str, str] = MappingProxyType({})
) -> PlatformError:
    """Return the error that a refusal is. `told` is what the server answered, if that was JSON."""
    found = told.get("id") if isinstance(told, Mapping) else None
    code = found if isinstance(found, str) and re.fullmatch(r"[\w.]{1,120}", found) else ""
    line = f"Mattermost refused {call}: {code or f'status {status}'}."
    if status == LIMITED:
        return RateLimited(f"Mattermost asks to wait before {call}.", seconds=_read_wait(headers))
    if code and status == _LOCKED_OUT:
        return AccessDenied(line, hint=_HINTS.get(code, ""), seconds=LOCKED_OUT_SECONDS)
    if sort_reply(status, own=bool(code), refused=True) is ReplyKind.AGAIN:
        return build_retry(line, status, own=bool(code))
    if code in _GONE:
        return PostGone(line)
    if code.startswith(_UNFIT):
        return ContentRefused(line)
    kind = EditRefused if code == _TOO_LATE else {_FORBIDDEN: NotAllowed, _MISSING: NotFound}.get(status, CannotPost)
    return kind(line, hint=_HINTS.get(code, ""))


def _read_wait(headers: Mapping[str, str]) -> float:
    told = headers.get("Retry-After") or headers.get("X-RateLimit-Reset") or ""
    return float(told) if re.fullmatch(r"\d{1,4}(\.\d{1,6})?", told.strip()) else _RETRY_SECONDS


_BURST = 10  # for so many seconds' calls may be made at once: the server takes a hundred, of ten a second


class MattermostRateLimit:
    """The limit of one account, which counts all calls alike, and who waits for it."""

    def __init__(
        self,
        calls: int = 10,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.now, self.sleep = now, sleep
        self._window, self._turn = RateWindow(Rate(calls * _BURST, _BURST)), asyncio.Lock()

    async def turn(self, *, patience: float) -> None:
        """Wait until a call may be made, which is counted then; who asked first is first. Raises `Busy`."""
        until = self.now() + patience
        async with self._turn:
            while (at := self._window.soonest(now := self.now())) > now:
                if at > until:
                    raise Busy(at - now)
                await self.sleep(at - now)
            self._window = self._window.after(now)

    def spare(self) -> bool:
        """Return whether a call may be made that can be left out: half of what is allowed stays for what cannot."""
        return not self._turn.locked() and self._window.room(self.now()) > self._window.rate.calls // 2

    def hold(self, seconds: float) -> None:
        """Let no call be made for so long, because Mattermost says so."""
        self._window = replace(self._window, closed=max(self._window.closed, self.now() + seconds))


_TIMEOUT = aiohttp.ClientTimeout(total=30.0, sock_connect=10.0)
_GOOD = range(200, 300)


class MattermostApiClient:
    """Calls one server as one bot, at its pace."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        token: str,
        url: str,
        pacing: MattermostRateLimit,
        observe: ObserveCall = ignore_call,
    ) -> None:
        self._session, self._api, self.pacing, self._observe = session, f"{url}/api/v4", pacing, observe
        self._headers = {"Authorization": f"Bearer {token}"}

    async def __call__(
        self,
        route: Route,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
        **ids: str,
    ) -> Any:
        """Make a call, and return what Mattermost answers. Raises `PlatformError`."""

        async def attempt(seconds: float) -> Any:
            await self.pacing.turn(patience=seconds)
            return await self._send(route, ids, body, query)

        return await retry_call(
            attempt, route, self.pacing, patience=patience, repeatable=route.repeatable, observe=self._observe
        )

    async def _send(self, route: Route, ids: Mapping[str, str], body: object, query: Mapping[str, str] | None) -> Any:
        url = self._api + route.path.format_map({name: quote(value, safe="+") for name, value in ids.items()})
        sent = {"headers": self._headers, "params": query, "timeout": _TIMEOUT, "allow_redirects": False}
        with explain_lost_connection("Mattermost", route):
            async with self._session.request(route.method, url, json=body, **sent) as reply:  # type: ignore[arg-type]
                told, status, headers = _parse(await reply.read()), reply.status, reply.headers
        if status in _GOOD:
            if isinstance(told, Mapping | list):
                return told
            raise build_retry(f"It is not Mattermost that answers {route}.", status, own=False)
        error = explain_api_error(route, status, told, headers)
        if status == LIMITED and isinstance(error, PlatformUnavailable):
            self.pacing.hold(error.seconds or _RETRY_SECONDS)
        raise error


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def list_posts(page: Json) -> list[Json]:
    """Return the posts of a list that are no parents beside it and stand there still, newest first; pure."""
    posts = page.get("posts")
    kept = posts if isinstance(posts, Mapping) else {}
    found = [kept[one] for one in page.get("order") or () if isinstance(kept.get(one), Mapping)]
    standing = [one for one in found if not one.get("delete_at") and not one.get("original_id")]
    return sorted(standing, key=lambda one: (one.get("create_at", 0), str(one.get("id"))), reverse=True)
