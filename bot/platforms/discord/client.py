"""Discord's REST API: its routes, its error codes, and its rate limits: one per bucket, and one for all calls.

discord.py's own HTTP client is used for its gateway only. It repeats a failed call up to five times, so that a caller
cannot know whether an earlier try succeeded. It logs addresses, which contain interaction tokens. A call that is
cancelled during a global rate limit blocks all later calls.
"""

import asyncio
import string
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from bot.desk.platform_port import ContentRefused, PlatformError, PlatformUnavailable, PostGone
from bot.platforms.shared.api_client import (
    LIMITED,
    Api,
    ApiClient,
    EditRefused,
    ObserveCall,
    RequestRefused,
    ignore_call,
    open_session,
    parse_seconds,
)
from bot.platforms.shared.rate_limit import NO_IDS, Busy, Ids, Rate, RateWindow, Reply, Route

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
REPLY = Route("GET", "/webhooks/{application}/{token}/messages/@original", authorized=False)
EDIT_REPLY = Route("PATCH", "/webhooks/{application}/{token}/messages/{message}", authorized=False)
DELETE_REPLY = Route("DELETE", "/webhooks/{application}/{token}/messages/{message}", authorized=False)
FOLLOW_UP = Route("POST", "/webhooks/{application}/{token}", repeatable=False, authorized=False)  # without a nonce
CALLBACK = Route("POST", "/interactions/{interaction}/{token}/callback", authorized=False)
"""Discord accepts the first reply to an interaction, and refuses further ones with a code of their own."""
CHANNEL = Route("GET", "/channels/{channel}")
MEMBER = Route("GET", "/guilds/{guild}/members/{user}")
GUILD = Route("GET", "/guilds/{guild}")
CHANNELS = Route("GET", "/guilds/{guild}/channels")
ROLES = Route("GET", "/guilds/{guild}/roles")
ACTIVE_THREADS = Route("GET", "/guilds/{guild}/threads/active")
APPLICATION = Route("GET", "/applications/@me")
COMMANDS = Route("GET", "/applications/{application}/commands")
SET_COMMANDS = Route("PUT", "/applications/{application}/commands")

DENIED_STATUSES = frozenset({401, 403, LIMITED})
"""Discord bans an address after too many of these."""


class MessageRefused(ContentRefused, RequestRefused):
    """Discord refuses a message's content."""


class ChannelUnavailable(RequestRefused):
    """The channel or thread does not exist."""


class ThreadArchived(EditRefused):
    """The thread is archived: nothing in it can be changed until it is reopened."""


class InteractionExpired(RequestRefused):
    """The token of an interaction has expired."""


KINDS: Mapping[str | int, type[PlatformError]] = MappingProxyType(
    {
        10003: ChannelUnavailable,
        10008: PostGone,
        50083: ThreadArchived,
        **dict.fromkeys((10015, 10062, 50027), InteractionExpired),
        **dict.fromkeys((20009, 40005, 50006, 50035, 50109, 200_000, 240_000), MessageRefused),
        # Temporarily disabled, or overloaded.
        **dict.fromkeys((20016, 20028, 20029, 40004, 40006, 40062, 40333, 130_000), PlatformUnavailable),
    }
)
HINTS: Mapping[str | int, str] = MappingProxyType(
    {
        0: "The bot token is not valid: copy it again from the application's page.",
        10003: "The channel is gone.",
        10004: "The bot is not in the server: invite it.",
        50001: "The bot cannot see the channel: give it the permission to.",
        50007: "This person accepts no messages from the bot.",
        50013: "The bot lacks a permission there: see the permissions in docs/discord.md.",
        50083: "The thread is archived and locked.",
        160005: "The thread is locked.",
        160006: "There are too many open threads.",
    }
)


_MAJOR = frozenset({"guild", "channel", "application", "token"})  # each value of these ids has its own rate limits


def _limit_key(route: Route, ids: Ids) -> tuple[str, str]:
    """Return the key of a call's rate limit: its route, and its ids that have limits of their own."""
    names = (name for _, name, _, _ in string.Formatter().parse(route.path) if name in _MAJOR)
    return f"{route.method} {route.path}", "/".join(ids[name] for name in names if name)


GLOBAL_RATE = Rate(45, 1.0)  # Discord allows 50: the rest is for discord.py, whose calls are not counted here
INVALID_RATE = Rate(5_000, 600.0)
_MARGIN = 0.05  # seconds by which Discord's count may lag behind its headers
_MAX_BUCKETS = 10_000  # limits that are remembered


@dataclass(slots=True)
class RateBucket:
    """One of Discord's rate limits, as last reported. Times are the clock's seconds."""

    limit: int = 1
    left: int = 1
    full: float = 0.0  # when the full quota is available again
    closed: float = 0.0  # until when Discord refuses calls
    in_flight: int = 0
    reported: bool = False  # whether Discord has reported it
    known: bool = False  # whether there was any reply: some routes have no reported limit
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    def awaits(self, now: float) -> bool:
        """Return whether the next call has to wait for a call in flight, whose reply reports the quota.

        Until Discord has replied once, only one call is made at a time. After a renewal of the quota, at most `limit`
        calls are made before a reply reports the new quota.
        """
        if not self.known:
            return self.in_flight > 0
        return self.reported and now >= self.full and self.in_flight >= self.limit

    def soonest(self, now: float) -> float:
        if self.reported and now >= self.full:
            self.left = max(self.limit - self.in_flight, 0)
        free = self.full if self.reported and self.left <= 0 and now < self.full else now
        return max(now, free, self.closed)


