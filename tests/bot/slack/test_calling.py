"""Calls of Slack's Web API: the meaning of failures, retries, and secrets that stay secret."""

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
from tests.bot.slack.adapter import SlackAdapter
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
    error = await explain(code, status, "7")

    assert type(error) is expected
    assert "\n" not in str(error)
    if isinstance(error, PlatformUnavailable):
        sure = {"ratelimited": 7.0, "": 1.0 if status == 403 else None}
        assert error.seconds == sure.get(code)


async def test_malformed_error_code_and_retry_after_are_ignored() -> None:
    assert "xoxb" not in str(await explain("xoxb-1 Token!", 200))
    assert (await explain("ratelimited", 429, "soon")).seconds == 5
    assert (await explain("ratelimited", 429, "2.5")).seconds == 2.5


@pytest.mark.parametrize("fault", [BROKEN, RESET, refused("internal_error")])
async def test_update_is_repeated_and_a_post_is_not(adapter: SlackAdapter, fault: Fault) -> None:
    ts = await adapter.post()
    adapter.slack.faults |= {"chat.update": [fault] * 3, "chat.postMessage": [fault]}
    await adapter.call(UPDATE, {"channel": "C1", "ts": ts, "text": "Two"})

    assert adapter.slack.people.find(ts).text == "Two"
    with pytest.raises(PlatformUnavailable) as caught:
        await adapter.post("Three")
    assert caught.value.seconds is None
    assert adapter.slack.posts == 1


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
async def test_reply_not_from_slack_leaves_a_post_in_doubt(adapter: SlackAdapter, form: str, text: str) -> None:
    ts = await adapter.post()
    odd, command = Fault(200, page=True, form=form, text=text), await adapter.slack.people.command("/ask", "When?")
    adapter.slack.faults |= {"chat.update": [odd], "chat.postMessage": [odd], "response_url": [odd]}
    await adapter.call(UPDATE, {"channel": "C1", "ts": ts, "text": "Two"})

    assert adapter.slack.people.find(ts).text == "Two"
    posts = (
        adapter.post("Three"),
        adapter.call.respond(command.payload["response_url"], {}),
    )
    for post in posts:
        with pytest.raises(PlatformUnavailable) as caught:
            await post
        assert caught.value.seconds is None


async def test_rate_limited_method_waits_as_long_as_slack_says(adapter: SlackAdapter) -> None:
    adapter.slack.faults["chat.postMessage"] = [Fault(429, retry_after=30)] * 2
    began = adapter.clock.now()
    with pytest.raises(PlatformUnavailable) as caught:
        await adapter.post(patience=5)
    assert caught.value.seconds == 30
    with pytest.raises(PlatformUnavailable, match="Too many calls are waiting"):
        await adapter.post(patience=5)
    assert len(adapter.slack.calls("chat.postMessage")) == 1
    await adapter.clock.advance(30)
    await adapter.post()
    assert adapter.clock.now() - began == pytest.approx(60)
    assert adapter.slack.posts == 1


async def test_connection_error_means_that_nothing_was_sent(adapter: SlackAdapter) -> None:
    async with open_api(BOT_TOKEN, "http://127.0.0.1:1/api/", Lanes(adapter.clock.now, adapter.clock.advance)) as call:
        tries = (
            call(POST, {"channel": "C1", "text": "One"}, channel="C1"),
            call.respond("http://127.0.0.1:1/hook/FAKEHOOKNEVERLOGGED", {"text": "One"}),
        )
        for attempt in tries:
            with pytest.raises(PlatformUnavailable, match="cannot be reached") as caught:
                await attempt
            assert caught.value.seconds is not None


async def test_calls_share_one_connection() -> None:
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
async def test_refused_token_leaves_nothing_posted_and_nothing_in_doubt(adapter: SlackAdapter, code: str) -> None:
    question = await adapter.ask()
    adapter.slack.faults["chat.postMessage"] = [refused(code)]
    with pytest.raises(AccessDenied) as caught:
        await adapter.platform.show(question, FINAL, PostedMessages())
    assert isinstance(caught.value, PlatformUnavailable)
    assert caught.value.seconds is not None
    assert caught.value.hint

    await adapter.show(question, FINAL)
    adapter.check_shown(question, FINAL)


async def test_errors_and_logs_contain_no_secret(adapter: SlackAdapter, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    form = (await adapter.slack.people.command("/ask", "When?")).payload
    adapter.slack.faults |= {"auth.test": [refused("invalid_auth")], "response_url": [BROKEN, LIMITED]}
    said = list[str]()
    for call in (
        adapter.call(WHO_WE_ARE),
        adapter.call.respond(form["response_url"], {"text": "One"}),
        adapter.call.respond(form["response_url"], {"text": "One"}),
        adapter.call.respond(f"{form['response_url']}x", {"text": "One"}),
    ):
        with pytest.raises(PlatformError) as caught:
            await call
        said += [str(caught.value), caught.value.hint]
    await adapter.post()

    assert not [secret for secret in SECRETS for text in (*said, caplog.text) if secret in text]
