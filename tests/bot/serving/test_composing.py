"""What a server is made of is opened in order and left in the reverse; what is under way is finished or put back."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bot.access import Asker
from bot.app import App, open_app
from bot.arriving import Opened, OpenPlatform
from bot.console import Fault, fault_of
from bot.control.address import socket_of
from bot.desk.desk import Desk
from bot.desk.types import Heard, Place, Posted, Question, State, Taken, Ways
from bot.nightly import Night
from bot.platform import PlatformError
from bot.serving import serve, telling
from bot.settings import Settings
from bot.showing.view import View
from ingest.refreshing import RefreshReport

PLACE = Place("slack", "T1", "C1")
ASKER = Asker("slack", "channel", "T1", "C1", "U1", shared_with_other_organisations=False)


def settings(**changes: Any) -> Settings:
    """Return the settings of a home in this folder."""
    return Settings(http={"port": 0}, desk={"grace_seconds": 5}, **changes)


def question(number: int) -> Question:
    """Return a question that nothing can be found for."""
    at = datetime(2026, 3, 1, tzinfo=UTC)
    return Question(
        f"slack:T1/C1/{number}", "ask", "When does the quay open?", ASKER, PLACE, f"c{number}", at, str(number)
    )


@dataclass
class Channel:
    """A platform that notes what is done with it; it asks as soon as it is connected."""

    happened: list[str] = field(default_factory=list)
    called: list[tuple[Place, str]] = field(default_factory=list)
    slow: bool = False
    """Whether a post takes for ever."""
    asks: int = 1
    ready: str = ""
    posting: asyncio.Event = field(default_factory=asyncio.Event)
    connected_now: asyncio.Event = field(default_factory=asyncio.Event)
    desk: Any = None
    name: str = "slack"

    @asynccontextmanager
    async def open(self, app: App, desk: Desk) -> AsyncIterator[Opened | None]:
        """Open it, with a route of its own."""
        del app
        self.desk = desk

        async def hook(_: Request) -> Response:
            return PlainTextResponse("heard")

        self.happened.append("opened")
        yield Opened(self, (Route("/slack/events", hook, methods=["POST"]),))
        self.happened.append("closed")

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        self.happened.append("connected")
        for number in range(self.asks):
            assert await self.desk.take(question(number)) is Taken.NEW
        self.connected_now.set()
        try:
            yield
        finally:
            self.happened.append("disconnected")

    async def asker(self, question: Question) -> Asker:
        return question.asker

    def ways(self, question: Question) -> Ways:
        del question
        return Ways(pace=0.0)

    async def show(self, question: Question, view: View, posted: Posted) -> Posted:
        self.posting.set()
        if self.slow:
            await asyncio.Event().wait()
        if view.done:
            self.happened.append(f"answered {question.message}")
        return posted or Posted((f"m{question.message}",))

    async def find(self, question: Question) -> Posted:
        del question
        return Posted()

    async def remove(self, question: Question, posted: Posted) -> None:
        raise AssertionError(question, posted)

    async def tell(self, question: Question, text: str) -> None:
        raise AssertionError(question, text)

    async def call(self, place: Place, text: str, people: Sequence[str]) -> Posted:
        assert not people
        self.called.append((place, text))
        return Posted(("m",))

    async def heard(self, question: Question, most: int) -> tuple[Heard, ...]:
        del question, most
        return ()


@asynccontextmanager
async def _absent(app: App, desk: Desk) -> AsyncIterator[Opened | None]:
    """A platform that is not configured."""
    del app, desk
    yield None


class Log(logging.Handler):
    """What is logged, to be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = list[tuple[str, str]]()
        self._more = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.getMessage(), str(getattr(record, "cause", ""))))
        self._more.set()

    async def until(self, beginning: str) -> str:
        """Wait for a line that begins so, and return it."""
        async with asyncio.timeout(20):
            while True:
                found = [line for line, _ in self.lines if line.startswith(beginning)]
                if found:
                    return found[-1]
                self._more.clear()
                await self._more.wait()


@pytest.fixture
def heard() -> Iterator[Log]:
    """Hear what the server logs."""
    loggers = [logging.getLogger(name) for name in ("bot.serving", "bot.arriving", "bot.noticing")]
    log = Log()
    for one in loggers:
        one.setLevel(logging.INFO)
        one.addHandler(log)
    yield log
    for one in loggers:
        one.removeHandler(log)
        one.setLevel(logging.NOTSET)


