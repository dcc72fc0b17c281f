"""Tests that a server opens its parts in order, closes them in reverse, and finishes or releases its work."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bot.access import Asker
from bot.app import App
from bot.cli.command_context import Services
from bot.desk.desk import Desk
from bot.desk.platform_port import Platform, PlatformError, PlatformUnavailable
from bot.desk.supervisor import exit_in_parallel
from bot.desk.turn_policy import open_desk
from bot.doctor.diagnosis import inspect_home
from bot.platforms.shared.platform_connection import AGAIN_SECONDS, OpenedPlatform, OpenPlatform, PlatformConnections
from bot.server.control.control_server import serve_control
from bot.server.control.control_socket import connect_service, find_socket
from bot.server.lifecycle import serve
from bot.server.monitoring.health import Readiness, build_readiness_checks, watch_readiness
from bot.settings.errors import SettingsError
from bot.settings.tables.settings_tables import Settings
from bot.types import (
    ConversationMessage,
    DeliveryCapabilities,
    IntakeStatus,
    Place,
    PostedMessages,
    ProgressSign,
    Question,
    QuestionState,
)
from bot.views.error_messages import Fault, explain_error
from bot.views.turn_view import View
from bot.wiring import open_app
from ingest.refresh.corpus_refresh import refresh_corpus
from storage.errors import HomeLocked, StorageError
from storage.home.home_folder import lock_home
from storage.indexes.index_state import find_stale_indexes
from storage.types import EntryKind, LogEntry
from tests.bot.doctor.gold import GoldLLM, opens
from tests.bot.fake_services import FakeHome, FakeServices
from tests.fakes import PageSource, WordEmbedder, full_disk
from tests.storage.stores import damage_postings, kept, opened

PLACE = Place("slack", "T1", "C1")
ASKER = Asker("slack", "channel", "T1", "C1", "U1", shared_with_other_organisations=False)


def settings(**changes: Any) -> Settings:
    return Settings(http={"port": 0}, desk={"grace_seconds": 5}, **changes)


def question(number: int) -> Question:
    """Return a question that no document answers."""
    at = datetime(2026, 3, 1, tzinfo=UTC)
    return Question(
        f"slack:T1/C1/{number}", "ask", "When does the quay open?", ASKER, PLACE, f"c{number}", at, str(number)
    )


@dataclass
class Channel:
    """A platform that records its calls and asks as soon as it is connected."""

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
    refusing: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def open(self, app: App, desk: Desk) -> AsyncIterator[OpenedPlatform | None]:
        del app
        self.desk = desk

        async def hook(_: Request) -> Response:
            return PlainTextResponse("heard")

        self.happened.append("opened")
        yield OpenedPlatform(self, (Route("/slack/events", hook, methods=["POST"]),), refused=self.refused)
        self.happened.append("closed")

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        self.happened.append("connected")
        for number in range(self.asks):
            assert await self.desk.take(question(number)) is IntakeStatus.NEW
        self.connected_now.set()
        try:
            yield
        finally:
            self.happened.append("disconnected")

    async def refused(self) -> PlatformError:
        await self.refusing.wait()
        return PlatformError(f"{self.name} refuses the token.")

    async def asker(self, question: Question) -> Asker:
        return question.asker

    def ways(self, question: Question) -> DeliveryCapabilities:
        del question
        return DeliveryCapabilities(pace=0.0)

    async def show(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        self.posting.set()
        if self.slow:
            await asyncio.Event().wait()
        if view.done:
            self.happened.append(f"answered {question.message}")
        return posted or PostedMessages((f"m{question.message}",))

    async def show_sign(self, question: Question, view: View) -> ProgressSign:
        del question, view
        return ProgressSign.NONE

    async def find(self, question: Question) -> PostedMessages:
        del question
        return PostedMessages()

    async def remove(self, question: Question, posted: PostedMessages) -> None:
        raise AssertionError(question, posted)

    async def tell(self, question: Question, text: str) -> None:
        raise AssertionError(question, text)

    async def call(self, place: Place, text: str, people: Sequence[str]) -> PostedMessages:
        assert not people
        self.called.append((place, text))
        return PostedMessages(("m",))

    async def heard(self, question: Question, most: int) -> tuple[ConversationMessage, ...]:
        del question, most
        return ()


@asynccontextmanager
async def _absent(app: App, desk: Desk) -> AsyncIterator[OpenedPlatform | None]:
    del app, desk
    yield None


class Log(logging.Handler):
    """Log lines that a test can wait for."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = list[tuple[str, str]]()
        self._more = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.getMessage(), str(getattr(record, "cause", ""))))
        self._more.set()

    async def until(self, beginning: str) -> str:
        async with asyncio.timeout(60):
            while True:
                matching = [line for line, _ in self.lines if line.startswith(beginning)]
                if matching:
                    return matching[-1]
                self._more.clear()
                await self._more.wait()


