"""Keep the calls that share a limit within it; pure."""

from dataclasses import dataclass, replace

_MARGIN = 1.02  # calls arrive a little closer together than they were sent


@dataclass(frozen=True, slots=True)
class Rate:
    """So many calls in so many seconds, whichever seconds one looks at."""

    calls: int
    seconds: float = 60.0


class Busy(Exception):
    """No call may be made soon. `seconds` says when."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no call for {seconds:.0f} s")
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class RateWindow:
    """The calls that share a limit: when the newest of them were, or will be, made. All times are a clock's seconds."""

    rate: Rate
    taken: tuple[float, ...] = ()  # in order, at most as many as the rate counts
    closed: float = 0.0  # until when the platform wants none

    def soonest(self, now: float) -> float:
        full = len(self.taken) >= self.rate.calls
        free = self.taken[-self.rate.calls] + self.rate.seconds * _MARGIN if full else now
        return max(now, self.closed, free)

    def after(self, at: float) -> "RateWindow":
        return replace(self, taken=(*self.taken, at)[-self.rate.calls :])

    def room(self, now: float) -> int:
        if now < self.closed:
            return 0
        return self.rate.calls - sum(at + self.rate.seconds * _MARGIN > now for at in self.taken)
