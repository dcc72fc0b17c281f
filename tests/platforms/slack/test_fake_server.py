"""The fake Slack itself: its refusals, rate limits, events and injected faults."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from tests.platforms.clock import ManualClock
from tests.platforms.fake_server import BROKEN, LIMITED, LOST, RESET, Fault, refused
from tests.platforms.slack import limits
from tests.platforms.slack.server import FakeSlack, serve
from tests.platforms.slack.state import APP_TOKEN, BOT, BOT_TOKEN, OTHER_BOT, TEAM

pytestmark = pytest.mark.fakes
TO = {"recipient_team_id": TEAM, "recipient_user_id": "U1"}


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with serve(clock=ManualClock()) as fake:
        yield fake
        assert fake.errors == []


@pytest.fixture
def web(slack: FakeSlack) -> AsyncWebClient:
    return client(slack)


def client(slack: FakeSlack, token: str = BOT_TOKEN) -> AsyncWebClient:
    return AsyncWebClient(token, base_url=slack.api, retry_handlers=[])


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def button(action_id: str) -> dict[str, Any]:
    text = {"type": "plain_text", "text": "Evidence"}
    return {"type": "actions", "elements": [{"type": "button", "text": text, "action_id": action_id}]}


def view(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "modal", "title": {"type": "plain_text", "text": "Evidence"}, "blocks": list(blocks), **more}


async def refusal(call: Any) -> Any:
    """Return the response by which Slack refuses a call."""
    with pytest.raises(SlackApiError) as caught:
        await call
    return caught.value.response


async def error(call: Any) -> str:
    return str((await refusal(call))["error"])


async def test_tokens_and_scopes_are_checked(slack: FakeSlack, web: AsyncWebClient) -> None:
    assert await error(client(slack, "xoxb-nobody").auth_test()) == "invalid_auth"
    assert await error(web.apps_connections_open(app_token=BOT_TOKEN)) == "not_allowed_token_type"
    assert await error(web.api_call("chat.scheduleMessage")) == "unknown_method"
    slack.state.tokens[BOT_TOKEN].scopes.discard("chat:write")
    response = await refusal(web.chat_postMessage(channel="C1", text="Hello"))
    assert (response["error"], response["needed"]) == ("missing_scope", "chat:write")
    assert "users:read" in response["provided"]
    slack.state.tokens[BOT_TOKEN].error = "token_revoked"
    assert await error(web.auth_test()) == "token_revoked"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"channel": "C0"}, "channel_not_found"),
        ({"channel": "G2"}, "channel_not_found"),
        ({"channel": "C4"}, "not_in_channel"),
        ({"channel": "C6"}, "is_archived"),
        ({"text": " "}, "no_text"),
        ({"text": "x" * 40_001}, "msg_too_long"),
        ({"thread_ts": "1.1"}, "thread_not_found"),
        ({"colour": "red"}, "invalid_arguments"),
        ({"markdown_text": "x"}, "invalid_arguments"),
        ({"blocks": "nonsense"}, "invalid_blocks_format"),
        ({"blocks": [{"type": "wave"}]}, "invalid_blocks"),
        ({"blocks": [section("x" * 2_900)] * 5}, "msg_blocks_too_long"),
        ({"metadata": {"event_type": "a"}}, "invalid_metadata_format"),
        ({"metadata": {"event_type": "a", "event_payload": "b"}}, "invalid_metadata_schema"),
        ({"metadata": {"event_type": "a", "event_payload": {"b": "c" * 8_000}}}, "metadata_too_large"),
    ],
)
async def test_invalid_post_is_refused(
    slack: FakeSlack, web: AsyncWebClient, arguments: dict[str, Any], expected: str
) -> None:
    given = {name: value for name, value in ({"channel": "C1", "text": "Hi"} | arguments).items() if value}
    assert await error(web.api_call("chat.postMessage", json=given)) == expected
    assert slack.state.messages == {}


async def test_invalid_blocks_are_refused_with_their_path(web: AsyncWebClient) -> None:
    bad = [section("x" * 3_001), {"type": "section"}, button("a" * 256), {"type": "divider", "colour": "red"}]
    response = await refusal(web.chat_postMessage(channel="C1", text="Hi", blocks=bad))
    assert response["response_metadata"]["messages"] == [
        "[ERROR] must be less than 3001 characters [json-pointer:/blocks/0/text/text]",
        "[ERROR] missing required field: text [json-pointer:/blocks/1]",
        "[ERROR] must be less than 256 characters [json-pointer:/blocks/2/elements/0/action_id]",
        "[ERROR] invalid additional property: colour [json-pointer:/blocks/3]",
    ]


async def test_private_message_in_a_thread_without_replies_is_never_shown(
    slack: FakeSlack, web: AsyncWebClient
) -> None:
    """Slack takes it all the same."""
    root = await slack.people.say("Hello")
    where = {"channel": "C1", "user": "U1", "thread_ts": root}
    await web.chat_postEphemeral(text="Too early", **where)
    await slack.people.say("Hello to you", thread=root, user="U2")
    await web.chat_postEphemeral(text="In time", **where)

    assert "Too early" not in slack.seen("C1", by="U1")
    assert "Footnote (only you see this): In time" in slack.seen("C1", by="U1")


async def test_only_own_messages_are_changed(slack: FakeSlack, web: AsyncWebClient) -> None:
    theirs = await slack.people.say("Hello")
    private = (await web.chat_postEphemeral(channel="C1", user="U1", text="Hi"))["message_ts"]
    ours = (await web.chat_postMessage(channel="C1", text="Hi"))["ts"]

    assert await error(web.chat_update(channel="C1", ts=theirs, text="x")) == "cant_update_message"
    assert await error(web.chat_delete(channel="C1", ts=theirs)) == "cant_delete_message"
    assert await error(web.chat_update(channel="C1", ts=private, text="x")) == "message_not_found"
    assert await error(web.chat_update(channel="C1", ts="1.1", text="x")) == "message_not_found"
    assert await error(web.chat_update(channel="C1", ts=ours, text="x" * 4_001)) == "msg_too_long"
    assert await error(web.chat_postEphemeral(channel="C1", user="UX", text="x")) == "user_not_in_channel"
    slack.faults["chat.update"].append(refused("edit_window_closed"))
    assert await error(web.chat_update(channel="C1", ts=ours, text="x")) == "edit_window_closed"
    await web.chat_update(channel="C1", ts=ours, text="x")
    assert "Footnote: x (edited)" in slack.seen("C1", by="U2")
    slack.state.channels["C1"].archived = True
    assert await error(web.chat_update(channel="C1", ts=ours, text="y")) == "is_inactive"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (view(), "no fewer than 1 items"),
        (view({"type": "task_card"}), "unsupported type: task_card"),
        (view(section("x"), title={"type": "plain_text", "text": "x" * 25}), "must be less than 25 characters"),
    ],
)
async def test_invalid_view_is_refused(
    slack: FakeSlack, web: AsyncWebClient, shown: dict[str, Any], expected: str
) -> None:
    response = await refusal(web.views_open(trigger_id=slack.trigger("U1"), view=shown))
    assert expected in str(response["response_metadata"]["messages"])


# Streams.


def task(**changes: Any) -> list[dict[str, Any]]:
    return [{"type": "task_update", "id": "1", "title": "x", "status": "complete", **changes}]


def chunks(text: str) -> list[dict[str, Any]]:
    return [{"type": "markdown_text", "text": text}]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"recipient_team_id": None}, "missing_recipient_team_id"),
        ({"recipient_user_id": None}, "missing_recipient_user_id"),
        ({"recipient_user_id": "U0"}, "user_not_found"),
        ({"recipient_user_id": "UX"}, "team_not_found"),
        ({"thread_ts": "1.1"}, "thread_not_found"),
        ({"chunks": task(status="done")}, "invalid_chunks"),
        ({"chunks": [{"type": "blocks", "blocks": [{"type": "wave"}]}]}, "invalid_chunks"),
        ({"chunks": chunks("x" * 10_601)}, "msg_too_long"),
        ({"markdown_text": "y"}, "invalid_arguments"),
    ],
)
async def test_invalid_stream_is_refused(
    slack: FakeSlack, web: AsyncWebClient, arguments: dict[str, Any], expected: str
) -> None:
    asked = await slack.people.say("When?")
    given = {"channel": "C1", "thread_ts": asked, "chunks": chunks("x"), **TO} | arguments
    given = {name: value for name, value in given.items() if value is not None}
    assert await error(web.api_call("chat.startStream", json=given)) == expected
    assert slack.people.answers(asked) == []


async def test_streams_end_by_timeout_by_their_asker_and_by_length(slack: FakeSlack, web: AsyncWebClient) -> None:
    """After five minutes, by the asker, or when they grow too long."""
    asked = await slack.people.say("When?")

    async def begin() -> dict[str, Any]:
        stream = await web.chat_startStream(channel="C1", thread_ts=asked, chunks=chunks("x"), **TO)
        return {"channel": "C1", "ts": stream["ts"]}

    expired = await begin()
    assert await error(web.chat_update(text="x", **expired)) == "streaming_state_conflict"
    await slack.clock.advance(300)
    assert await error(web.chat_appendStream(chunks=chunks("y"), **expired)) == "message_not_in_streaming_state"
    assert await error(web.chat_stopStream(**expired)) == "message_not_in_streaming_state"
    await web.chat_update(text="whole", **expired)
    stopped = await begin()
    await slack.people.stop("C1", asked)
    assert await error(web.chat_appendStream(chunks=chunks("y"), **stopped)) == "stopped_by_user"
    event = slack.courier.unacked[-1].payload["event"]
    assert (event["type"], event["streaming_message_ts"]) == ("agent_session_stopped", [stopped["ts"]])
    long = await begin()
    await web.chat_appendStream(chunks=chunks("y" * 10_000), **long)
    assert await error(web.chat_appendStream(chunks=chunks("é" * 400), **long)) == "msg_too_long"


# Limits in time, and failures that tests ask for.


async def test_method_is_limited_to_its_calls_per_minute(slack: FakeSlack, web: AsyncWebClient) -> None:
    asked = await slack.people.dm("When?")
    stream = {"channel": "DU1", "thread_ts": asked, "chunks": chunks("x")}
    for _ in range(limits.TIER_2):
        await web.chat_startStream(**stream)
    response = await refusal(web.chat_startStream(**stream))

    assert (response.status_code, response["error"], response.headers["Retry-After"]) == (429, "ratelimited", "60")
    assert len(slack.limited) == 1
    await slack.clock.advance(60)
    assert await web.chat_startStream(**stream)


async def test_channel_is_limited_to_one_post_per_second_after_a_burst(slack: FakeSlack, web: AsyncWebClient) -> None:
    for _ in range(limits.POSTS_BURST):
        await web.chat_postMessage(channel="C1", text="x")
    assert await error(web.chat_postMessage(channel="C1", text="x")) == "ratelimited"
    assert await web.chat_postMessage(channel="C2", text="x")
    await slack.clock.advance(1)
    assert await web.chat_postMessage(channel="C1", text="x")


async def test_triggers_and_response_urls_expire(slack: FakeSlack, web: AsyncWebClient) -> None:
    """A trigger after one use or three seconds; a response_url after five uses or half an hour."""
    trigger, late, shown = slack.trigger("U1"), slack.trigger("U1"), view(section("x"))
    await web.views_open(trigger_id=trigger, view=shown)
    assert await error(web.views_open(trigger_id=trigger, view=shown)) == "exchanged_trigger_id"
    await slack.clock.advance(3.1)
    assert await error(web.views_open(trigger_id=late, view=shown)) == "expired_trigger_id"
    assert await error(web.views_open(trigger_id="1.2.3", view=shown)) == "invalid_trigger_id"
    for uses, expected in ((6, "used_url"), (1, "expired_url")):
        form = (await slack.people.command("/ask", "When?")).payload
        hook = AsyncWebhookClient(form["response_url"])
        if uses == 1:
            await slack.clock.advance(1_801)
        bodies = [json.loads((await hook.send(text="x")).body) for _ in range(uses)]
        assert [body.get("error", "") for body in bodies] == [""] * (uses - 1) + [expected]


@pytest.mark.parametrize(("fault", "posts"), [(LIMITED, 0), (BROKEN, 0), (RESET, 0), (LOST, 1)])
async def test_configured_fault_fails_the_next_call_only(
    slack: FakeSlack, web: AsyncWebClient, fault: Fault, posts: int
) -> None:
    slack.faults["chat.postMessage"].append(fault)
    with pytest.raises((SlackApiError, aiohttp.ClientError)):
        await web.chat_postMessage(channel="C1", text="x")
    assert slack.posts == posts
    assert await web.chat_postMessage(channel="C1", text="x")


# Pings, links and logs.


async def test_pings_links_and_previews_are_read(slack: FakeSlack, web: AsyncWebClient) -> None:
    """In every dialect, and in streamed pieces that are harmless alone; previews unless they are switched off."""
    asked = await slack.people.dm("When?")
    rich = [{"type": "user", "user_id": "U2"}, {"type": "link", "url": "https://a.example/"}]
    await web.chat_postMessage(channel="C1", text="<!here>", unfurl_links=False, unfurl_media=False)
    blocks = [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": rich}]}]
    await web.chat_postMessage(channel="C1", text="…", blocks=blocks)
    stream = await web.chat_startStream(channel="DU1", thread_ts=asked, chunks=chunks("<@"))
    await web.chat_appendStream(channel="DU1", ts=stream["ts"], chunks=chunks("U3>"))
    await web.assistant_threads_setStatus(channel_id="DU1", thread_ts=asked, status="asks <@U4>")

    assert {"<!here>", "<@U2>", "<@U3>", "<@U4>"} <= set(slack.pings)
    assert slack.links == ["https://a.example/"]
    assert [message.unfurls for message in slack.state.ours()] == [False, True, False]


# Events.


async def test_events_of_bots_and_joins_are_marked(slack: FakeSlack, web: AsyncWebClient) -> None:
    await slack.people.mention("When?", user=OTHER_BOT)
    await slack.people.invite("C1", "UX")
    bot, mention, joined, _ = (delivery.payload["event"] for delivery in slack.courier.unacked)
    history = (await web.conversations_history(channel="C1"))["messages"]

    assert (bot["bot_id"], mention["type"], mention["bot_id"]) == ("B8BOT", "app_mention", "B8BOT")
    assert joined["subtype"] == history[0]["subtype"] == "channel_join"
    assert history[1]["bot_id"] == "B8BOT"


async def test_channels_without_the_bot_send_no_events(slack: FakeSlack) -> None:
    await slack.people.mention("When?", channel="C4")
    slack.state.channels["C2"].members.discard(BOT)
    await slack.people.mention("When?", channel="C2")
    assert slack.courier.unacked == []


async def test_unacknowledged_events_are_repeated_three_times(slack: FakeSlack) -> None:
    """At once, after one and after five minutes, with the attempt's number and reason; commands are not repeated."""
    heard = list[tuple[Any, Any, str]]()

    async def listen(_: Any, request: Any) -> None:
        heard.append((request.retry_attempt, request.retry_reason, request.payload["event_id"]))
        slack.notify()

    socket = SocketModeClient(APP_TOKEN, web_client=client(slack, APP_TOKEN), ping_interval=0.05)
    socket.socket_mode_request_listeners = [listen]
    await socket.connect()
    await slack.people.say("Hello")
    for number, seconds in enumerate([3, 60 + 3, 300 + 3, 10], 1):
        await slack.until(lambda number=number: len(heard) == number)
        await slack.clock.advance(seconds - 0.5)
        assert len(heard) == number
        await slack.clock.advance(0.5)
    await slack.until(lambda: slack.courier.lost)
    socket.socket_mode_request_listeners = []
    await slack.people.command("/ask", "When?")
    await slack.until(lambda: slack.courier.unacked[0].sent)
    await slack.clock.advance(3)
    await slack.until(lambda: len(slack.courier.lost) == 2)
    await socket.close()

    assert [attempt for attempt, _, _ in heard] == [0, 1, 2, 3]
    assert [reason for _, reason, _ in heard] == ["", "timeout", "timeout", "timeout"]
    assert len({event for _, _, event in heard}) == 1