@pytest.fixture
def heard() -> Iterator[Log]:
    loggers = [
        logging.getLogger(name)
        for name in ("bot.server.lifecycle", "bot.platforms.shared.platform_connection", "bot.server.monitoring.health")
    ]
    log = Log()
    for logger in loggers:
        logger.setLevel(logging.INFO)
        logger.addHandler(log)
    yield log
    for logger in loggers:
        logger.removeHandler(log)
        logger.setLevel(logging.NOTSET)


async def served(channel: Channel, *, signals: int = 1) -> None:
    """Serve until the channel has asked and posted, then send signals."""
    serving = asyncio.create_task(serve(settings(), {"discord": _absent, "slack": channel.open}))
    async with asyncio.timeout(60):
        for event in (channel.posting, channel.connected_now):
            await asyncio.wait({serving, asyncio.ensure_future(event.wait())}, return_when="FIRST_COMPLETED")
        for _ in range(signals):
            if not serving.done():
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.sleep(0)
        await serving


async def test_stop_ends_events_then_finishes_answers_then_closes() -> None:
    async with open_app(settings()) as app:
        await app.audit.append(LogEntry("left", EntryKind.TURN_OPENED, {"question": "?"}))
    channel = Channel(asks=3)
    await served(channel)

    first, then, *answers, last = channel.happened
    assert (first, then, last) == ("opened", "connected", "closed")
    assert sorted(answers) == ["answered 0", "answered 1", "answered 2", "disconnected"]
    assert find_socket(settings().home) is None
    async with open_app(settings()) as app:
        assert [(await app.queue.get(ticket)).state for ticket in (1, 2, 3)] == [QuestionState.DONE] * 3  # type: ignore[union-attr]
        _, closed = await app.audit.turn("left")
        assert (closed.body["failure"]["kind"], await app.audit.unfinished()) == ("interrupted", ())


async def test_unfinished_turn_waits_for_the_next_start() -> None:
    await served(Channel(slow=True), signals=2)
    async with open_app(settings()) as app:
        row = await app.queue.get(1)
        assert row
        assert row.state == QuestionState.WAITING

    again = Channel(asks=0)
    await served(again)
    assert again.happened.count("answered 0") == 1


async def test_server_is_ready_with_its_platforms_and_serves_their_routes(heard: Log) -> None:
    channel = Channel(ready="Slack does not answer.", asks=0)
    serving = asyncio.create_task(serve(settings(), {"slack": channel.open}))
    line = await heard.until("ready:")
    address = line.removeprefix("ready: ").partition(",")[0]
    async with httpx.AsyncClient() as client:
        ready = await client.get(address + "/readyz")
        hooked = await client.post(address + "/slack/events")
    os.kill(os.getpid(), signal.SIGTERM)
    await serving

    assert (ready.status_code, ready.json()["reasons"].keys()) == (503, {"documents", "slack"})
    assert ready.json()["reasons"]["slack"] == "Slack does not answer."
    assert hooked.text == "heard"
    assert line.endswith("; connected to slack; no nightly refresh is set")


async def test_refusing_platform_ends_the_server_and_closes_everything() -> None:
    @asynccontextmanager
    async def refusing(app: App, desk: Desk) -> AsyncIterator[OpenedPlatform | None]:
        del app, desk
        raise PlatformError("Slack refuses the token.", hint="Look at SLACK_BOT_TOKEN.")
        yield

    opener: OpenPlatform = refusing
    with pytest.raises(PlatformError) as caught:
        await serve(settings(), {"slack": opener})

    assert explain_error(caught.value) == Fault("platform", "Slack refuses the token.", "Look at SLACK_BOT_TOKEN.")
    async with open_app(settings()):
        assert find_socket(settings().home) is None


