"""How Slack's events arrive: signed requests, sockets that fall silent, acknowledgements, and logs."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.platforms.slack.transport import DEAF_SECONDS, PATH, SocketWatch
from bot.types import log
from bot.views.catalog import translate
from pipeline.kit import Kit
from pipeline.systems import extractive
from pipeline.types import Conversation, Status
from storage.errors import StorageError
from tests.platforms.bots import Bot, bot_in, eventually
from tests.platforms.clock import ManualClock
from tests.platforms.example_app import ANSWERS, BUILT, MADE
from tests.platforms.fake_server import UNAVAILABLE
from tests.platforms.slack.events import callback
from tests.platforms.slack.request_url import FORGERIES, signed
from tests.platforms.slack.state import SIGNING_SECRET
from tests.platforms.slack.workspace import workspaces
from tests.thorough import THOROUGH

AT_ONCE, AT_MODEL, MODEL_SECONDS = 40, 100 if THOROUGH else 40, 20
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@pytest.fixture
async def socket(filled: Path, tmp_path: Path) -> AsyncIterator[Bot]:
    async with bot_in(workspaces()(), filled, tmp_path / "home", every=False) as opened:
        yield opened


@pytest.fixture
async def http(filled: Path, tmp_path: Path) -> AsyncIterator[Bot]:
    async with bot_in(workspaces(http=True)(), filled, tmp_path / "home", every=False) as opened:
        yield opened


def asking(talk: Bot, ts: str, text: str = BUILT) -> str:
    """Return the body of a mention."""
    event = {
        "type": "app_mention",
        "channel": "C1",
        "user": "U1",
        "ts": ts,
        "text": f"<@U0BOT> {text}",
    }
    return json.dumps(callback(event, talk.server.state))


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_forged_request_has_no_effect(http: Bot, forgery: str, caplog: Any) -> None:
    await http.start()
    body = asking(http, "1700000000.000001", "MARKED WORDS")
    with caplog.at_level(logging.DEBUG):
        status, _ = await http.server.requests.post(
            body, FORGERIES[forgery](SIGNING_SECRET, body) | {"Content-Type": "application/json"}
        )

    assert status == 401
    assert http.system.asked == []
    assert "MARKED WORDS" not in caplog.text


async def test_signed_requests_and_url_verification_are_answered(http: Bot) -> None:
    await http.start()
    assert http.server.requests.url.endswith(PATH)
    kind = {"Content-Type": "application/json"}
    challenge = json.dumps({"type": "url_verification", "token": "x", "challenge": "abc"})
    found = await http.server.requests.post(challenge, signed(SIGNING_SECRET, challenge) | kind)
    body = asking(http, await http.people.mention(BUILT, silent=True))
    status, _ = await http.server.requests.post(body, signed(SIGNING_SECRET, body) | kind)
    await http.system.until_asked()

    assert found == (200, {"challenge": "abc"})
    assert status == 200
    for odd in ("{", "[]", "null", "3", '"x"', "[" * 50_000, '{"authorizations": 3}', '{"enterprise": 3}'):
        assert await http.server.requests.post(odd, signed(SIGNING_SECRET, odd) | kind) == (400, "")


async def test_silent_socket_is_replaced(socket: Bot) -> None:
    clock = ManualClock(0.0)
    socket.workspace.options["watch"] = SocketWatch(clock.now, clock.sleep)
    await socket.start()
    (link,) = socket.server.sockets.links
    link.deaf = "mute"
    asked = await socket.people.mention(BUILT)
    await clock.advance(DEAF_SECONDS - 30)
    assert socket.server.sockets.made == 1
    await clock.advance(60)
    await socket.server.until(lambda: socket.server.sockets.made == 2)
    await eventually(lambda: not socket.platform or not socket.platform.ready)
    await socket.server.until(lambda: any(link.number == 1 for link in socket.server.sockets.links))
    socket.server.courier.redeliver()
    await socket.until(ANSWERS[BUILT])

    assert len(socket.people.answers(asked)) == 1


async def test_bolt_silences_no_logger_of_the_bot(socket: Bot) -> None:
    own = (log, logging.getLogger("footnote"), logging.getLogger("bot"))
    await socket.start()
    await socket.people.mention(BUILT)
    await socket.until(ANSWERS[BUILT])

    assert [one.level for one in own[:2]] == [logging.NOTSET] * 2
    assert all(one.isEnabledFor(logging.WARNING) for one in own)


@pytest.mark.parametrize("how", ["", "cut", "warning"])
async def test_shutdown_during_events_logs_nothing(socket: Bot, caplog: Any, how: str) -> None:
    with caplog.at_level(logging.WARNING):
        await socket.start()
        await socket.people.mention(BUILT)
        await socket.until(ANSWERS[BUILT])
        leaving = asyncio.create_task(socket.stop())
        for number in range(20):
            await socket.people.mention(f"{MADE} {number}")
            await asyncio.sleep(0)
        if how == "cut":
            await socket.server.sockets.cut()
        elif how:
            await socket.server.sockets.disconnect(how)
        await leaving

    assert caplog.text == ""


async def test_unavailable_slack_is_retried_at_the_start(socket: Bot) -> None:
    socket.server.faults["apps.connections.open"] += [UNAVAILABLE, UNAVAILABLE]
    await socket.start()
    await socket.people.mention(BUILT)

    await socket.until(ANSWERS[BUILT])


async def test_closed_socket_is_replaced(socket: Bot) -> None:
    await socket.start()
    await socket.server.sockets.disconnect()
    await socket.server.until(lambda: any(link.number for link in socket.server.sockets.links))
    await socket.people.mention(BUILT)

    await socket.until(ANSWERS[BUILT])


@pytest.mark.parametrize("mode", ["socket", "http"])
async def test_events_are_acknowledged_under_load(mode: Any, filled: Path, tmp_path: Path) -> None:
    async with bot_in(workspaces(http=mode == "http", speed=1)(), filled, tmp_path / "home", every=False) as talk:
        texts = [f"{BUILT} {number}" for number in range(2 * AT_ONCE)]
        talk.system.shut |= set(texts)
        await talk.start(desk={"at_once": AT_ONCE, "per_channel": AT_ONCE, "grace_seconds": 0})
        for text in texts[:AT_ONCE]:
            await talk.people.mention(text)
        await talk.workspace.settled()
        before = len(talk.server.courier.done)
        for text in texts[AT_ONCE:]:
            await talk.people.mention(text)
            await talk.workspace.settled()
        assert talk.server.courier.lost == []
        assert len(talk.server.courier.done) >= before + 2 * AT_ONCE
        assert talk.app
        assert await talk.app.queue.asked(since=LONG_AGO) == 2 * AT_ONCE


async def test_many_questions_at_once_are_answered_within_the_limits(filled: Path, tmp_path: Path) -> None:
    async with bot_in(workspaces()(), filled, tmp_path / "home", every=False) as bot:
        bot.system.inner = _slow(bot)
        await bot.start(desk={"at_once": AT_MODEL, "per_channel": AT_MODEL})
        asked = [
            await bot.people.mention(BUILT, user=f"U{number % 3 + 1}", channel=f"C{number % 3 + 1}")
            for number in range(AT_MODEL)
        ]
        await bot.server.until(lambda: all(_whole(bot, one) for one in asked), seconds=60)
        await bot.workspace.settled()
        streamed = len(bot.server.calls("chat.startStream"))
        assert bot.server.refused == bot.server.courier.lost == []
        assert all(len(bot.people.answers(one)) == 1 for one in asked)
        assert streamed > 0


def _slow(bot: Bot) -> Any:
    async def answer(conversation: Conversation, kit: Kit) -> Status:
        await bot.server.clock.sleep(MODEL_SECONDS)
        return await extractive.answer(conversation, kit)

    return answer


def _whole(bot: Bot, asked: str) -> bool:
    """Return whether an answer has its buttons."""
    shown = [f"{one.text} {one.blocks}" for one in bot.people.answers(asked)]
    return any(ANSWERS[BUILT] in one and "footnote:evidence" in one for one in shown)


class Broken:
    """A queue that keeps nothing, as long as it is broken."""

    def __init__(self, queue: Any) -> None:
        self._queue, self.broken = queue, True

    def __getattr__(self, name: str) -> Any:
        if self.broken and name in {"put", "conversation"}:
            return self._fail
        return getattr(self._queue, name)

    async def _fail(self, *_: Any, **__: Any) -> None:
        raise StorageError("The disk is full.")


async def test_storage_error_of_a_question_is_reported_once(socket: Bot) -> None:
    await _started_broken(socket)
    await socket.people.mention(BUILT)
    await socket.until(translate("unrecorded", "en"))

    assert socket.sees().count(translate("unrecorded", "en")) == 1
    assert "Footnote" not in socket.sees(by="U2")
    assert socket.server.courier.lost == []


async def test_storage_error_of_a_follow_up_makes_slack_deliver_it_again(socket: Bot) -> None:
    queue = await _started_broken(socket)
    root = await socket.people.mention(BUILT, silent=True)
    await socket.people.say(MADE, thread=root)
    await socket.server.until(lambda: socket.server.courier.unacked and socket.server.courier.unacked[0].attempt)
    queue.broken = False
    socket.server.courier.redeliver()
    await socket.workspace.settled()

    assert socket.server.courier.lost == []


async def _started_broken(talk: Bot) -> Broken:
    """Start a bot whose queue is broken."""
    talk.wrapping["queue"] = Broken
    await talk.start()
    broken: Broken = talk.app.queue
    return broken