async def served(channel: Channel, *, signals: int = 1) -> None:
    """Serve until the channel has posted something, then send signals."""
    serving = asyncio.create_task(serve(settings(), {"discord": _absent, "slack": channel.open}))
    async with asyncio.timeout(20):
        await asyncio.wait({serving, asyncio.ensure_future(channel.posting.wait())}, return_when="FIRST_COMPLETED")
        for _ in range(signals):
            if not serving.done():
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.sleep(0)
        await serving


async def test_events_stop_first_then_answers_are_finished_then_all_is_closed() -> None:
    """And afterwards the home is free, with nothing waiting in it."""
    channel = Channel(asks=3)
    await served(channel)

    first, then, *answers, last = channel.happened
    assert (first, then, last) == ("opened", "connected", "closed")
    assert sorted(answers) == ["answered 0", "answered 1", "answered 2", "disconnected"]
    assert socket_of(settings().home) is None
    async with open_app(settings()) as app:
        assert [(await app.queue.get(ticket)).state for ticket in (1, 2, 3)] == [State.DONE] * 3  # type: ignore[union-attr]


async def test_what_does_not_end_in_time_waits_for_the_next_start() -> None:
    """A second signal shortens the time; the next server answers it, once."""
    await served(Channel(slow=True), signals=2)
    async with open_app(settings()) as app:
        row = await app.queue.get(1)
        assert row
        assert row.state == State.WAITING

    again = Channel(asks=0)
    await served(again)
    assert again.happened.count("answered 0") == 1


async def test_it_is_ready_when_its_platforms_are_and_serves_their_routes(heard: Log) -> None:
    """Where it listens is told when all of it is there."""
    channel = Channel(ready="Slack does not answer.", asks=0)
    serving = asyncio.create_task(serve(settings(), {"slack": channel.open}))
    line = await heard.until("ready:")
    address = line.removeprefix("ready: ").partition(",")[0]
    async with httpx.AsyncClient() as client:
        ready = await client.get(address + "/readyz")
        hooked = await client.post(address + "/slack/events")
    os.kill(os.getpid(), signal.SIGTERM)
    await serving

    assert (ready.status_code, ready.json()["reasons"]) == (503, {"slack": "Slack does not answer."})
    assert hooked.text == "heard"
    assert line.endswith("; connected to slack; no nights are set")


async def test_a_platform_that_refuses_us_ends_it_and_leaves_nothing_open() -> None:
    """What it says is what is told."""

    @asynccontextmanager
    async def refusing(app: App, desk: Desk) -> AsyncIterator[Opened | None]:
        del app, desk
        raise PlatformError("Slack refuses the token.", hint="Look at SLACK_BOT_TOKEN.")
        yield

    opener: OpenPlatform = refusing
    with pytest.raises(PlatformError) as caught:
        await serve(settings(), {"slack": opener})

    assert fault_of(caught.value) == Fault("platform", "Slack refuses the token.", "Look at SLACK_BOT_TOKEN.")
    async with open_app(settings()):
        assert socket_of(settings().home) is None


async def test_a_system_that_needs_a_model_is_not_ready_without() -> None:
    """It is told by name."""
    channel = Channel(asks=0)
    reasons = dict[str, str]()

    @asynccontextmanager
    async def asked(app: App, desk: Desk) -> AsyncIterator[Opened | None]:
        from bot.serving import checks

        del desk
        reasons.update({name: await check() for name, check in checks(app, {"slack": channel}).items()})
        raise PlatformError("enough")
        yield

    with pytest.raises(PlatformError, match="enough"):
        await serve(settings(system="wikichat"), {"slack": asked})

    assert {name for name, reason in reasons.items() if reason} == {"model"}
    assert "wikichat" in reasons["model"]


async def test_a_night_is_told_in_the_log_and_to_the_admins(caplog: pytest.LogCaptureFixture) -> None:
    """In their channel, pinging nobody."""
    caplog.set_level("INFO", "bot.serving")
    channel = Channel()
    night = Night((RefreshReport("docs", added=2),), {"wiki": Fault("dump", "It is cut short.")})
    await telling(settings(schedule={"admin_channel": "slack:T1/C9"}), {"slack": channel})(night)
    await telling(settings(), {"slack": channel})(night)

    ((place, text),) = channel.called
    assert place == Place("slack", "T1", "C9")
    assert text.splitlines() == [*night.lines()]
    assert len(caplog.records) == 4
