"""Rate limits: of each method per minute, and of posts to each channel."""

import math
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.platforms.clock import Clock
from tests.platforms.slack import limits

_MINUTE = 60


@dataclass
class Rates:
    """The times of the calls. Refused calls do not count."""

    clock: Clock
    per_minute: dict[str, int] = field(default_factory=lambda: dict(limits.PER_MINUTE))
    burst: int = limits.POSTS_BURST
    _calls: Mapping[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))
    _posts: dict[str, tuple[float, float]] = field(default_factory=dict)

    def wait(self, method: str, channel: str) -> int:
        """Return how many seconds to wait before a call; 0 if it may proceed, and then it is counted."""
        now, calls = self.clock.now(), self._calls[method]
        while calls and calls[0] <= now - _MINUTE:
            calls.popleft()
        if len(calls) >= self.per_minute.get(method, limits.TIER_3):
            return max(1, math.ceil(calls[0] + _MINUTE - now))
        if method == "chat.postMessage" and (wait := self._post(channel, now)):
            return wait
        calls.append(now)
        return 0

    def _post(self, channel: str, now: float) -> int:
        left, at = self._posts.get(channel, (float(self.burst), now))
        left = min(float(self.burst), left + now - at)
        if left < 1:
            return max(1, math.ceil(1 - left))
        self._posts[channel] = (left - 1, now)
        return 0
