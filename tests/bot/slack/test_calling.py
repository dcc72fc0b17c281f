"""Calls of Slack's Web API: what failures mean, what is repeated, and that no secret is told."""

import asyncio
import logging
from contextlib import suppress
from typing import Any

import pytest

from bot.desk.platform_port import (
    AccessDenied,
    ContentRefused,
    PlatformError,
    PlatformUnavailable,
    PostGone,
    RateLimited,
)
from bot.platforms.shared.api_client import RequestRefused
from bot.platforms.shared.rate_limit import Lanes, Reply
from bot.platforms.slack.client import POST, UPDATE, WHO_WE_ARE, StreamClosed, open_api
from bot.types import PostedMessages
from tests.bot.slack.shop import Shop
from tests.bot.views.moments import FINAL
from tests.platforms.fake_server import BROKEN, LIMITED, RESET, Fault, refused
from tests.platforms.slack.state import BOT_TOKEN, SECRETS


async def explain(code: str, status: int, wait: str = "") -> Any:
    body = {"ok": False, "error": code} if code else None
    async with open_api("xoxb-1", "https://slack.com/api/") as call:
        return call.api.explain(UPDATE, Reply(status, {"Retry-After": wait}, body))


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("is_archived", 200, RequestRefused),
        ("invalid_blocks", 200, ContentRefused),
        ("message_not_found", 200, PostGone),
        ("message_not_in_streaming_state", 200, StreamClosed),
        ("stopped_by_user", 200, StreamClosed),
        ("streaming_state_conflict", 200, StreamClosed),
        ("internal_error", 200, PlatformUnavailable),
        ("", 502, PlatformUnavailable),
        ("", 200, PlatformUnavailable),
        ("", 403, PlatformUnavailable),
        ("", 408, PlatformUnavailable),
        ("ratelimited", 429, RateLimited),
        ("ratelimited", 200, RateLimited),
    ],
)
async def test_refusal_is_explained_by_its_code(code: str, status: int, expected: type[PlatformError]) -> None:
    """By its code; its words are one plain line."""
    error = await explain(code, status, "7")

    assert type(error) is expected
    assert "\n" not in str(error)
    if isinstance(error, PlatformUnavailable):
        sure = {"ratelimited": 7.0, "": 1.0 if status == 403 else None}
        assert error.seconds == sure.get(code)


async def test_strange_code_and_wait_are_not_repeated() -> None:
    assert "xoxb" not in str(await explain("xoxb-1 Token!", 200))
    assert (await explain("ratelimited", 429, "soon")).seconds == 5
    assert (await explain("ratelimited", 429, "2.5")).seconds == 2.5


@pytest.mark.parametrize("fault", [BROKEN, RESET, refused("internal_error")])
async def test_what_sets_something_is_repeated_and_a_post_is_not(shop: Shop, fault: Fault) -> None:
    """An update that arrived twice is one; a post would stand there twice."""
    ts = await shop.post()
    shop.slack.faults |= {"chat.update": [fault] * 3, "chat.postMessage": [fault]}
    await shop.call(UPDATE, {"channel": "C1", "ts": ts, "text": "Two"})

    assert shop.slack.people.find(ts).text == "Two"
    with pytest.raises(PlatformUnavailable) as caught:
        await shop.post("Three")
    assert caught.value.seconds is None
    assert shop.slack.posts == 1


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("text/html", "<p>"),
        ("text/plain", "OK"),
        ("application/json", "[1]"),
        ("application/json", '"maintenance"'),
        ("application/json", "null"),
        ("application/json", '{"ok": "\xff"}'),
        ("application/gzip", "OK"),
    ],
)
async def test_what_is_no_reply_of_slacks_is_in_doubt(shop: Shop, form: str, text: str) -> None:
    """Whatever form it has, and whatever the SDK makes of it; what may be repeated is, and then it is done."""
    ts = await shop.post()
    odd, command = Fault(200, page=True, form=form, text=text), await shop.slack.people.command("/ask", "When?")
    shop.slack.faults |= {"chat.update": [odd], "chat.postMessage": [odd], "response_url": [odd]}
    await shop.call(UPDATE, {"channel": "C1", "ts": ts, "text": "Two"})

    assert shop.slack.people.find(ts).text == "Two"
    posts = (
        shop.post("Three"),
        shop.call.respond(command.payload["response_url"], {}),
    )
    for post in posts:
        with pytest.raises(PlatformUnavailable) as caught:
            await post
        assert caught.value.seconds is None