async def test_refusal_after_the_start_ends_the_server_without_other_platforms(heard: Log) -> None:
    slack, discord = Channel(asks=0), Channel(asks=0, name="discord")
    openers = {"slack": slack.open, "discord": discord.open, "absent": _absent}
    serving = asyncio.create_task(serve(settings(), openers))
    await heard.until("ready:")
    discord.refusing.set()
    await heard.until("discord refuses the bot")
    assert "disconnected" not in [*discord.happened, *slack.happened]
    slack.refusing.set()
    with pytest.raises(PlatformError, match="slack refuses the token"):
        await asyncio.wait_for(serving, 60)


async def test_system_without_its_model_is_not_ready() -> None:
    channel = Channel(asks=0)
    reasons = dict[str, str]()

    @asynccontextmanager
    async def asked(app: App, desk: Desk) -> AsyncIterator[OpenedPlatform | None]:
        del desk
        reasons.update({name: await check() for name, check in build_readiness_checks(app, {"slack": channel}).items()})
        raise PlatformError("enough")
        yield

    with pytest.raises(PlatformError, match="enough"):
        await serve(settings(system="wikichat", corpus=[{"name": "travel"}]), {"slack": asked})

    assert {name for name, reason in reasons.items() if reason} == {"documents", "corpora", "model"}
    assert reasons["corpora"].startswith("travel: ")
    assert "wikichat" in reasons["model"]
    assert "Nothing is ingested" in reasons["documents"]


def hang_up() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@dataclass
class Late:
    """A platform that is unreachable at first, or never responds."""

    channel: Channel
    failing: int = 1
    silent: bool = False
    tried: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def open(self, app: App, desk: Desk) -> AsyncIterator[OpenedPlatform | None]:
        self.tried.set()
        if self.silent:
            await asyncio.Event().wait()
        if self.failing:
            self.failing -= 1
            raise PlatformUnavailable("Slack cannot be reached for auth.test.", seconds=5.0)
        async with self.channel.open(app, desk) as opened:
            yield opened


async def test_unreachable_platform_leaves_the_rest_running(heard: Log) -> None:
    late = Late(Channel(asks=0), failing=99)
    serving = asyncio.create_task(serve(settings(), {"slack": late.open}))
    line = await heard.until("ready:")
    async with httpx.AsyncClient() as client, connect_service(settings().home) as home:
        ready = await client.get(line.removeprefix("ready: ").partition(",")[0] + "/readyz")
        assert home
        assert await home.corpora() == ()
    hang_up()
    async with asyncio.timeout(60):
        await serving

    assert "; waiting for slack;" in line
    assert ready.json()["reasons"].keys() == {"documents", "slack"}
    assert ready.json()["reasons"]["slack"] == "Slack cannot be reached for auth.test."
    assert ("cannot reach slack; retrying", "Slack cannot be reached for auth.test.") in heard.lines


async def test_server_stops_while_a_platform_does_not_respond(heard: Log) -> None:
    late = Late(Channel(), silent=True)
    serving = asyncio.create_task(serve(settings(), {"slack": late.open}))
    async with asyncio.timeout(60):
        await late.tried.wait()
    hang_up()
    async with asyncio.timeout(60):
        await serving

    assert heard.lines[-1][0] == "stopped"


async def test_pending_questions_are_answered_once_their_platform_connects() -> None:
    await served(Channel(slow=True), signals=2)
    channel, slept = Channel(asks=0), list[float]()
    async with open_app(settings()) as app:
        platforms = dict[str, Platform]()
        desk = open_desk(app, platforms)
        arrivals = PlatformConnections(app, desk, {"slack": Late(channel).open})

        async def arrived(opened: OpenedPlatform) -> None:
            platforms[opened.platform.name] = opened.platform
            await desk.resume_questions()

        async def sleep(seconds: float) -> None:
            slept.append(seconds)

        async with arrivals.kept(), desk.running(), arrivals.arriving(arrived, sleep=sleep), asyncio.timeout(60):
            await channel.connected_now.wait()

    assert slept == [AGAIN_SECONDS]
    assert channel.happened.count("answered 0") == 1
    assert channel.happened[-1] == "closed"


async def test_missing_platform_secret_prevents_the_start() -> None:
    with pytest.raises(SettingsError, match="needs SLACK_APP_TOKEN"):
        await serve(settings(slack={"bot_token": "xoxb-x"}), {})


