"""Measure how slow or busy a model's server is, and decide when to lower the effort of answers.

Each call's weight decays with later calls and with time, in sums of a fixed size. All but `LoadWatch` is pure.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

TYPICAL_TOKENS = 120  # of the call by which servers are compared
KEPT_BY_CALL = 0.95  # the factor by which a new call reduces the weight of earlier ones
HALF_LIFE = 120.0  # seconds in which a weight halves
LEAST_CALLS = 3.0  # total weight needed to judge a server
WELL_AGAIN = 0.9  # the share of `slow_seconds` below which a server has recovered
BUSY_SHARE = 0.2  # share of tries refused or broken off from which a server counts as busy
WELL_SHARE = 0.05  # share below which it has recovered
LEAST_LOWERED = 60.0  # seconds for which effort stays lowered


@dataclass(frozen=True, slots=True)
class CallSample:
    """Measurements of one call, in seconds of waiting for the server."""

    waited: float  # for a slot and between tries, until the last try was sent
    first: float | None = None  # from then to the first byte of a streamed reply
    silent: bool = False  # whether no byte came, so that `first` is a lower bound
    reading: float = 0.0  # from the first byte to the end
    tokens: int = 0  # of the reply
    tries: int = 1
    refused: int = 0  # how many of the tries were refused


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """Weighted means over recent calls."""

    call_seconds: float  # of a typical call
    waited: float  # seconds of these for a slot and between tries
    first_token: float  # seconds of these until the first byte
    tokens_a_second: float
    refused: float  # share of tries


@dataclass(frozen=True, slots=True)
class Pressure:
    """Why effort is lowered now."""

    because: Literal["slow", "busy"]
    figures: LoadFigures


_SUMS = ("calls", "waited", "tries", "refused", "streams", "first", "reading", "tokens")


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """Weighted sums over recent calls, as of one moment."""

    at: float = 0.0
    calls: float = 0.0
    waited: float = 0.0
    tries: float = 0.0
    refused: float = 0.0
    streams: float = 0.0
    first: float = 0.0
    reading: float = 0.0
    tokens: float = 0.0
    lowered: float | None = None  # since when effort is lowered
    because: Literal["slow", "busy"] = "slow"  # the reason for that

    def fade(self, now: float, share: float = 1.0) -> "ServerLoad":
        """Return the sums as of a later time, with lower weights."""
        share *= 0.5 ** (max(0.0, now - self.at) / HALF_LIFE)
        return replace(self, at=now, **{name: share * getattr(self, name) for name in _SUMS})

    def add(self, sample: CallSample, now: float) -> "ServerLoad":
        """Return the sums with a call that has just ended. A silent one counts only if it took longer than usual."""
        counted = self.fade(now, KEPT_BY_CALL).plus(
            calls=1, waited=sample.waited, tries=sample.tries, refused=sample.refused
        )
        first = sample.first
        if first is None or (sample.silent and first * counted.streams <= counted.first):
            return counted
        return counted.plus(streams=1, first=first, reading=sample.reading, tokens=sample.tokens)

    def plus(self, **amounts: Any) -> "ServerLoad":
        return replace(self, **{name: getattr(self, name) + amount for name, amount in amounts.items()})

    @property
    def figures(self) -> LoadFigures:
        waited = self.waited / self.calls if self.calls else 0.0
        first = self.first / self.streams if self.streams else 0.0
        a_token = self.reading / self.tokens if self.tokens else 0.0
        seconds = waited + first + TYPICAL_TOKENS * a_token
        rate = 1 / a_token if a_token else 0.0
        return LoadFigures(seconds, waited, first, rate, self.refused / self.tries if self.tries else 0.0)

    def decide(self, slow_seconds: float, now: float) -> tuple["ServerLoad", Pressure | None]:
        """Return the load as of now, and why a turn takes less effort. A call of `slow_seconds` or more is slow."""
        faded = self.fade(now)
        figures = faded.figures
        lowered = self.lowered is not None
        slow = figures.call_seconds >= slow_seconds * (WELL_AGAIN if lowered else 1.0)
        busy = figures.refused >= (WELL_SHARE if lowered else BUSY_SHARE)
        judged = faded.calls >= (1.0 if lowered else LEAST_CALLS)
        just_lowered = self.lowered is not None and now - self.lowered < LEAST_LOWERED
        if not slow_seconds or not (just_lowered or (judged and (busy or slow))):
            return replace(faded, lowered=None), None
        if not lowered:
            busy = busy or 2 * figures.waited > figures.call_seconds
            faded = replace(faded, lowered=now, because="busy" if busy else "slow")
        return faded, Pressure(faded.because, figures)


@dataclass(slots=True)
class LoadWatch:
    """The measurements of one server in this process."""

    _clock: Callable[[], float] = time.monotonic
    _load: ServerLoad = field(default=ServerLoad(), init=False)

    def observe(self, sample: CallSample) -> None:
        self._load = self._load.add(sample, self._clock())

    def decide(self, slow_seconds: float) -> Pressure | None:
        """Return why a turn that begins now takes less effort, or None; with 0 seconds always None."""
        self._load, pressure = self._load.decide(slow_seconds, self._clock())
        return pressure
