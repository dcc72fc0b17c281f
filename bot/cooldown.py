"""Who asked only just has to wait: kept in memory, by a clock that nobody sets."""

import time
from collections.abc import Callable
from dataclasses import dataclass

MOST = 50_000
"""Of how many people it is remembered."""


@dataclass(frozen=True, slots=True)
class _Asked:
    until: float
    what: str
    told: bool = False


class Cooldown:
    """Lets each person ask once in so many seconds."""

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        """Take how many (0 for no wait), and a clock in seconds."""
        self._seconds, self._now = seconds, now
        self._asked: dict[str, _Asked] = {}

    def left(self, who: str, what: str) -> float:
        """Return for how many seconds somebody has to wait; 0 if not, and of what they were let ask before."""
        asked = self._asked.get(who)
        return 0.0 if asked is None or asked.what == what else max(asked.until - self._now(), 0.0)

    def begin(self, who: str, what: str) -> None:
        """Note that somebody asks; the same thing once more begins no new wait."""
        if not self._seconds or (who in self._asked and self._asked[who].what == what):
            return
        self._asked.pop(who, None)
        while len(self._asked) >= MOST:
            self._asked.pop(next(iter(self._asked)))
        self._asked[who] = _Asked(self._now() + self._seconds, what)

    def first_refusal(self, who: str) -> bool:
        """Return whether somebody is refused for the first time in this wait: then they are told."""
        asked = self._asked.get(who)
        if asked is None or asked.told:
            return False
        self._asked[who] = _Asked(asked.until, asked.what, told=True)
        return True