async def test_readiness_reason_is_logged_once_until_it_changes() -> None:
    """Reasons that last for one check, such as an unopened socket at the start, are not logged."""
    none, full = {"model": "None."}, {"disk": "Full."}
    reasons_in_order = [{"slack": "Not open."} | none, none, none, {}, {"slack": "Not open."}, full, {}, full, full]
    heard, looks = Log(), asyncio.Event()
    logger = logging.getLogger("bot.server.monitoring.health")
    logger.addHandler(heard)
    logger.setLevel(logging.INFO)

    class Looked:
        async def reasons(self) -> dict[str, str]:
            return reasons_in_order.pop(0)

    async def sleep(_: float) -> None:
        if not reasons_in_order:
            looks.set()
            await asyncio.Event().wait()

    async with watch_readiness(Looked(), sleep=sleep):
        await looks.wait()
    logger.removeHandler(heard)

    assert heard.lines == [("degraded: model", "None."), ("ready again: model", ""), ("not ready: disk", "Full.")]


async def test_missing_or_unwritable_database_is_not_ready(tmp_path: Path) -> None:
    async with open_app(settings()) as app:
        database, file = build_readiness_checks(app, {})["database"], settings().home / "footnote.db"
        assert await database() == ""
        file.rename(tmp_path / "elsewhere.db")
        assert "no longer the file" in await database()
        (tmp_path / "elsewhere.db").rename(file)
        assert await database() == ""
        with full_disk(1), pytest.raises(StorageError):
            await database()


async def test_unsearchable_index_is_not_ready() -> None:
    """A damaged index can still be opened and counted, so `/readyz` and the doctor search it."""
    home, rings = settings().home, "The bell of Skarholm rings at ten."
    for broken in (False, True):
        with opened(home) as store:
            await refresh_corpus(PageSource({"bell": {"": rings}}), "handbook", store, progress=lambda _: None)
            checks = build_readiness_checks(App(settings(), store, **kept(store)), {})
            reasons = await Readiness({"index": checks["index"]}, str).reasons()
            assert [*reasons] == ["index"] * broken
        if not broken:
            damage_postings(home / "lexical", "handbook", rings)
    looked = await inspect_home(settings(), opens(GoldLLM()))

    assert "`footnote reindex`" in reasons["index"]
    assert looked.probe == rings
    faults = find_stale_indexes(home, home / "chroma", WordEmbedder(), looked.corpora or (), looked.probe)
    assert "is damaged" in faults[0]


async def test_context_managers_exit_concurrently() -> None:
    waiting, happened = asyncio.Barrier(2), list[str]()

    @asynccontextmanager
    async def block(name: str) -> AsyncIterator[str]:
        try:
            yield name
        finally:
            await waiting.wait()
            happened.append(name)

    async with asyncio.timeout(60):
        async with exit_in_parallel(block("a"), block("b")) as given:
            assert given == ("a", "b")

    assert sorted(happened) == ["a", "b"]


OWNER = '{"pid": 7, "command": "footnote %s", "since": "2026-11-22T10:00:00+00:00"}'


async def test_command_waits_for_a_server_that_just_locked_the_home() -> None:
    """Between the lock and the socket, the home would be reported as in use."""
    home = settings().home
    with lock_home(home):
        (home / "lock.owner").write_text(OWNER % "serve", encoding="utf-8")
        opening = asyncio.create_task(_opened())
        done, _ = await asyncio.wait({opening}, timeout=0.3)
        assert not done
        async with serve_control(FakeHome(FakeServices()), home, grace=1), asyncio.timeout(60):
            assert await opening == FakeServices().corpora
        (home / "lock.owner").write_text(OWNER % "ingest", encoding="utf-8")
        with pytest.raises(HomeLocked):
            await _opened()


async def test_command_closes_turns_left_open_by_a_killed_one() -> None:
    async with open_app(settings()) as app:
        await app.audit.append(LogEntry("cut", EntryKind.TURN_OPENED, {"question": "?"}))
    await _opened()

    async with open_app(settings()) as app:
        assert (await app.audit.turn("cut"))[-1].body["failure"]["kind"] == "interrupted"


async def _opened() -> Sequence[Any]:
    async with Services().open_home(settings()) as home:
        return await home.corpora()
