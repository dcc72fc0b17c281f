"""Calls of Discord's API: within its rate limits, repeated only if nothing can be done twice, with clear errors."""

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.desk.platform_port import (
    AccessDenied,
    ContentRefused,
    PlatformError,
    PlatformUnavailable,
    PostGone,
)
from bot.platforms.discord import client
from bot.platforms.discord.client import (
    ChannelUnavailable,
    DiscordRateLimit,
    InteractionExpired,
    open_api,
)
from bot.platforms.discord.interactions import InteractionToken, is_token_valid, parse_token
from bot.platforms.shared.api_client import RequestRefused
from bot.platforms.shared.rate_limit import Busy, Reply
from tests.bot.discord.adapter import DiscordAdapter
from tests.platforms.clock import ManualClock
from tests.platforms.discord.state import APP, BOT_TOKEN, SECRETS
from tests.platforms.fake_server import BANNED, BROKEN, LIMITED, LIMITED_EVERYWHERE, LOST, RESET, Fault

ONE = {"X-RateLimit-Limit": "5", "X-RateLimit-Bucket": "b"}


def post(adapter: DiscordAdapter, text: str = "hello", **more: Any) -> Any:
    return adapter.call(client.POST, {"content": text, **more}, channel="201")


@pytest.mark.parametrize("fault", [LIMITED, LIMITED_EVERYWHERE])
async def test_rate_limited_post_is_repeated_after_the_wait(adapter: DiscordAdapter, fault: Any) -> None:
    adapter.discord.faults["create_message"] = [fault]
    before = adapter.clock.now()
    await post(adapter)
    assert adapter.clock.now() - before == pytest.approx(fault.retry_after)
    assert adapter.discord.posts == 1


async def test_global_rate_limit_delays_calls_on_every_route(adapter: DiscordAdapter) -> None:
    adapter.discord.faults["create_message"] = [LIMITED_EVERYWHERE]
    await post(adapter)
    adapter.call.pacing.hold(client.POST, {"channel": "201"}, 60, Reply(429))
    assert not adapter.call.pacing.spare(client.EDIT, {"channel": "202"})
    assert adapter.call.pacing.spare(client.EDIT_REPLY, {"application": APP, "token": "t"})


async def test_many_concurrent_calls_stay_within_discords_rate_limits(adapter: DiscordAdapter) -> None:
    calls = [
        adapter.call(client.POST, {"content": str(n)}, channel=f"20{1 + n % 3}", patience=600.0) for n in range(30)
    ]
    calls += [adapter.call(client.READ_ONE, channel="201", message="5", patience=600.0) for _ in range(30)]
    calls += [adapter.call(client.ME, patience=600.0) for _ in range(100)]
    done = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(one, PostGone) for one in done) == 30
    assert adapter.discord.posts == 30
    assert len(adapter.discord.limited) < 16  # a clock that jumps meanwhile lets calls of two moments arrive in one


async def test_post_with_a_nonce_is_repeated(adapter: DiscordAdapter) -> None:
    adapter.discord.faults["create_message"] = [LOST, BROKEN, RESET]
    await post(adapter, nonce="n", enforce_nonce=True)
    assert adapter.discord.posts == 1


