"""Keep the calls of an API within its limits, tell which replies are final, and repeat what may be repeated.

The retry loop is ours: a library's knows neither that a call may be in doubt, nor a clock that tests turn.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol, TypeVar

import aiohttp

from bot.desk.platform_port import PlatformError, PlatformUnavailable

T = TypeVar("T")

PATIENCE = 40.0
"""Seconds that a call waits for its turn; whoever may be told to come again waits shorter than a desk's call lasts."""
LIMITED = 429
LOCKED_OUT_SECONDS = 60.0  # before a token is tried again that was refused
RETRY_SECONDS = 1.0  # before a call is repeated that was not answered
UNREACHED_SECONDS = 5.0  # before one is that never left
_TRIES = 4
_MARGIN = 1.02  # calls arrive a little closer together than they were sent
_REFUSED, _BROKEN, _TIMED_OUT = 400, 500, 408


class ReplyKind(StrEnum):
    """What is to be done after a reply."""

    DONE = "done"
    FINAL = "final"  # the platform refuses, and will
    AGAIN = "again"  # it is to be tried again


def sort_reply(status: int, *, own: bool, refused: bool = False, passing: bool = False) -> ReplyKind:
    """Sort a reply by its HTTP status. Only what the platform says in its own words is done or final.

    `own`: it has the form that the platform gives its replies, so that it is not of a proxy before it. `refused`: it
    says that nothing was done; and `passing`, that it may be by and by.
    """
    if not own or passing or status == LIMITED or status >= _BROKEN:
        return ReplyKind.AGAIN
    return ReplyKind.FINAL if refused else ReplyKind.DONE


def build_retry(line: str, status: int, *, own: bool, seconds: float | None = None) -> PlatformUnavailable:
    """Return the error of a reply that is to be tried again: in doubt, unless nothing can have been done.

    What stands before a platform and refuses a call has not handed it on. `seconds`: after which the platform says in
    its own words that it may be tried again.
    """
    held = not own and _REFUSED <= status < _BROKEN and status != _TIMED_OUT
    return PlatformUnavailable(line, seconds=RETRY_SECONDS if held and seconds is None else seconds)


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
        """Return how many calls could be made at once now."""
        if now < self.closed:
            return 0
        return self.rate.calls - sum(at + self.rate.seconds * _MARGIN > now for at in self.taken)


ObserveCall = Callable[[object, str, float], None]
"""Told of each try of a call: its name, how it ended, and in how many seconds, its wait for its turn included."""


def ignore_call(name: object, outcome: str, seconds: float) -> None:
    del name, outcome, seconds


class _Clock(Protocol):
    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[object]]


async def retry_call(
    attempt: Callable[[float], Awaitable[T]],
    name: object,
    clock: _Clock,
    *,
    patience: float,
    repeatable: bool,
    observe: ObserveCall = ignore_call,
) -> T:
    """Make a call, again where it surely did nothing or may be done twice, for as long as patience lasts.

    `attempt` is given the seconds that it may wait for its turn. Raises `PlatformError`; of `PlatformUnavailable` one
    with `seconds` has done nothing.
    """
    waited, doubtful = 0.0, False
    for left in reversed(range(_TRIES)):
        started = clock.now()
        try:
            return await _observe_try(lambda: attempt(max(patience - waited, 0.0)), name, clock, observe)  # noqa: B023
        except (Busy, PlatformUnavailable) as error:
            waited += clock.now() - started
            failed = error if isinstance(error, PlatformUnavailable) else _too_busy(name, error)
            doubtful = doubtful or failed.seconds is None
            pause = RETRY_SECONDS if failed.seconds is None else failed.seconds
            if not left or pause > patience - waited or (failed.seconds is None and not repeatable):
                raise failed.doubted() if doubtful else failed from error.__cause__
            await clock.sleep(pause)
    raise AssertionError


async def _observe_try(attempt: Callable[[], Awaitable[T]], name: object, clock: _Clock, observe: ObserveCall) -> T:
    started, outcome = clock.now(), "stopped"
    try:
        done = await attempt()
        outcome = "done"
    except Busy:
        outcome = "busy"
        raise
    except PlatformError as error:
        outcome = error.kind
        raise
    finally:
        observe(name, outcome, clock.now() - started)
    return done


def _too_busy(name: object, error: Busy) -> PlatformUnavailable:
    return PlatformUnavailable(f"Too much is going on for {name}.", seconds=error.seconds)


@contextmanager
def explain_lost_connection(platform: str, name: object, *more: type[Exception]) -> Iterator[None]:
    """Turn the errors of a connection into `PlatformUnavailable`: what never left has surely done nothing."""
    lost: tuple[type[Exception], ...] = (aiohttp.ClientError, TimeoutError, ConnectionError, *more)
    try:
        yield
    except aiohttp.ClientConnectorError as error:
        raise PlatformUnavailable(f"{platform} cannot be reached for {name}.", seconds=UNREACHED_SECONDS) from error
    except lost as error:
        raise PlatformUnavailable(f"{platform} does not answer {name}.") from error
