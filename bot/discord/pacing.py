"""How fast Discord may be called: what its answers say of each limit, its limit over all, and who waits.

Discord says with each answer which bucket a route is counted in, how many calls are left there, and when it is full
again. Besides it takes 50 calls a second over all, and bans the address that was refused 10,000 times in 10 minutes.
What only shows the way to an answer asks first whether there is room to spare.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from bot.discord.refusals import wait_of
from bot.discord.routes import Route
from bot.pacing import Busy, Lane, Rate

EVERYWHERE = Rate(45, 1.0)
"""Discord takes 50: the rest is for discord.py, whose calls are not counted here."""
DENIED = Rate(5_000, 600.0)
_MARGIN = 0.05
"""Seconds by which Discord's count may lag behind what it tells."""
_MOST = 10_000
"""How many limits are remembered."""


@dataclass(slots=True)
class Bucket:
    """A limit as Discord last told it. Times are a clock's seconds."""

    limit: int = 1
    left: int = 1
    full: float = 0.0
    """When all of it is there again."""
    closed: float = 0.0
    """Until when Discord wants none."""
    under_way: int = 0
    told: bool = False
    """Whether Discord has told it."""
    known: bool = False
    """Whether there was any answer: some routes have no limit that it tells of."""
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    def awaits(self, now: float) -> bool:
        """Return whether nobody knows what is left before one of those under way is answered.

        So it is for the very first calls, of which one alone is made, and in a new window of which all is used.
        """
        if not self.known:
            return self.under_way > 0
        return self.told and now >= self.full and self.under_way >= self.limit

    def soonest(self, now: float) -> float:
        """Return when the next call may be made."""
        if self.told and now >= self.full:
            self.left = max(self.limit - self.under_way, 0)
        free = self.full if self.told and self.left <= 0 and now < self.full else now
        return max(now, free, self.closed)


class Pacing:
    """The limits of one bot, and who waits for them."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        """Take a clock that nobody sets, in seconds, and what waits by it."""
        self.now, self.sleep = now, sleep
        self._names: dict[str, str] = {}
        self._buckets: dict[tuple[str, str], Bucket] = {}
        self._everywhere, self._denied = Lane(EVERYWHERE), Lane(DENIED)

    async def turn(self, route: Route, ids: Mapping[str, str], *, patience: float) -> Bucket:
        """Wait until a call may be made, which is counted; `done` wants what this returns.

        Raises:
            Busy: That would take longer than `patience` seconds. Nothing was counted.
        """
        until = self.now() + patience
        while True:
            bucket = await self._known(route, ids, patience)
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

    def done(self, bucket: Bucket, route: Route, ids: Mapping[str, str], headers: Mapping[str, str]) -> None:
        """Note what an answer says of a call's limit; nothing where there was no answer."""
        bucket.under_way, bucket.known = max(bucket.under_way - 1, 0), bucket.known or bool(headers)
        bucket.answered.set()
        if "X-RateLimit-Remaining" not in headers:
            return
        key, major = route.key(dict(ids))
        self._names[key] = headers.get("X-RateLimit-Bucket", key)
        bucket = self._buckets.setdefault((self._names[key], major), bucket)
        left = max(int(wait_of(headers["X-RateLimit-Remaining"], 0.0)) - bucket.under_way, 0)
        full = self.now() + wait_of(headers.get("X-RateLimit-Reset-After"), 1.0) + _MARGIN
        if bucket.told and self.now() < bucket.full:  # answers may come in another order than they were given
            left, full = min(left, bucket.left), max(full, bucket.full)
        bucket.limit = int(wait_of(headers.get("X-RateLimit-Limit"), 1.0))
        bucket.left, bucket.full = left, full
        bucket.told = bucket.known = True

    def denied(self) -> None:
        """Count a call that Discord refused as one that should not have been made."""
        self._denied = self._denied.after(self.now())

    def hold(self, route: Route, ids: Mapping[str, str], seconds: float, *, everywhere: bool) -> None:
        """Let no call be made for so long, because Discord says so."""
        until = self.now() + seconds
        if everywhere:
            self._everywhere = Lane(EVERYWHERE, self._everywhere.taken, max(self._everywhere.closed, until))
        else:
            bucket = self._bucket(route, ids)
            bucket.closed = max(bucket.closed, until)

    def spare(self, route: Route, ids: Mapping[str, str]) -> bool:
        """Return whether a call may be made that can be left out: half of what is allowed stays for what cannot."""
        now, bucket = self.now(), self._bucket(route, ids)
        if bucket.soonest(now) > now or self._denied.soonest(now) > now:
            return False
        room = route.interaction or self._everywhere.room(now) > EVERYWHERE.calls // 2
        return room and (not bucket.told or bucket.left > bucket.limit // 2)

    async def _known(self, route: Route, ids: Mapping[str, str], patience: float) -> Bucket:
        """Return the bucket of a call, once it is known what is left in it."""
        while True:
            bucket = self._bucket(route, ids)
            if not bucket.awaits(self.now()):
                return bucket
            if patience <= 0:
                raise Busy(1.0)
            bucket.answered.clear()
            await bucket.answered.wait()

    def _bucket(self, route: Route, ids: Mapping[str, str]) -> Bucket:
        key, major = route.key(dict(ids))
        if len(self._buckets) >= _MOST:
            now = self.now()
            kept = {name: one for name, one in self._buckets.items() if one.under_way or one.soonest(now) > now}
            self._buckets = kept
        return self._buckets.setdefault((self._names.get(key, key), major), Bucket())
