"""Slack's rate limits: no call exceeds them, none waits needlessly, and every call is made."""

import asyncio
import heapq
import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.desk.supervisor import cancel_tasks
from bot.platforms.shared.rate_limit import Busy, Lanes, Rate, RateWindow, Reply
from bot.platforms.slack.client import POST, START_STREAM, UPDATE

C1 = {"channel": "C1"}


@dataclass
class Ahead:
    """A clock that jumps to the next waiting task once all tasks are waiting."""

    at: float = 1_000.0
    _waiting: list[tuple[float, int, asyncio.Future[None]]] = field(default_factory=list)
    _order: Any = field(default_factory=itertools.count)

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self.at + seconds, next(self._order), future))
        await future

    async def until_done(self, *work: Any) -> list[Any]:
        """Do all of this."""
        everything = asyncio.gather(*work)
        while not everything.done():
            for _ in range(20):
                await asyncio.sleep(0)
            if self._waiting and not everything.done():
                at, _, future = heapq.heappop(self._waiting)
                if not future.done():
                    self.at = at
                    future.set_result(None)
        return everything.result()


@given(
    rate=st.builds(Rate, st.integers(1, 5), st.sampled_from([1.0, 60.0])),
    steps=st.lists(st.floats(0, 90), max_size=30),
)
def test_window_never_has_more_calls_than_the_rate(rate: Rate, steps: list[float]) -> None:
    lane, now, made = RateWindow(rate), 0.0, list[float]()
    for step in steps:
        now += step
        at = lane.soonest(now)
        assert at >= now
        lane = lane.after(at)
        made.append(at)
    assert made == sorted(made)
    assert all(later - earlier > rate.seconds for earlier, later in zip(made, made[rate.calls :], strict=False))
    assert RateWindow(rate).soonest(5) == 5


async def test_calls_wait_for_their_turn_in_order() -> None:
    clock = Ahead()
    pacing, made = Lanes(clock.now, clock.sleep), list[tuple[int, float]]()

    async def call(number: int) -> None:
        await pacing.turn(POST, C1, patience=100)
        made.append((number, clock.at - 1_000))

    async def hold() -> None:
        await clock.sleep(1.5)
        pacing.hold(POST, C1, 10, Reply(429))

    await clock.until_done(*map(call, range(4)), hold())
    assert [number for number, _ in made] == [0, 1, 2, 3]
    assert [at for _, at in made] == pytest.approx([0, 1.02, 11.5, 12.52])


async def test_cancelled_call_gives_its_turn_back() -> None:
    clock = Ahead()
    pacing, made = Lanes(clock.now, clock.sleep), list[tuple[str, float]]()

    async def call(name: str, patience: float = 100) -> None:
        await pacing.turn(POST, C1, patience=patience)
        made.append((name, clock.at - 1_000))

    async def leave(*left: asyncio.Task[None]) -> None:
        await clock.sleep(0.5)
        await cancel_tasks(left)
        await call("after", 2)

    first, behind = asyncio.create_task(call("first")), [asyncio.create_task(call("left")) for _ in range(70)]
    last = asyncio.create_task(call("last"))
    await clock.until_done(leave(*behind), first, last)
    assert made == [("first", 0), ("last", pytest.approx(1.02)), ("after", pytest.approx(2.04))]


async def test_insufficient_patience_raises_busy() -> None:
    clock = Ahead()
    pacing = Lanes(clock.now, clock.sleep)
    for _ in range(10):
        await pacing.turn(START_STREAM, patience=0)
    assert not pacing.spare(START_STREAM)
    for _ in range(10):
        await pacing.turn(START_STREAM, patience=0)
    with pytest.raises(Busy) as caught:
        await pacing.turn(START_STREAM, patience=60)
    assert caught.value.seconds == pytest.approx(61.2)
    waits = asyncio.create_task(pacing.turn(START_STREAM, patience=100))
    await asyncio.sleep(0)
    assert pacing.room(START_STREAM) == -1
    await cancel_tasks([waits])
    await pacing.turn(UPDATE, patience=0)
