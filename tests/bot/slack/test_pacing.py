"""Slack's limits: no more calls than it allows in any minute, nobody waits longer than needed, and all is answered."""

import asyncio
import heapq
import itertools
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slack_sdk.errors import SlackApiError

from bot.desk.platform_port import PlatformUnavailable
from bot.desk.supervisor import cancel_tasks
from bot.platforms.shared.rate_limit import Busy, Rate, RateWindow
from bot.platforms.slack.client import SlackApiClient, SlackRateLimit
from bot.platforms.slack.platform import SlackPlatform
from bot.types import PostedMessages, Question
from tests.bot.slack.shop import question, stays
from tests.bot.views.moments import FINAL, WAY
from tests.platforms.slack.rates import Rates


@dataclass
class Ahead:
    """A clock that goes on to whoever is to be woken next, once nobody has anything else to do."""

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


class Counting:
    """Slack's client, as far as it counts: every call is held to the limits, and answered."""

    def __init__(self, clock: Ahead) -> None:
        self.rates, self.clock, self.calls = Rates(clock), clock, Counter[str]()
        self.limited: list[str] = []

    def __getattr__(self, name: str) -> Any:
        async def call(**facts: Any) -> Any:
            method = name.replace("_", ".", 1)
            if wait := self.rates.wait(method, str(facts.get("channel", ""))):
                self.limited.append(method)
                answer = SimpleNamespace(
                    status_code=429, headers={"Retry-After": str(wait)}, data={"error": "ratelimited"}
                )
                raise SlackApiError("limited", answer)
            self.calls[method] += 1
            return SimpleNamespace(data={"ok": True, "ts": f"{self.clock.at:.0f}.{sum(self.calls.values()):06}"})

        return call


@given(
    rate=st.builds(Rate, st.integers(1, 5), st.sampled_from([1.0, 60.0])),
    steps=st.lists(st.floats(0, 90), max_size=30),
)
def test_no_window_ever_has_more_calls_than_the_rate(rate: Rate, steps: list[float]) -> None:
    """Whenever calls are wanted, they are made in that order, as soon as can be, and never before."""
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


async def test_whoever_calls_waits_for_their_turn() -> None:
    """In the order of asking; a 429 closes the method for as long as Slack says, for those too who wait already."""
    clock = Ahead()
    pacing, made = SlackRateLimit(clock.now, clock.sleep), list[tuple[int, float]]()

    async def call(number: int) -> None:
        await pacing.turn("chat.postMessage", "C1", patience=100)
        made.append((number, clock.at - 1_000))

    async def hold() -> None:
        await clock.sleep(1.5)
        pacing.hold("chat.postMessage", "C1", 10)

    await clock.until_done(*map(call, range(4)), hold())
    assert [number for number, _ in made] == [0, 1, 2, 3]
    assert [at for _, at in made] == pytest.approx([0, 1.02, 11.5, 12.52])


async def test_whoever_waits_no_longer_gives_their_turn_back() -> None:
    """To those behind them, and to whoever comes later; of what was called already nothing is given back."""
    clock = Ahead()
    pacing, made = SlackRateLimit(clock.now, clock.sleep), list[tuple[str, float]]()

    async def call(name: str, patience: float = 100) -> None:
        await pacing.turn("chat.postMessage", "C1", patience=patience)
        made.append((name, clock.at - 1_000))

    async def leave(*left: asyncio.Task[None]) -> None:
        await clock.sleep(0.5)
        await cancel_tasks(left)
        await call("after", 2)

    first, behind = asyncio.create_task(call("first")), [asyncio.create_task(call("left")) for _ in range(70)]
    last = asyncio.create_task(call("last"))
    await clock.until_done(leave(*behind), first, last)
    assert made == [("first", 0), ("last", pytest.approx(1.02)), ("after", pytest.approx(2.04))]


async def test_whoever_has_no_patience_is_told_when() -> None:
    """And is not counted; what can be left out leaves half of what is allowed."""
    clock = Ahead()
    pacing = SlackRateLimit(clock.now, clock.sleep)
    for _ in range(10):
        await pacing.turn("chat.startStream", patience=0)
    assert not pacing.spare("chat.startStream")
    for _ in range(10):
        await pacing.turn("chat.startStream", patience=0)
    with pytest.raises(Busy) as caught:
        await pacing.turn("chat.startStream", patience=60)
    assert caught.value.seconds == pytest.approx(61.2)
    waits = asyncio.create_task(pacing.turn("chat.startStream", patience=100))
    await asyncio.sleep(0)
    assert pacing.room("chat.startStream") == -1
    await cancel_tasks([waits])
    await pacing.turn("chat.update", patience=0)


async def test_a_hundred_questions_at_once_are_answered_within_the_limits() -> None:
    """In ten channels, each shown as the desk does. Some stream; the others are updated; no call comes too soon."""
    clock = Ahead()
    client = Counting(clock)
    platform = SlackPlatform(
        SlackApiClient(client, SlackRateLimit(clock.now, clock.sleep)),
        refresh_asker=stays,
        connected=nullcontext,
        ready=lambda: "",
    )
    ended = list[float]()

    async def answer(number: int) -> None:
        asked, posted = question(f"C{number % 10}", f"{number + 1}.000100"), PostedMessages()
        for view in WAY:
            posted = await shown(asked, view, posted, whole=False)
            await clock.sleep(2)
        await shown(asked, FINAL, posted, whole=True)
        ended.append(clock.at - 1_000)

    async def shown(asked: Question, view: Any, posted: PostedMessages, *, whole: bool) -> PostedMessages:
        while True:
            try:
                return await platform.show(asked, replace(view, ticket=int(float(asked.message))), posted)
            except PlatformUnavailable as error:
                await clock.sleep(error.seconds or 0)
                if not whole:
                    return posted

    await clock.until_done(*map(answer, range(100)))
    streamed = client.calls["chat.startStream"]
    print(f"\n{streamed} streamed, {100 - streamed} fell back, {max(ended) / 60:.1f} minutes to the last")  # noqa: T201

    assert client.limited == []
    assert streamed >= 20
    assert streamed + client.calls["chat.postMessage"] == 100
    assert len(ended) == 100
    assert max(ended) < 5 * 60
