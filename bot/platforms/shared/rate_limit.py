"""Keep API calls within known rate limits. Calls are made in the order in which they were requested."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Protocol

from bot.desk.supervisor import wait_for_first

Ids = Mapping[str, str]
NO_IDS: Ids = MappingProxyType({})
_MARGIN = 1.02  # calls arrive closer together than they were sent


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate limit: at most `calls` calls within `seconds` seconds."""

    calls: int
    seconds: float = 60.0


class Busy(Exception):
    """The rate limit does not allow the call in time; it will allow the call in `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no call for {seconds:.0f} s")
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class RateWindow:
    """When the latest calls that share a limit were made. Times are the clock's seconds."""

    rate: Rate
    taken: tuple[float, ...] = ()  # in order, at most as many as the rate counts
    closed: float = 0.0  # until when the platform refuses calls

    def soonest(self, now: float) -> float:
        full = len(self.taken) >= self.rate.calls
        free = self.taken[-self.rate.calls] + self.rate.seconds * _MARGIN if full else now
        return max(now, self.closed, free)

    def after(self, at: float) -> "RateWindow":
        return replace(self, taken=(*self.taken, at)[-self.rate.calls :])

    def room(self, now: float) -> int:
        """Return how many calls the limit allows now."""
        if now < self.closed:
            return 0
        return self.rate.calls - sum(at + self.rate.seconds * _MARGIN > now for at in self.taken)


@dataclass(frozen=True, slots=True)
class Route:
    """An API call. Names in braces in its path stand for values, which are never logged."""

    method: str
    path: str
    repeatable: bool = True  # whether repeating it does no harm
    authorized: bool = True  # whether it sends our token
    name: str = ""  # for logs and metrics, if not method and path
    rate: Rate = Rate(20)  # its limit, as counted by `Lanes`
    by_channel: bool = False  # whether each channel has a limit of its own

    def __str__(self) -> str:
        return self.name or f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP reply. `body`: its JSON; None if it is not JSON."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    content: bytes = b""

    def field(self, name: str) -> Any:
        return self.body.get(name) if isinstance(self.body, Mapping) else None


class Pacing(Protocol):
    """Delays the calls of one account to keep them within its rate limits."""

    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[object]]

    async def turn(self, route: Route, ids: Ids, *, patience: float) -> Any:
        """Count a call once the limits allow it. Raises `Busy`. The return value is passed to `done`."""
        ...

    def done(self, turn: Any, route: Route, ids: Ids, reply: Reply | None) -> None:
        """Update the limits from a call's reply. `reply` is None if there was none."""
        ...

    def hold(self, route: Route, ids: Ids, seconds: float, reply: Reply) -> None:
        """Block calls for some seconds, as the platform's reply demands."""
        ...

    def spare(self, route: Route, ids: Ids = ...) -> bool:
        """Return whether the limit has room for an optional call; half of it is reserved for required calls."""
        ...


@dataclass(slots=True)
class _Lane:
    """The calls that share a limit, and those that wait for it."""

    window: RateWindow
    waiting: list[object] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced, when a waiting call is given up: those behind it may start sooner."""

    def soonest(self, now: float, before: int) -> float:
        """Return when a call may be made if `before` other calls are made first."""
        window = self.window
        for _ in range(before):
            window = window.after(window.soonest(now))
        return window.soonest(now)


class Lanes:
    """Keeps rate limits that are known in advance, for each route or for all routes together. Implements `Pacing`."""

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        *,
        together: Rate | None = None,
    ) -> None:
        self.now, self.sleep, self._together = now, sleep, together
        self._lanes: dict[str, _Lane] = {}

    async def turn(self, route: Route, ids: Ids = NO_IDS, *, patience: float) -> None:
        """Count a call once the limit allows it, after calls that wait already. Raises `Busy`."""
        lane, place, until = self._lane(route, ids), object(), self.now() + patience
        lane.waiting.append(place)
        try:
            await self._wait(lane, place, until)
        except BaseException:
            lane.left.set()
            lane.left = asyncio.Event()
            raise
        finally:
            lane.waiting.remove(place)
        lane.window = lane.window.after(self.now())

    async def _wait(self, lane: _Lane, place: object, until: float) -> None:
        while (at := lane.soonest(now := self.now(), lane.waiting.index(place))) > now:
            if at > until:
                raise Busy(at - now)
            await wait_for_first(lane.left.wait(), self.sleep(at - now))

    def done(self, turn: Any, route: Route, ids: Ids, reply: Reply | None) -> None:
        """Do nothing: replies do not report the limits."""

    def hold(self, route: Route, ids: Ids, seconds: float, reply: Reply | None = None) -> None:
        del reply
        lane = self._lane(route, ids)
        lane.window = replace(lane.window, closed=max(lane.window.closed, self.now() + seconds))

    def spare(self, route: Route, ids: Ids = NO_IDS) -> bool:
        """Return whether the limit has room for an optional call; half of it is reserved for required calls."""
        return self.room(route, ids) > self._lane(route, ids).window.rate.calls // 2

    def room(self, route: Route, ids: Ids = NO_IDS) -> int:
        """Return how many calls the limit allows now, in addition to those that already wait."""
        lane = self._lane(route, ids)
        return lane.window.room(self.now()) - len(lane.waiting)

    def _lane(self, route: Route, ids: Ids) -> _Lane:
        key = "" if self._together else f"{route} {ids.get('channel', '') if route.by_channel else ''}"
        return self._lanes.setdefault(key, _Lane(RateWindow(self._together or route.rate)))
