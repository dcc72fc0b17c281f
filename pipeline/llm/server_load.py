"""Measure how slow or busy a model's server is, and decide when answers take less effort for it.

What a call took counts less with each call after it and with time, in sums of a fixed size: an hour of calls weighs no
more than a minute. All but `LoadWatch` is pure.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

TYPICAL_TOKENS = 120  # of the call by which servers are compared
KEPT_BY_CALL, HALF_LIFE = 0.95, 120.0  # what weight a call leaves to those before it, and in how many seconds it halves
LEAST_CALLS = 3.0  # weight by which a server is judged
WELL_AGAIN = 0.9  # the share of the seconds that are slow at which a server is well again
BUSY_SHARE, WELL_SHARE = 0.2, 0.05  # of tries that a server refuses or breaks off: from which, and to which
LEAST_LOWERED = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class CallSample:
    """What one call was seen to take; seconds are those in which the server was waited for."""

    waited: float  # for a place and between tries, until the last of them was sent
    first: float | None = None  # from then to the first sign of a streamed reply
    silent: bool = False  # whether that never came: it would have taken longer
    reading: float = 0.0  # from there to the end
    tokens: int = 0  # of the reply
    tries: int = 1
    refused: int = 0  # of the tries


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """What calls take by now, each by its weight."""

    call_seconds: float  # of a typical call
    waited: float  # of these
    first_token: float  # of these
    tokens_a_second: float
    refused: float  # share of tries


@dataclass(frozen=True, slots=True)
class Pressure:
    """Why less effort is taken now."""

    because: Literal["slow", "busy"]
    figures: LoadFigures


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """Sums over calls, each by its weight at a time."""

    at: float = 0.0
    calls: float = 0.0
    waited: float = 0.0
    tries: float = 0.0
    refused: float = 0.0
    streams: float = 0.0
    first: float = 0.0
    reading: float = 0.0
    tokens: float = 0.0
    lowered: float | None = None  # since when less effort is taken
    because: Literal["slow", "busy"] = "slow"  # why, then

    def fade(self, now: float, share: float = 1.0) -> "ServerLoad":
        """Return it as it weighs later."""
        share *= 0.5 ** (max(0.0, now - self.at) / HALF_LIFE)
        return replace(
            self,
            at=now,
            calls=share * self.calls,
            waited=share * self.waited,
            tries=share * self.tries,
            refused=share * self.refused,
            streams=share * self.streams,
            first=share * self.first,
            reading=share * self.reading,
            tokens=share * self.tokens,
        )

    def add(self, sample: CallSample, now: float) -> "ServerLoad":
        """Return it with a call that ended now. One that ended in silence counts where that took longer than usual."""
        faded, first = self.fade(now, KEPT_BY_CALL), sample.first
        told = replace(
            faded, calls=faded.calls + 1, waited=faded.waited + sample.waited, tries=faded.tries + sample.tries
        )
        told = replace(told, refused=told.refused + sample.refused)
        if first is None or (sample.silent and first * faded.streams <= faded.first):
            return told
        return replace(
            told,
            streams=told.streams + 1,
            first=told.first + first,
            reading=told.reading + sample.reading,
            tokens=told.tokens + sample.tokens,
        )

    @property
    def figures(self) -> LoadFigures:
        waited = self.waited / self.calls if self.calls else 0.0
        first = self.first / self.streams if self.streams else 0.0
        a_token = self.reading / self.tokens if self.tokens else 0.0
        seconds = waited + first + TYPICAL_TOKENS * a_token
        rate = 1 / a_token if a_token else 0.0
        return LoadFigures(seconds, waited, first, rate, self.refused / self.tries if self.tries else 0.0)

    def decide(self, slow_seconds: float, now: float) -> tuple["ServerLoad", Pressure | None]:
        """Decide for a turn that begins now; a server counts as slow from so many seconds a typical call."""
        faded, lowered = self.fade(now), self.lowered is not None
        found, slow = faded.figures, slow_seconds * (WELL_AGAIN if lowered else 1.0)
        refused = found.refused >= (WELL_SHARE if lowered else BUSY_SHARE)
        known = faded.calls >= (1.0 if lowered else LEAST_CALLS)
        held = self.lowered is not None and now - self.lowered < LEAST_LOWERED
        if not slow_seconds or not (held or (known and (refused or found.call_seconds >= slow))):
            return replace(faded, lowered=None), None
        if self.lowered is None:
            busy = refused or 2 * found.waited > found.call_seconds
            faded = replace(faded, lowered=now, because="busy" if busy else "slow")
        return faded, Pressure(faded.because, found)


@dataclass(slots=True)
class LoadWatch:
    """Holds what was measured of one server in this process."""

    _clock: Callable[[], float] = time.monotonic
    _load: ServerLoad = field(default=ServerLoad(), init=False)

    def observe(self, sample: CallSample) -> None:
        self._load = self._load.add(sample, self._clock())

    def decide(self, slow_seconds: float) -> Pressure | None:
        """Return why a turn that begins now takes less effort, if it does; 0 is never slow."""
        self._load, pressure = self._load.decide(slow_seconds, self._clock())
        return pressure
