"""Rate limits: of each route per channel, guild or webhook, and of all routes together; by the server's clock."""

from collections import deque
from dataclasses import dataclass, field
from hashlib import sha256

from tests.platforms.clock import Clock
from tests.platforms.discord import limits
from tests.platforms.discord.calls import Call

_MAJOR = ("channel", "guild", "token")


@dataclass
class Wait:
    """How long to wait, by the server's clock."""

    seconds: float
    everywhere: bool = False


@dataclass
class Rates:
    """The times of the requests."""

    clock: Clock
    pace: float = 1.0
    """How many of the server's seconds pass in one of the client's, in which waits are given."""
    per_route: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Limits that tests set instead of the route's own, by its name."""
    everywhere: int = limits.GLOBAL
    invalid_most: int = limits.INVALID
    invalid: deque[float] = field(default_factory=deque)
    _began: dict[str, tuple[float, int]] = field(default_factory=dict)
    """The beginning of a bucket's window, and its requests."""
    _all: deque[float] = field(default_factory=deque)

    @property
    def banned(self) -> bool:
        """Whether so much was invalid that the address is banned for a while."""
        while self.invalid and self.invalid[0] <= self.clock.now() - limits.INVALID_SECONDS:
            self.invalid.popleft()
        return len(self.invalid) >= self.invalid_most

    def take(self, call: Call) -> Wait | None:
        """Count a request; if it exceeds a limit, return how long to wait."""
        now = self.clock.now()
        if call.route.token:  # interactions are not counted over all
            while self._all and self._all[0] <= now - limits.GLOBAL_SECONDS:
                self._all.popleft()
            if len(self._all) >= self.everywhere:
                return Wait(self._all[0] + limits.GLOBAL_SECONDS - now, everywhere=True)
            self._all.append(now)
        most, seconds = self._limit(call)
        key = self._key(call)
        began, count = self._began.get(key, (now, 0))
        began, count = (now, 0) if now >= began + seconds else (began, count)
        if count >= most:
            return Wait(began + seconds - now)
        self._began[key] = began, count + 1
        return None

    def headers(self, call: Call) -> dict[str, str]:
        most, seconds = self._limit(call)
        began, count = self._began.get(self._key(call), (self.clock.now(), 0))
        left = max(0.0, (began + seconds - self.clock.now()) / self.pace)
        made = {
            "X-RateLimit-Limit": most,
            "X-RateLimit-Remaining": most - count,
            "X-RateLimit-Reset-After": round(left, 3),
        }
        made["X-RateLimit-Reset"] = round(self.clock.now() + left, 3)
        bucket = sha256(call.route.name.encode()).hexdigest()[:32]
        return {**{name: str(value) for name, value in made.items()}, "X-RateLimit-Bucket": bucket}

    def _limit(self, call: Call) -> tuple[int, float]:
        return self.per_route.get(call.route.name, (call.route.most, call.route.seconds))

    def _key(self, call: Call) -> str:
        return " ".join([call.route.name, *(call.names.get(name, "") for name in _MAJOR)])
