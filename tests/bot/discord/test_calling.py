"""Calls of Discord: at its pace, repeated only where nothing can be done twice, refused in plain words."""

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
from tests.bot.discord.stall import Stall
from tests.platforms.clock import ManualClock
from tests.platforms.discord.state import APP, BOT_TOKEN, SECRETS
from tests.platforms.fake_server import BANNED, BROKEN, LIMITED, LIMITED_EVERYWHERE, LOST, RESET, Fault

ONE = {"X-RateLimit-Limit": "5", "X-RateLimit-Bucket": "b"}


def post(stall: Stall, text: str = "hello", **more: Any) -> Any:
    return stall.call(client.POST, {"content": text, **more}, channel="201")


@pytest.mark.parametrize("fault", [LIMITED, LIMITED_EVERYWHERE])
async def test_who_is_told_to_wait_waits_and_comes_again(stall: Stall, fault: Any) -> None:
    """Once, and no sooner."""
    stall.discord.faults["create_message"] = [fault]
    before = stall.clock.now()
    await post(stall)
    assert stall.clock.now() - before == pytest.approx(fault.retry_after)
    assert stall.discord.posts == 1


async def test_a_limit_over_all_holds_every_route_back(stall: Stall) -> None:
    """Until it is over; what interactions do is not counted."""
    stall.discord.faults["create_message"] = [LIMITED_EVERYWHERE]
    await post(stall)
    stall.call.pacing.hold(client.POST, {"channel": "201"}, 60, Reply(429))
    assert not stall.call.pacing.spare(client.EDIT, {"channel": "202"})
    assert stall.call.pacing.spare(client.EDIT_REPLY, {"application": APP, "token": "t"})


async def test_many_calls_at_once_never_come_too_soon(stall: Stall) -> None:
    """Whether the limit is a channel's or over all: a hundred of them wait for each other, and none is lost."""
    calls = [stall.call(client.POST, {"content": str(n)}, channel=f"20{1 + n % 3}", patience=600.0) for n in range(30)]
    calls += [stall.call(client.READ_ONE, channel="201", message="5", patience=600.0) for _ in range(30)]
    calls += [stall.call(client.ME, patience=600.0) for _ in range(100)]
    done = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(one, PostGone) for one in done) == 30
    assert stall.discord.posts == 30
    assert len(stall.discord.limited) < 16  # a clock that jumps meanwhile lets calls of two moments arrive in one


async def test_what_may_be_done_twice_is_repeated(stall: Stall) -> None:
    """By its nonce a post may."""
    stall.discord.faults["create_message"] = [LOST, BROKEN, RESET]
    await post(stall, nonce="n", enforce_nonce=True)
    assert stall.discord.posts == 1


async def test_a_follow_up_is_not_repeated(stall: Stall) -> None:
    """Nothing tells the first of them from the second."""
    asked = await stall.invoked()
    handle = parse_token(asked.handle)
    assert handle
    stall.discord.faults["follow_up"] = [LOST]
    with pytest.raises(PlatformUnavailable) as error:
        await stall.call(client.FOLLOW_UP, {"content": "hello"}, **handle.ids)
    assert error.value.seconds is None
    assert len(stall.discord.calls("follow_up")) == 1


async def test_an_address_that_is_banned_waits(stall: Stall) -> None:
    """With all its calls: each would make it longer."""
    stall.discord.faults["create_message"] = [BANNED]
    with pytest.raises(PlatformUnavailable) as error:
        await post(stall)
    assert error.value.seconds == 3_600.0
    with pytest.raises(PlatformUnavailable):
        await stall.call(client.ME)
    assert len(stall.discord.received) == 1


async def test_nobody_there() -> None:
    """It is certain that nothing was done."""
    clock = ManualClock(0.0)
    async with open_api(BOT_TOKEN, "http://127.0.0.1:1/api", DiscordRateLimit(clock.now, clock.advance)) as call:
        with pytest.raises(PlatformUnavailable) as error:
            await call(client.ME)
    assert error.value.seconds is not None


async def test_a_token_that_is_not_valid(stall: Stall) -> None:
    """It is said what to do, and the token is not; what is under way waits for another."""
    await stall.discord.people.revoke()
    with pytest.raises(AccessDenied) as error:
        await post(stall)
    assert error.value.seconds
    assert "token" in error.value.hint
    assert not any(secret in f"{error.value}{error.value.hint}{error.value.__cause__}" for secret in SECRETS)


async def test_secrets_are_in_no_log(stall: Stall, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever goes wrong, at whatever level it is logged."""
    caplog.set_level(logging.DEBUG)
    asked = await stall.invoked()
    handle = parse_token(asked.handle)
    assert handle
    stall.discord.faults["edit_response"] = [LIMITED, BROKEN, RESET]
    await stall.call(client.EDIT_REPLY, {"content": "hello"}, message="@original", **handle.ids)
    assert not any(secret in caplog.text for secret in SECRETS)


async def explain(status: int, body: Any, wait: str = "") -> Any:
    async with open_api(BOT_TOKEN, "") as call:
        return call.api.explain("POST /x", Reply(status, {"Retry-After": wait} if wait else {}, body))


async def test_refusals_by_code() -> None:
    """What the desk can do about it says which error it is."""
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
async def test_what_is_not_refused_in_discords_own_words_is_tried_again(status: int, body: Any, *, sure: bool) -> None:
    """It is certain that nothing was done where somebody before Discord refused, or it was switched off."""
    error = await explain(status, body)
    assert isinstance(error, PlatformUnavailable)
    assert (error.seconds is not None) is sure


async def test_a_reply_that_is_not_discords_is_none(stall: Stall) -> None:
    """A page in the place of an answer: the post is repeated, and its nonce keeps it from standing there twice."""
    stall.discord.faults["create_message"] = [Fault(200, done=True), Fault(200)]
    assert (await post(stall, nonce="n", enforce_nonce=True))["content"] == "hello"
    assert stall.discord.posts == 1


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
async def test_no_answer_surprises(status: int, body: Any, retry: str) -> None:
    """Any answer is an error of the desk's, and nobody waits for ever."""
    error = await explain(status, body, retry)
    assert isinstance(error, PlatformError)
    if status == 429:
        assert isinstance(error, PlatformUnavailable)
        assert error.seconds is not None
        assert 0 <= error.seconds <= 3_600


async def test_a_bucket_is_as_discord_tells_it() -> None:
    """When it is empty, the next call waits until it is full; of routes that share one all do."""
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


async def test_what_is_refused_too_often_is_not_tried_any_more() -> None:
    """Long before Discord bans the address."""
    clock = ManualClock(0.0)
    pacing = DiscordRateLimit(clock.now, clock.advance)
    for _ in range(5_000):
        pacing.denied()
    with pytest.raises(Busy):
        await pacing.turn(client.ME, {}, patience=60)
    assert not pacing.spare(client.EDIT, {"channel": "1", "message": "2"})
    await clock.advance(700)
    await pacing.turn(client.ME, {}, patience=0)


def test_a_handle_is_kept_as_text_and_shows_no_token() -> None:
    """Whatever else stands there is none; it is good for a quarter of an hour, nearly."""
    handle = InteractionToken("601", "secret/token")
    assert parse_token(handle.text) == handle
    assert "secret" not in repr(handle)
    assert parse_token("") is parse_token("{") is parse_token("7") is None
    assert is_token_valid(0, 880)
    assert not is_token_valid(0, 890)
