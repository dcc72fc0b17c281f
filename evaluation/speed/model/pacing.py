"""When each token of a reply is due. The clock is an argument, and nothing here waits.

What is due is reckoned from what was due before, not from when this process got round to it: a server that wakes late
is no slower for it.
"""

import math
from collections.abc import Iterator

from evaluation.speed.model.settings import Pace


class Meter:
    """A rate that several share: who comes first is served first, a few tokens at a time."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free = -math.inf

    def take(self, tokens: int, at: float) -> float:
        """Return when tokens that are wanted at a time have gone through; at once where the rate has no limit."""
        if math.isinf(self._rate):
            return at
        self._free = max(self._free, at) + tokens / self._rate
        return self._free


class Pacer:
    """One server's pace, for all its replies."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._out = Meter(pace.total_out)
        self._prompts = Meter(pace.total_prompt)

    def begins(self, prompt: int, cached: int, at: float) -> float:
        """Return when the first token of a reply is begun.

        Args:
            prompt: Tokens of the prompt.
            cached: How many of them the server has in its cache.
            at: When the server turns to the request.
        """
        to_read = prompt - cached + cached * self._pace.cached_cost
        alone = at + to_read / self._pace.prompt
        return self._pace.first_token + max(alone, self._prompts.take(math.ceil(to_read), at))

    def ends(self, tokens: int, begins: float) -> Iterator[float]:
        """Yield when each token of a reply is there; to be asked for the next one when the one before it is.

        Args:
            tokens: How many there are.
            begins: When the first is begun.
        """
        due = begins
        for _ in range(tokens):
            due = max(due + 1 / self._pace.out, self._out.take(1, due))
            yield due
