"""Call Discord's REST API: its routes as data, at its rate limits, with its errors as the desk's, nothing done twice.

Paths hold names, never values: they may be logged. What answers say of each limit is kept by bucket, beside the limit
over all calls. discord.py's own HTTP client is for its gateway alone: it repeats a call up to five times and waits
within, so that nobody hears whether one of them was done before the last was refused; it logs addresses, in which the
tokens of interactions stand; and a call of it that is broken off while all routes are closed leaves them closed.
"""

import asyncio
import json
import math
import string
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
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
from bot.platforms.shared.rate_limit import (
    LIMITED,
    LOCKED_OUT_SECONDS,
    PATIENCE,
    RETRY_SECONDS,
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

_MAJOR = ("guild", "channel", "application", "token")  # of calls that differ in these, limits are counted apart


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path."""

    method: str
    path: str
    repeatable: bool = True

    @property
    def interaction(self) -> bool:
        """Whether an interaction's token opens it: the bot's is not sent, and its limit over all calls not touched."""
        return "{token}" in self.path

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for _, name, _, _ in string.Formatter().parse(self.path) if name)

    def key(self, ids: dict[str, str]) -> tuple[str, str]:
        """Return what its limit is counted by: the route, and what stands for the values that matter."""
        return f"{self.method} {self.path}", "/".join(ids[name] for name in self.names if name in _MAJOR)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


ME = Route("GET", "/users/@me")
MY_GUILDS = Route("GET", "/users/@me/guilds")
OPEN_DM = Route("POST", "/users/@me/channels")
POST = Route("POST", "/channels/{channel}/messages")  # with a nonce
READ = Route("GET", "/channels/{channel}/messages")
READ_ONE = Route("GET", "/channels/{channel}/messages/{message}")
EDIT = Route("PATCH", "/channels/{channel}/messages/{message}")
DELETE = Route("DELETE", "/channels/{channel}/messages/{message}")
TYPING = Route("POST", "/channels/{channel}/typing")
OPEN_THREAD = Route("POST", "/channels/{channel}/messages/{message}/threads")  # a message has one thread at most
CHANGE_CHANNEL = Route("PATCH", "/channels/{channel}")
REPLY = Route("GET", "/webhooks/{application}/{token}/messages/@original")
EDIT_REPLY = Route("PATCH", "/webhooks/{application}/{token}/messages/{message}")
DELETE_REPLY = Route("DELETE", "/webhooks/{application}/{token}/messages/{message}")
FOLLOW_UP = Route("POST", "/webhooks/{application}/{token}", repeatable=False)  # there is no nonce for it
CALLBACK = Route("POST", "/interactions/{interaction}/{token}/callback")
"""Discord takes the first answer to an interaction, and says of further ones that there was one."""
CHANNEL = Route("GET", "/channels/{channel}")
MEMBER = Route("GET", "/guilds/{guild}/members/{user}")
GUILD = Route("GET", "/guilds/{guild}")
CHANNELS = Route("GET", "/guilds/{guild}/channels")
ROLES = Route("GET", "/guilds/{guild}/roles")
ACTIVE_THREADS = Route("GET", "/guilds/{guild}/threads/active")
APPLICATION = Route("GET", "/applications/@me")
COMMANDS = Route("GET", "/applications/{application}/commands")
SET_COMMANDS = Route("PUT", "/applications/{application}/commands")

_BAD_REQUEST, _LOCKED_OUT = 400, 401
DENIED_STATUSES = frozenset({_LOCKED_OUT, 403, LIMITED})
"""Of these Discord takes only so many before it bans an address."""
_SECONDS, _LONGEST = 5.0, 3_600.0  # how long to wait where Discord does not say, and at most
_BANNED_SECONDS = 60.0
_GONE = frozenset({10008})
_NO_CHANNEL = frozenset({10003})
_ARCHIVED = frozenset({50083})
_EXPIRED = frozenset({10015, 10062, 50027})
_UNFIT = frozenset({20009, 40005, 50006, 50035, 50109, 200_000, 240_000})
"""What Discord says of a message that it will not have as it is."""
_PASSING = frozenset({20016, 20028, 20029, 40004, 40006, 40062, 40333, 130_000})
"""What Discord refuses for now alone: what is switched off for a while, or overloaded."""
_HINTS: Mapping[int, str] = MappingProxyType(
    {
        0: "The bot token is not valid: copy it anew from the application's page.",
        10003: "The channel is gone.",
        10004: "The bot is not in the server: invite it.",
        50001: "The bot cannot see the channel: give it the right to.",
        50007: "This person takes no messages from the bot.",
        50013: "The bot lacks a right there: see the rights that docs/discord.md names.",
        50083: "The thread is archived and locked.",
        160005: "The thread is locked.",
        160006: "There are too many open threads.",
    }
)


class RequestRefused(CannotPost):
    """Discord refuses for good. `code` is Discord's own; 0 where it gave none."""

    def __init__(self, message: str, *, hint: str = "", code: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.code = code


class MessageRefused(ContentRefused, RequestRefused):
    """Discord will not have a message as it is."""


class ChannelUnavailable(RequestRefused):
    """There is no such channel, or thread."""


class ThreadArchived(RequestRefused):
    """The thread is archived: nothing in it can be changed until it is opened again."""


class InteractionExpired(RequestRefused):
    """The token of an interaction has expired."""


_KINDS: Mapping[int, type[RequestRefused]] = MappingProxyType(
    {
        **dict.fromkeys(_NO_CHANNEL, ChannelUnavailable),
        **dict.fromkeys(_ARCHIVED, ThreadArchived),
        **dict.fromkeys(_EXPIRED, InteractionExpired),
        **dict.fromkeys(_UNFIT, MessageRefused),
    }
)


def explain_api_error(call: str, status: int, body: Any, retry_after: str = "") -> PlatformError:
    """Return the error that a refusal is."""
    facts = body if isinstance(body, Mapping) else {}
    found = facts.get("code")
    code = found if isinstance(found, int) and not isinstance(found, bool) else None
    # The code 0 says no more than the status; with it Discord refuses a token, and what it cannot read at all.
    own = bool(code) or (code == 0 and status in {_BAD_REQUEST, _LOCKED_OUT})
    line = f"Discord refused {call}: {f'code {code}' if code else f'status {status}'}."
    if status == LIMITED:
        told = facts.get("retry_after", retry_after)
        seconds = parse_retry_after(told, _SECONDS if facts else _BANNED_SECONDS)
        return RateLimited(f"Discord asks to wait before {call}.", seconds=seconds)
    if code == 0 and status == _LOCKED_OUT:
        return AccessDenied(line, hint=_HINTS[0], seconds=LOCKED_OUT_SECONDS)
    passing = code in _PASSING
    if sort_reply(status, own=own, refused=True, passing=passing) is ReplyKind.AGAIN:
        return build_retry(line, status, own=own, seconds=_SECONDS if passing else None)
    if code in _GONE:
        return PostGone(line)
    return _KINDS.get(code or 0, RequestRefused)(line, hint=_HINTS.get(code, "") if code else "", code=code or 0)


def parse_retry_after(told: Any, otherwise: float) -> float:
    try:
        seconds = float(told)
    except (TypeError, ValueError):
        return otherwise
    return min(max(seconds, 0.0), _LONGEST) if math.isfinite(seconds) else otherwise


GLOBAL_RATE = Rate(45, 1.0)  # Discord takes 50: the rest is for discord.py, whose calls are not counted here
INVALID_RATE = Rate(5_000, 600.0)
_MARGIN = 0.05  # seconds by which Discord's count may lag behind what it tells
_MAX_BUCKETS = 10_000  # how many limits are remembered


@dataclass(slots=True)
class RateBucket:
    """A limit as Discord last told it. Times are a clock's seconds."""

    limit: int = 1
    left: int = 1
    full: float = 0.0  # when all of it is there again
    closed: float = 0.0  # until when Discord wants none
    under_way: int = 0
    told: bool = False  # whether Discord has told it
    known: bool = False  # whether there was any answer: some routes have no limit that it tells of
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    def awaits(self, now: float) -> bool:
        """Return whether nobody knows what is left before one of those under way is answered.

        So it is for the very first calls, of which one alone is made, and in a new window of which all is used.
        """
        if not self.known:
            return self.under_way > 0
        return self.told and now >= self.full and self.under_way >= self.limit

    def soonest(self, now: float) -> float:
        if self.told and now >= self.full:
            self.left = max(self.limit - self.under_way, 0)
        free = self.full if self.told and self.left <= 0 and now < self.full else now
        return max(now, free, self.closed)


class DiscordRateLimit:
    """The limits of one bot, and who waits for them."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self.now, self.sleep = now, sleep
        self._names: dict[str, str] = {}
        self._buckets: dict[tuple[str, str], RateBucket] = {}
        self._everywhere, self._denied = RateWindow(GLOBAL_RATE), RateWindow(INVALID_RATE)

    async def turn(self, route: Route, ids: Mapping[str, str], *, patience: float) -> RateBucket:
        """Wait until a call may be made, which is counted; `done` wants what this returns. Raises `Busy`."""
        until = self.now() + patience
        while True:
            bucket = await self._wait_for_bucket(route, ids, patience)
            now = self.now()
            at = max(bucket.soonest(now), now if route.interaction else self._everywhere.soonest(now))
            at = max(at, self._denied.soonest(now))
            if at <= now:
                break
            if at > until:
                raise Busy(at - now)
            await self.sleep(at - now)
        bucket.left, bucket.under_way = bucket.left - 1, bucket.under_way + 1
        if not route.interaction:
            self._everywhere = self._everywhere.after(now)
        return bucket

    def done(self, bucket: RateBucket, route: Route, ids: Mapping[str, str], headers: Mapping[str, str]) -> None:
        """Note what an answer says of a call's limit; nothing where there was no answer."""
        bucket.under_way, bucket.known = max(bucket.under_way - 1, 0), bucket.known or bool(headers)
        bucket.answered.set()
        if "X-RateLimit-Remaining" not in headers:
            return
        key, major = route.key(dict(ids))
        self._names[key] = headers.get("X-RateLimit-Bucket", key)
        bucket = self._buckets.setdefault((self._names[key], major), bucket)
        left = max(int(parse_retry_after(headers["X-RateLimit-Remaining"], 0.0)) - bucket.under_way, 0)
        full = self.now() + parse_retry_after(headers.get("X-RateLimit-Reset-After"), 1.0) + _MARGIN
        if bucket.told and self.now() < bucket.full:  # answers may come in another order than they were given
            left, full = min(left, bucket.left), max(full, bucket.full)
        bucket.limit = int(parse_retry_after(headers.get("X-RateLimit-Limit"), 1.0))
        bucket.left, bucket.full = left, full
        bucket.told = bucket.known = True

    def denied(self) -> None:
        """Count a call that Discord refused as one that should not have been made."""
        self._denied = self._denied.after(self.now())

    def hold(self, route: Route, ids: Mapping[str, str], seconds: float, *, everywhere: bool) -> None:
        """Let no call be made for so long, because Discord says so."""
        until = self.now() + seconds
        if everywhere:
            self._everywhere = RateWindow(GLOBAL_RATE, self._everywhere.taken, max(self._everywhere.closed, until))
        else:
            bucket = self._bucket(route, ids)
            bucket.closed = max(bucket.closed, until)

    def spare(self, route: Route, ids: Mapping[str, str]) -> bool:
        """Return whether a call may be made that can be left out: half of what is allowed stays for what cannot."""
        now, bucket = self.now(), self._bucket(route, ids)
        if bucket.soonest(now) > now or self._denied.soonest(now) > now:
            return False
        room = route.interaction or self._everywhere.room(now) > GLOBAL_RATE.calls // 2
        return room and (not bucket.told or bucket.left > bucket.limit // 2)

    async def _wait_for_bucket(self, route: Route, ids: Mapping[str, str], patience: float) -> RateBucket:
        """Return the bucket of a call, once it is known what is left in it."""
        while True:
            bucket = self._bucket(route, ids)
            if not bucket.awaits(self.now()):
                return bucket
            if patience <= 0:
                raise Busy(1.0)
            bucket.answered.clear()
            await bucket.answered.wait()

    def _bucket(self, route: Route, ids: Mapping[str, str]) -> RateBucket:
        key, major = route.key(dict(ids))
        if len(self._buckets) >= _MAX_BUCKETS:
            now = self.now()
            kept = {name: one for name, one in self._buckets.items() if one.under_way or one.soonest(now) > now}
            self._buckets = kept
        return self._buckets.setdefault((self._names.get(key, key), major), RateBucket())


API = "https://discord.com/api/v10"
_AGENT = "DiscordBot (https://github.com/footnote, 0.1)"
_TIMEOUT = aiohttp.ClientTimeout(total=30.0, sock_connect=10.0)
_GOOD = range(200, 300)
_EMPTY = 204


class DiscordApiClient:
    """Calls Discord as one bot, at its pace; at its usual address where none is given."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        token: str,
        api_url: str,
        pacing: DiscordRateLimit,
        observe: ObserveCall = ignore_call,
    ) -> None:
        self._session, self._api, self.pacing, self._observe = session, (api_url or API).rstrip("/"), pacing, observe
        self._headers = {"User-Agent": _AGENT}
        self._secret = {"Authorization": f"Bot {token}"}

    async def __call__(
        self,
        route: Route,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
        **ids: str,
    ) -> Any:
        """Make a call, and return what Discord answers; None where it answers nothing. Raises `PlatformError`."""

        async def attempt(seconds: float) -> Any:
            bucket = await self.pacing.turn(route, ids, patience=seconds)
            return await self._send(route, ids, body, query, bucket)

        return await retry_call(
            attempt, route, self.pacing, patience=patience, repeatable=route.repeatable, observe=self._observe
        )

    async def _send(
        self, route: Route, ids: Mapping[str, str], body: Any, query: Mapping[str, str] | None, bucket: RateBucket
    ) -> Any:
        headers: Mapping[str, str] = {}
        url = self._api + route.path.format_map({name: quote(value, safe="@") for name, value in ids.items()})
        try:
            with explain_lost_connection("Discord", route):
                async with self._session.request(
                    route.method, url, **self._build_request(route, body, query)
                ) as response:
                    headers = response.headers
                    told = _parse_body(await response.read(), response.content_type)
        finally:
            self.pacing.done(bucket, route, ids, headers)
        if response.status in _GOOD:
            own = told is not None or response.status == _EMPTY
            if sort_reply(response.status, own=own) is ReplyKind.DONE:
                return told
            raise build_retry(f"It is not Discord that answers {route}.", response.status, own=own)
        raise self._explain(route, ids, response.status, told, headers)

    def _build_request(self, route: Route, body: Any, query: Mapping[str, str] | None) -> dict[str, Any]:
        headers = self._headers if route.interaction else {**self._headers, **self._secret}
        sent: dict[str, Any] = {"headers": headers, "params": query, "timeout": _TIMEOUT, "allow_redirects": False}
        if body is not None:
            # Not aiohttp's own: Discord takes no charset beside the type.
            sent |= {"data": json.dumps(body).encode(), "headers": {**headers, "Content-Type": "application/json"}}
        return sent

    def _explain(
        self, route: Route, ids: Mapping[str, str], status: int, told: Any, headers: Mapping[str, str]
    ) -> Exception:
        error = explain_api_error(str(route), status, told, headers.get("Retry-After", ""))
        if status in DENIED_STATUSES and headers.get("X-RateLimit-Scope") != "shared":
            self.pacing.denied()
        if isinstance(error, AccessDenied) and route.interaction:
            return PlatformUnavailable(str(error), seconds=RETRY_SECONDS)  # it was called without our token
        if status == LIMITED and isinstance(error, PlatformUnavailable):
            # Without a body it is not Discord that refuses but what stands before it, and all calls alike.
            everywhere = not isinstance(told, Mapping) or told.get("global") is True
            self.pacing.hold(route, ids, error.seconds or _SECONDS, everywhere=everywhere)
        return error


def _parse_body(data: bytes, content_type: str) -> Any:
    try:
        return json.loads(data) if content_type == "application/json" else None
    except ValueError:
        return None