class DiscordRateLimit:
    """Delays a bot's calls to keep them within Discord's rate limits. Implements `Pacing`."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self.now, self.sleep = now, sleep
        self._names: dict[str, str] = {}
        self._buckets: dict[tuple[str, str], RateBucket] = {}
        self._everywhere, self._denied = RateWindow(GLOBAL_RATE), RateWindow(INVALID_RATE)

    async def turn(self, route: Route, ids: Ids, *, patience: float) -> RateBucket:
        """Count a call once the limits allow it, and return its bucket. Raises `Busy` if `patience` is too short."""
        until = self.now() + patience
        while True:
            bucket = await self._wait_for_bucket(route, ids, patience)
            now = self.now()
            at = max(bucket.soonest(now), now if not route.authorized else self._everywhere.soonest(now))
            at = max(at, self._denied.soonest(now))
            if at <= now:
                break
            if at > until:
                raise Busy(at - now)
            await self.sleep(at - now)
        bucket.left, bucket.in_flight = bucket.left - 1, bucket.in_flight + 1
        if route.authorized:
            self._everywhere = self._everywhere.after(now)
        return bucket

    def done(self, turn: RateBucket, route: Route, ids: Ids, reply: Reply | None) -> None:
        """Update a call's bucket from its reply. `reply` is None if there was none."""
        bucket, headers = turn, reply.headers if reply else NO_IDS
        if reply and reply.status in DENIED_STATUSES and headers.get("X-RateLimit-Scope") != "shared":
            self.denied()
        bucket.in_flight, bucket.known = max(bucket.in_flight - 1, 0), bucket.known or bool(headers)
        bucket.answered.set()
        if "X-RateLimit-Remaining" not in headers:
            return
        key, major = _limit_key(route, ids)
        self._names[key] = headers.get("X-RateLimit-Bucket", key)
        bucket = self._buckets.setdefault((self._names[key], major), bucket)
        left = max(int(parse_seconds(headers["X-RateLimit-Remaining"], 0.0)) - bucket.in_flight, 0)
        full = self.now() + parse_seconds(headers.get("X-RateLimit-Reset-After"), 1.0) + _MARGIN
        if bucket.reported and self.now() < bucket.full:  # replies may arrive out of order
            left, full = min(left, bucket.left), max(full, bucket.full)
        bucket.limit = int(parse_seconds(headers.get("X-RateLimit-Limit"), 1.0))
        bucket.left, bucket.full = left, full
        bucket.reported = bucket.known = True

    def denied(self) -> None:
        """Count a refused call: Discord bans an address after too many."""
        self._denied = self._denied.after(self.now())

    def hold(self, route: Route, ids: Ids, seconds: float, reply: Reply) -> None:
        """Block calls of this route for some seconds; block all calls if the limit is global or a proxy refuses."""
        until = self.now() + seconds
        if not isinstance(reply.body, Mapping) or reply.field("global") is True:
            self._everywhere = replace(self._everywhere, closed=max(self._everywhere.closed, until))
        else:
            bucket = self._bucket(route, ids)
            bucket.closed = max(bucket.closed, until)

    def spare(self, route: Route, ids: Ids = NO_IDS) -> bool:
        """Return whether the limit has room for an optional call; half of it is reserved for required calls."""
        now, bucket = self.now(), self._bucket(route, ids)
        if bucket.soonest(now) > now or self._denied.soonest(now) > now:
            return False
        room = not route.authorized or self._everywhere.room(now) > GLOBAL_RATE.calls // 2
        return room and (not bucket.reported or bucket.left > bucket.limit // 2)

    async def _wait_for_bucket(self, route: Route, ids: Ids, patience: float) -> RateBucket:
        """Wait until a call's quota is known, and return its bucket. Raises `Busy` if `patience` is not positive."""
        while True:
            bucket = self._bucket(route, ids)
            if not bucket.awaits(self.now()):
                return bucket
            if patience <= 0:
                raise Busy(1.0)
            bucket.answered.clear()
            await bucket.answered.wait()

    def _bucket(self, route: Route, ids: Ids) -> RateBucket:
        key, major = _limit_key(route, ids)
        if len(self._buckets) >= _MAX_BUCKETS:
            now = self.now()
            buckets = {
                name: bucket for name, bucket in self._buckets.items() if bucket.in_flight or bucket.soonest(now) > now
            }
            self._buckets = buckets
        return self._buckets.setdefault((self._names.get(key, key), major), RateBucket())


API = "https://discord.com/api/v10"


@asynccontextmanager
async def open_api(
    token: str, url: str, pacing: DiscordRateLimit | None = None, observe: ObserveCall = ignore_call
) -> AsyncIterator[ApiClient]:
    """Open the API client of one bot for the block; an empty `url` means Discord's own."""
    api = Api(
        "Discord",
        (url or API).rstrip("/"),
        headers={"User-Agent": "DiscordBot (https://github.com/footnote, 0.1)"},
        authorization=f"Bot {token}",
        safe="@",
        kinds=KINDS,
        hints=HINTS,
        wait_seconds=5.0,
        banned_seconds=60.0,
        pause_seconds=5.0,
    )
    async with open_session() as session:
        yield ApiClient(session, api, pacing or DiscordRateLimit(), observe)
