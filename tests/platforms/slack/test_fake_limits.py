"""The fake Slack's limits of pace and time, the faults that tests ask for, and what clients make of what was posted."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.webhook.async_client import AsyncWebhookClient

from tests.platforms.clock import ManualClock
from tests.platforms.fake_server import BROKEN, LIMITED, LOST, RESET, Fault
from tests.platforms.slack import limits
from tests.platforms.slack.apps import client, error, section, view
from tests.platforms.slack.server import FakeSlack, serve
from tests.platforms.slack.state import BOT, BOT_TOKEN, SECRETS


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with serve(clock=ManualClock()) as fake:
        yield fake
        assert fake.errors == []


async def test_calls_over_the_limit_of_a_minute_are_asked_to_wait(slack: FakeSlack) -> None:
    """Each method has its own, which is full again a minute later."""
    web, asked = client(slack), await slack.people.dm("When?")
    for _ in range(limits.TIER_2):
        await web.chat_startStream(channel="DU1", thread_ts=asked, markdown_text="x")
    with pytest.raises(SlackApiError) as caught:
        await web.chat_startStream(channel="DU1", thread_ts=asked, markdown_text="x")

    assert (caught.value.response.status_code, caught.value.response["error"]) == (429, "ratelimited")
    assert caught.value.response.headers["Retry-After"] == "60"
    assert len(slack.limited) == 1
    await slack.clock.advance(60)
    assert await web.chat_startStream(channel="DU1", thread_ts=asked, markdown_text="x")


async def test_a_channel_takes_a_post_a_second_and_short_bursts(slack: FakeSlack) -> None:
    """Another channel does not mind."""
    web = client(slack)
    for _ in range(limits.POSTS_BURST):
        await web.chat_postMessage(channel="C1", text="x")
    assert await error(web.chat_postMessage(channel="C1", text="x")) == "ratelimited"
    assert await web.chat_postMessage(channel="C2", text="x")
    await slack.clock.advance(1)
    assert await web.chat_postMessage(channel="C1", text="x")


@pytest.mark.parametrize(("fault", "posts"), [(LIMITED, 0), (BROKEN, 0), (RESET, 0), (LOST, 1)])
async def test_a_call_fails_once_as_told(slack: FakeSlack, fault: Fault, posts: int) -> None:
    """What is lost on its way back stands there; nothing else does."""
    slack.faults["chat.postMessage"].append(fault)
    with pytest.raises((SlackApiError, aiohttp.ClientError)):
        await client(slack).chat_postMessage(channel="C1", text="x")
    assert slack.posts == posts
    assert await client(slack).chat_postMessage(channel="C1", text="x")


async def test_a_call_waits_as_told(slack: FakeSlack) -> None:
    """For an event, and by the clock."""
    gate = asyncio.Event()
    slack.faults["chat.postMessage"].append(Fault(until=gate, seconds=5))
    posting = asyncio.create_task(client(slack).chat_postMessage(channel="C1", text="x"))
    await slack.until(lambda: slack.received)
    gate.set()
    while not posting.done():
        await slack.clock.advance(1)
        await asyncio.sleep(0)
    assert slack.posts == 1


async def test_triggers_and_response_urls_wear_out(slack: FakeSlack) -> None:
    """A trigger after one use or three seconds; a response_url after five uses or half an hour."""
    web, shown = client(slack), view(section("x"))
    trigger, late = slack.trigger("U1"), slack.trigger("U1")
    await web.views_open(trigger_id=trigger, view=shown)
    assert await error(web.views_open(trigger_id=trigger, view=shown)) == "exchanged_trigger_id"
    await slack.clock.advance(3.1)
    assert await error(web.views_open(trigger_id=late, view=shown)) == "expired_trigger_id"
    assert await error(web.views_open(trigger_id="1.2.3", view=shown)) == "invalid_trigger_id"
    for uses in (6, 1):
        form = (await slack.people.command("/ask", "When?")).payload
        hook = AsyncWebhookClient(form["response_url"])
        if uses == 1:
            await slack.clock.advance(1_801)
        bodies = [(await hook.send(text="x")).body for _ in range(uses)]
        assert json.loads(bodies[-1])["error"] == ("used_url" if uses == 6 else "expired_url")
        assert all(json.loads(body)["ok"] for body in bodies[:-1])


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (view(), "no fewer than 1 items"),
        (view(*[{"type": "divider"}] * 101), "no more than 100 items"),
        (view({"type": "markdown", "text": "x"}), "unsupported type: markdown"),
        (view(section("x"), title={"type": "plain_text", "text": "x" * 25}), "must be less than 25 characters"),
        (view(section("x"), private_metadata="x" * 3_001), "must be less than 3001 characters"),
        (view(section("x"), colour="red"), "invalid additional property: colour"),
    ],
)
async def test_views_that_slack_does_not_take(slack: FakeSlack, shown: dict[str, Any], expected: str) -> None:
    """With where and why."""
    with pytest.raises(SlackApiError) as caught:
        await client(slack).views_open(trigger_id=slack.trigger("U1"), view=shown)
    assert expected in str(caught.value.response["response_metadata"]["messages"])


# What clients make of it.


async def test_pings_links_and_previews_are_seen(slack: FakeSlack) -> None:
    """In every dialect and in streamed pieces that are harmless alone; previews unless they are switched off."""
    web, asked = client(slack), await slack.people.dm("When?")
    rich = [{"type": "user", "user_id": "U2"}, {"type": "link", "url": "https://a.example/"}]
    await web.chat_postMessage(channel="C1", text="<!here>", unfurl_links=False, unfurl_media=False)
    await web.chat_postMessage(
        channel="C1",
        text="…",
        blocks=[{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": rich}]}],
    )
    stream = await web.chat_startStream(channel="DU1", thread_ts=asked, markdown_text="<@")
    await web.chat_appendStream(channel="DU1", ts=stream["ts"], markdown_text="U3>")

    assert {"<!here>", "<@U2>", "<@U3>"} <= set(slack.pings)
    assert slack.links == ["https://a.example/"]
    await web.assistant_threads_setStatus(channel_id="DU1", thread_ts=asked, status="asks <@U4>")
    assert "<@U4>" in slack.pings
    assert [one.unfurls for one in slack.state.ours()] == [False, True, False]


async def test_no_token_is_kept(slack: FakeSlack) -> None:
    """Calls are kept without the token they came with."""
    await client(slack).api_call("auth.test", params={"token": BOT_TOKEN})
    assert not any(secret in repr(slack.received) for secret in SECRETS)
    assert (await client(slack).auth_test())["user_id"] == BOT