async def test_a_429_is_waited_for(shop: Shop) -> None:
    """For as long as Slack says; who has no patience is told how long, and nobody calls meanwhile."""
    shop.slack.faults["chat.postMessage"] = [Fault(429, retry_after=30)] * 2
    began = shop.clock.now()
    with pytest.raises(PlatformUnavailable) as caught:
        await shop.post(patience=5)
    assert caught.value.seconds == 30
    with pytest.raises(PlatformUnavailable, match="Too much is going on"):
        await shop.post(patience=5)
    assert len(shop.slack.calls("chat.postMessage")) == 1
    await shop.clock.advance(30)
    await shop.post()
    assert shop.clock.now() - began == pytest.approx(60)
    assert shop.slack.posts == 1


async def test_what_never_left_may_be_tried_again(shop: Shop) -> None:
    """Where nobody listens nothing was done, and a post may be made again."""
    async with open_api(BOT_TOKEN, "http://127.0.0.1:1/api/", Lanes(shop.clock.now, shop.clock.advance)) as call:
        tries = (
            call(POST, {"channel": "C1", "text": "One"}, channel="C1"),
            call.respond("http://127.0.0.1:1/hook/FAKEHOOKNEVERLOGGED", {"text": "One"}),
        )
        for attempt in tries:
            with pytest.raises(PlatformUnavailable, match="cannot be reached") as caught:
                await attempt
            assert caught.value.seconds is not None


async def test_calls_go_over_a_connection_that_is_kept() -> None:
    """To open one takes longer than most calls."""
    opened = list[asyncio.StreamWriter]()

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        with suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n")
                writer.write(b'{"ok":true}')
        writer.close()

    async with await asyncio.start_server(reply, "127.0.0.1") as server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/api/"
        async with open_api(BOT_TOKEN, address) as call:
            assert [await call(WHO_WE_ARE) for _ in range(3)] == [{"ok": True}] * 3
        assert len(opened) == 1


@pytest.mark.parametrize("code", ["token_revoked", "account_inactive", "invalid_auth", "not_authed", "token_expired"])
async def test_what_a_refused_token_keeps_from_being_posted_is_posted_with_a_new_one(shop: Shop, code: str) -> None:
    """It is certain that nothing was posted, and it is no refusal for good."""
    asked = await shop.asked()
    shop.slack.faults["chat.postMessage"] = [refused(code)]
    with pytest.raises(AccessDenied) as caught:
        await shop.platform.show(asked, FINAL, PostedMessages())
    assert isinstance(caught.value, PlatformUnavailable)
    assert caught.value.seconds is not None
    assert caught.value.hint

    await shop.shown(asked, FINAL)
    shop.whole(asked, FINAL)


async def test_no_secret_is_told(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """Neither in errors nor in logs, however much is logged."""
    caplog.set_level(logging.DEBUG)
    form = (await shop.slack.people.command("/ask", "When?")).payload
    shop.slack.faults |= {"auth.test": [refused("invalid_auth")], "response_url": [BROKEN, LIMITED]}
    said = list[str]()
    for call in (
        shop.call(WHO_WE_ARE),
        shop.call.respond(form["response_url"], {"text": "One"}),
        shop.call.respond(form["response_url"], {"text": "One"}),
        shop.call.respond(f"{form['response_url']}x", {"text": "One"}),
    ):
        with pytest.raises(PlatformError) as caught:
            await call
        said += [str(caught.value), caught.value.hint]
    await shop.post()

    assert not [secret for secret in SECRETS for text in (*said, caplog.text) if secret in text]