async def test_follow_up_message_is_not_repeated_after_a_lost_reply(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke()
    handle = parse_token(question.handle)
    assert handle
    adapter.discord.faults["follow_up"] = [LOST]
    with pytest.raises(PlatformUnavailable) as error:
        await adapter.call(client.FOLLOW_UP, {"content": "hello"}, **handle.ids)
    assert error.value.seconds is None
    assert len(adapter.discord.calls("follow_up")) == 1


async def test_banned_address_stops_all_calls(adapter: DiscordAdapter) -> None:
    adapter.discord.faults["create_message"] = [BANNED]
    with pytest.raises(PlatformUnavailable) as error:
        await post(adapter)
    assert error.value.seconds == 3_600.0
    with pytest.raises(PlatformUnavailable):
        await adapter.call(client.ME)
    assert len(adapter.discord.received) == 1


async def test_connection_error_means_that_nothing_was_sent() -> None:
    clock = ManualClock(0.0)
    async with open_api(BOT_TOKEN, "http://127.0.0.1:1/api", DiscordRateLimit(clock.now, clock.advance)) as call:
        with pytest.raises(PlatformUnavailable) as error:
            await call(client.ME)
    assert error.value.seconds is not None


async def test_invalid_token_raises_access_denied_with_a_hint(adapter: DiscordAdapter) -> None:
    await adapter.discord.people.revoke()
    with pytest.raises(AccessDenied) as error:
        await post(adapter)
    assert error.value.seconds
    assert "token" in error.value.hint
    assert not any(secret in f"{error.value}{error.value.hint}{error.value.__cause__}" for secret in SECRETS)


async def test_logs_contain_no_token(adapter: DiscordAdapter, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    question = await adapter.invoke()
    handle = parse_token(question.handle)
    assert handle
    adapter.discord.faults["edit_response"] = [LIMITED, BROKEN, RESET]
    await adapter.call(client.EDIT_REPLY, {"content": "hello"}, message="@original", **handle.ids)
    assert not any(secret in caplog.text for secret in SECRETS)


async def explain(status: int, body: Any, wait: str = "") -> Any:
    async with open_api(BOT_TOKEN, "") as call:
        return call.api.explain("POST /x", Reply(status, {"Retry-After": wait} if wait else {}, body))


async def test_refused_call_raises_the_error_of_its_code_and_status() -> None:
    kinds = {
        10008: PostGone,
        10003: ChannelUnavailable,
        10015: InteractionExpired,
        50027: InteractionExpired,
        50001: RequestRefused,
        7: RequestRefused,
    }
    for code, kind in kinds.items():
        error = await explain(404, {"code": code, "message": "secret"})
        assert type(error) is kind
        assert "secret" not in str(error)
    assert type(await explain(400, {"code": 0})) is RequestRefused
    assert isinstance(await explain(400, {"code": 50035}), ContentRefused)


@pytest.mark.parametrize(
    ("status", "body", "sure"),
    [
        *((status, None, False) for status in (302, 408, 500, 502, 503)),
        *((status, None, True) for status in (400, 401, 403, 404, 407)),
        (404, {"message": "no Route matched with those values"}, True),
        (404, {"message": "404: Not Found", "code": 0}, True),
        (403, {"message": "temporarily disabled", "code": 40004}, True),
    ],
)
async def test_refusal_not_from_discord_is_retried(status: int, body: Any, *, sure: bool) -> None:
    error = await explain(status, body)
    assert isinstance(error, PlatformUnavailable)
    assert (error.seconds is not None) is sure


async def test_reply_not_from_discord_repeats_the_post(adapter: DiscordAdapter) -> None:
    adapter.discord.faults["create_message"] = [Fault(200, done=True), Fault(200)]
    assert (await post(adapter, nonce="n", enforce_nonce=True))["content"] == "hello"
    assert adapter.discord.posts == 1


@given(
    status=st.sampled_from([400, 401, 403, 404, 429, 500]),
    body=st.none()
    | st.text()
    | st.dictionaries(
        st.sampled_from(["code", "retry_after", "global"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    ),
    retry=st.text() | st.sampled_from(["1", "nan", "inf", "-1", "1e9"]),
)
async def test_any_error_reply_becomes_a_platform_error_with_a_wait_of_at_most_an_hour(
    status: int, body: Any, retry: str
) -> None:
    error = await explain(status, body, retry)
    assert isinstance(error, PlatformError)
    if status == 429:
        assert isinstance(error, PlatformUnavailable)
        assert error.seconds is not None
        assert 0 <= error.seconds <= 3_600


async def test_rate_limit_follows_the_headers_of_replies() -> None:
    clock = ManualClock(0.0)
    pacing, here = DiscordRateLimit(clock.now, clock.advance), {"channel": "1", "message": "2"}
    for left in ("1", "0"):
        bucket = await pacing.turn(client.EDIT, here, patience=0)
        pacing.done(
            bucket,
            client.EDIT,
            here,
            Reply(200, {**ONE, "X-RateLimit-Remaining": left, "X-RateLimit-Reset-After": "5"}),
        )
    with pytest.raises(Busy) as busy:
        await pacing.turn(client.EDIT, here, patience=4)
    assert busy.value.seconds == pytest.approx(5.05)
    assert not pacing.spare(client.EDIT, here)
    await pacing.turn(client.EDIT, {**here, "channel": "2"}, patience=0)
    bucket = await pacing.turn(client.EDIT, here, patience=6)
    assert clock.now() == pytest.approx(5.05)
    pacing.done(bucket, client.EDIT, here, Reply(200, {}))
    bucket = await pacing.turn(client.DELETE, here, patience=0)
    pacing.done(
        bucket, client.DELETE, here, Reply(200, {**ONE, "X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "5"})
    )
    with pytest.raises(Busy):
        await pacing.turn(client.EDIT, here, patience=1)


async def test_calls_stop_for_minutes_after_thousands_of_refusals() -> None:
    clock = ManualClock(0.0)
    pacing = DiscordRateLimit(clock.now, clock.advance)
    for _ in range(5_000):
        pacing.denied()
    with pytest.raises(Busy):
        await pacing.turn(client.ME, {}, patience=60)
    assert not pacing.spare(client.EDIT, {"channel": "1", "message": "2"})
    await clock.advance(700)
    await pacing.turn(client.ME, {}, patience=0)


def test_interaction_token_is_parsed_back_and_hidden_in_its_repr() -> None:
    handle = InteractionToken("601", "secret/token")
    assert parse_token(handle.text) == handle
    assert "secret" not in repr(handle)
    assert parse_token("") is parse_token("{") is parse_token("7") is None
    assert is_token_valid(0, 880)
    assert not is_token_valid(0, 890)
