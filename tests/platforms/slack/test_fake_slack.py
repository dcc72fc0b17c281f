"""The fake Slack itself, with Slack's own clients in between: it delivers, refuses, limits and fails as Slack does."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.webhook.async_client import AsyncWebhookClient

from tests.platforms.slack import limits
from tests.platforms.slack.apps import bolt, button, client, over_http, over_socket, section, view
from tests.platforms.slack.clock import ManualClock
from tests.platforms.slack.faults import BROKEN, LIMITED, LOST, RESET, Fault, refused
from tests.platforms.slack.request_url import verification
from tests.platforms.slack.seeing import modal
from tests.platforms.slack.server import FakeSlack, serve
from tests.platforms.slack.signing import FORGERIES, signed
from tests.platforms.slack.world import APP_TOKEN, BOT, BOT_TOKEN, OTHER_BOT, SECRETS, SIGNING_SECRET, TEAM

TO = {"recipient_team_id": TEAM, "recipient_user_id": "U1"}


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with serve(clock=ManualClock()) as fake:
        yield fake
        assert fake.errors == []


@pytest.fixture(params=["socket", "http"])
async def either(request: pytest.FixtureRequest) -> AsyncIterator[FakeSlack]:
    async with serve(clock=ManualClock(), mode=request.param) as fake:
        yield fake
        assert fake.errors == []


def connected(app: AsyncApp, slack: Any) -> Any:
    return (over_socket if slack.mode == "socket" else over_http)(app, slack)


async def error(call: Any) -> str:
    """Return the error that Slack refuses a call with."""
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])


# Flows, on both transports.


async def test_a_mention_arrives_as_two_events_and_is_answered_in_its_thread(either: FakeSlack) -> None:
    """With different event ids; people see question and answer as a conversation."""
    app, heard = bolt(either), list[dict[str, Any]]()

    @app.event("message")
    async def on_message(body: dict[str, Any]) -> None:
        heard.append(body)

    @app.event("app_mention")
    async def on_mention(body: dict[str, Any], say: Any) -> None:
        heard.append(body)
        text = "It was built in 1887 &amp; lost. <https://skarholm.example/light.md|[1] Lighthouse>"
        await say(blocks=[section(text), button(value="7")], text="…", thread_ts=body["event"]["ts"])

    async with connected(app, either):
        asked = await either.acts.mention("When was it built?", user="U2")
        await either.until(lambda: either.acts.answers(asked) and len(heard) == 2 and not either.courier.unacked)

    assert either.seen("C1", by="U1") == (
        "#general\n"
        "Ben: @footnote When was it built?\n"
        "  Footnote: It was built in 1887 & lost. [1] Lighthouse <https://skarholm.example/light.md>\n"
        "    [Evidence]"
    )
    assert {body["event"]["type"] for body in heard} == {"message", "app_mention"}
    assert len({body["event_id"] for body in heard}) == 2
    assert len({body["event"]["ts"] for body in heard}) == 1
    assert either.pings == []
    assert either.links == ["https://skarholm.example/light.md"]


async def test_a_button_opens_a_modal_that_is_submitted(either: FakeSlack) -> None:
    """Its trigger is good, what was filled in arrives, an error keeps it open, and it closes."""
    app, got = bolt(either), list[Any]()
    comment = {"type": "plain_text_input", "action_id": "comment", "multiline": True}
    label = {"type": "plain_text", "text": "What was wrong?"}
    field = {"type": "input", "block_id": "b", "label": label, "element": comment}
    send = {"type": "plain_text", "text": "Send"}

    @app.action("footnote:down")
    async def on_press(ack: Any, body: dict[str, Any], client: Any) -> None:
        await ack()
        await client.views_open(trigger_id=body["trigger_id"], view=view(field, submit=send, callback_id="c"))

    @app.view("c")
    async def on_submit(ack: Any, view: dict[str, Any]) -> None:
        got.append(view["state"]["values"]["b"]["comment"]["value"])
        await (ack() if got[-1] else ack(response_action="errors", errors={"b": "Say something"}))

    posted = await client(either).chat_postMessage(
        channel="C1", text="…", blocks=[button("footnote:down", "👎", value="7")]
    )
    async with connected(app, either):
        await either.acts.press("footnote:down", posted["ts"])
        await either.until(lambda: either.world.views.get("U1"))
        await either.acts.submit(comment="")
        await either.until(lambda: either.acts.view().errors)
        assert modal(either.acts.view(), either.world) == (
            "= Evidence =\nWhat was wrong?: [_____]\n! Say something\n[Send]"
        )
        await either.acts.submit(comment="The year")
        await either.until(lambda: not either.world.views["U1"])

    assert got == ["", "The year"]


async def test_a_command_is_answered_to_who_typed_it_alone(either: FakeSlack) -> None:
    """By the acknowledgement, and by its response_url, which can also tell everybody."""
    app = bolt(either)

    @app.command("/ask")
    async def on_command(ack: Any, respond: Any, command: dict[str, Any]) -> None:
        await ack("Looking…")
        await respond(f"You asked: {command['text']}")
        await respond("Shared", response_type="in_channel")

    async with connected(app, either):
        await either.acts.command("/ask", "When?", user="U2")
        await either.until(lambda: len(either.world.messages) == 3)

    assert either.seen("C1", by="U1") == "#general\nFootnote: Shared"
    assert "Footnote (only you see this): Looking…" in either.seen("C1", by="U2")
    assert "Footnote (only you see this): You asked: When?" in either.seen("C1", by="U2")
    assert either.seen("C1", by="UX") == ""


async def test_a_shortcut_brings_its_message(either: FakeSlack) -> None:
    """And an edit, a deletion, an opened home, a rename, a share and an archived channel are told."""
    app, heard = bolt(either), list[str]()

    @app.shortcut("check")
    async def on_shortcut(ack: Any, shortcut: dict[str, Any]) -> None:
        await ack()
        heard.append(shortcut["message"]["text"])

    @app.middleware
    async def listen(body: dict[str, Any], next_: Any) -> None:
        event = body.get("event", {})
        heard.append(event.get("subtype") or event.get("type") or body["type"])
        await next_()

    @app.event(re.compile(".*"))
    async def on_event() -> None: ...

    async with connected(app, either):
        said = await either.acts.say("It is 5 m high.")
        await either.acts.shortcut("check", said, user="U2")
        await either.acts.edit(said, "It is 6 m high.")
        await either.acts.delete(said)
        await either.acts.open_home()
        await either.acts.rename("C2", "port")
        await either.acts.share("C2")
        await either.acts.archive("C2")
        await either.until(lambda: not either.courier.unacked and "It is 5 m high." in heard)
        await either.acts.uninstall()
        await either.until(lambda: not either.courier.unacked)

    told = {"message", "message_changed", "message_deleted", "app_home_opened", "message_action"}
    told |= {"channel_rename", "channel_shared", "channel_archive", "tokens_revoked", "app_uninstalled"}
    assert told <= set(heard)
    assert await error(client(either).auth_test()) == "account_inactive"


# Delivery.


async def test_what_is_not_acknowledged_comes_again_at_once_after_one_and_after_five_minutes(slack: FakeSlack) -> None:
    """As the same event with the attempt's number and the reason, and then never more."""
    app, heard = bolt(slack), list[tuple[Any, Any, str]]()

    async with over_socket(app, slack) as handler:

        async def listen(_: Any, request: Any) -> None:
            heard.append((request.retry_attempt, request.retry_reason, request.payload["event_id"]))
            slack.notify()

        handler.client.socket_mode_request_listeners = [listen]
        await slack.acts.say("Hello")
        for number, seconds in enumerate([3, 60 + 3, 300 + 3, 10], 1):
            await slack.until(lambda number=number: len(heard) == number)
            await slack.clock.advance(seconds - 0.5)
            assert len(heard) == number
            await slack.clock.advance(0.5)
        await slack.until(lambda: slack.courier.lost)

    assert [attempt for attempt, _, _ in heard] == [0, 1, 2, 3]
    assert [reason for _, reason, _ in heard] == ["", "timeout", "timeout", "timeout"]
    assert len({event for _, _, event in heard}) == 1


async def test_over_http_attempts_are_numbered_in_headers(slack: FakeSlack) -> None:
    """An error of the app's is a reason to come again at once."""
    app, heard, fails = bolt(slack), list[Any](), [True]
    slack.courier.transport = slack.requests

    @app.middleware
    async def listen(req: Any, next_: Any) -> None:
        heard.append((req.headers.get("x-slack-retry-num"), req.headers.get("x-slack-retry-reason")))
        if fails.pop() if fails else False:
            raise RuntimeError
        await next_()

    @app.event("message")
    async def on_message() -> None: ...

    async with over_http(app, slack):
        await slack.acts.say("Hello")
        await slack.until(lambda: slack.courier.done)

    assert heard == [(None, None), (["1"], ["http_error"])]


async def test_a_bot_that_dies_before_it_acknowledges_is_told_again(slack: FakeSlack) -> None:
    """By whichever connection there is next."""
    app, heard = bolt(slack), list[Any]()

    @app.event("message")
    async def on_message(body: dict[str, Any]) -> None:
        heard.append(body["event"]["text"])

    async with over_socket(app, slack) as handler:
        handler.client.socket_mode_request_listeners = []
        await slack.acts.say("Hello")
        await slack.until(lambda: slack.courier.unacked[0].sent)
    assert slack.courier.unacked
    async with over_socket(app, slack):
        await slack.until(lambda: slack.courier.done)
        await slack.until(lambda: heard == ["Hello"])


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_a_client_that_is_told_to_connects_anew(slack: FakeSlack, reason: str) -> None:
    """Nothing is lost meanwhile."""
    app, heard = bolt(slack), list[Any]()

    @app.event("message")
    async def on_message(body: dict[str, Any]) -> None:
        heard.append(body["event"]["text"])
        slack.notify()

    async with over_socket(app, slack):
        leaving = asyncio.create_task(slack.sockets.disconnect(reason))
        await slack.until(lambda: slack.sockets.made == 2)
        await slack.acts.say("Hello")
        await slack.until(lambda: heard == ["Hello"])
        await slack.clock.advance(10)
        await leaving


async def test_a_connection_that_is_cut_is_made_anew(slack: FakeSlack) -> None:
    """By Slack's client, without a word from Slack."""
    async with over_socket(bolt(slack), slack):
        await slack.sockets.cut()
        await slack.until(lambda: slack.sockets.made == 2)


async def test_bots_and_joins_look_like_what_they_are(slack: FakeSlack) -> None:
    """In events and in history alike; a mention by another bot is one."""
    await slack.acts.mention("When?", user=OTHER_BOT)
    await slack.acts.invite("C1", "UX")
    bot, mention, joined, _ = (one.payload["event"] for one in slack.courier.unacked)
    history = (await client(slack).conversations_history(channel="C1"))["messages"]

    assert (bot["bot_id"], mention["type"], mention["bot_id"]) == ("B8BOT", "app_mention", "B8BOT")
    assert joined["subtype"] == history[0]["subtype"] == "channel_join"
    assert history[1]["bot_id"] == "B8BOT"


async def test_a_deaf_socket_answers_no_ping_or_only_pings(slack: FakeSlack) -> None:
    """Slack's client notices the first by itself, after a while, and not the second."""
    app = bolt(slack)

    async with over_socket(app, slack):
        slack.sockets.deafen("mute")
        await slack.acts.say("Hello")
        await slack.until(lambda: slack.courier.unacked[0].sent)
        assert slack.courier.done == []
        slack.sockets.deafen("silent")
        await slack.until(lambda: slack.sockets.made > 1)


async def test_several_connections_take_turns(slack: FakeSlack) -> None:
    """Each gets its share."""
    first, second = bolt(slack), bolt(slack)
    counts = [0, 0]

    @first.event("message")
    async def on_first() -> None:
        counts[0] += 1
        slack.notify()

    @second.event("message")
    async def on_second() -> None:
        counts[1] += 1
        slack.notify()

    async with over_socket(first, slack), over_socket(second, slack):
        await slack.until(lambda: len(slack.sockets.links) == 2)
        for number in range(4):
            await slack.acts.say(f"{number}")
        await slack.until(lambda: len(slack.courier.done) == 4 and sum(counts) == 4)
        assert counts == [2, 2]


async def test_an_address_connects_once_and_the_eleventh_connection_is_sent_away(slack: FakeSlack) -> None:
    """As what is not an address of a connection at all."""
    web = client(slack, APP_TOKEN)
    async with aiohttp.ClientSession() as session:
        kept = list[aiohttp.ClientWebSocketResponse]()
        for _ in range(limits.SOCKETS):
            url = (await web.apps_connections_open(app_token=APP_TOKEN))["url"]
            kept.append(await session.ws_connect(url))
            assert (await kept[-1].receive_json())["type"] == "hello"
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(url)
        url = (await web.apps_connections_open(app_token=APP_TOKEN))["url"]
        frame = await (await session.ws_connect(url)).receive_json()

    assert frame == {"type": "disconnect", "reason": "too_many_websockets"}


async def test_what_is_said_where_the_bot_is_not_it_does_not_hear(slack: FakeSlack) -> None:
    """Not even that it was mentioned."""
    await slack.acts.mention("When?", channel="C4")
    await slack.acts.kick("C2")
    await slack.acts.mention("When?", channel="C2")
    assert [one.payload["event"]["type"] for one in slack.courier.unacked] == ["channel_left"]


async def test_the_same_event_comes_again_as_asked(slack: FakeSlack) -> None:
    """With the same id, or as a new event of the same message."""
    app, heard = bolt(slack), list[Any]()

    @app.event("message")
    async def on_message(body: dict[str, Any]) -> None:
        heard.append((body["event_id"], body["event"]["ts"]))
        slack.notify()

    async with over_socket(app, slack):
        said = await slack.acts.say("Hello")
        await slack.acts.again(said, same_id=True)
        await slack.acts.again(said)
        await slack.until(lambda: len(heard) == 3)

    assert len({event for event, _ in heard}) == 2
    assert {ts for _, ts in heard} == {said}


async def test_what_is_pressed_comes_once_and_silence_is_told(slack: FakeSlack) -> None:
    """Whoever typed a command that nobody took is told so, alone."""
    async with over_socket(bolt(slack), slack) as handler:
        handler.client.socket_mode_request_listeners = []
        await slack.acts.command("/ask", "When?")
        await slack.until(lambda: slack.courier.unacked[0].sent)
        await slack.clock.advance(3)
        await slack.until(lambda: slack.courier.lost)

    assert "/ask failed" in slack.seen("C1", by="U1")
    assert "/ask failed" not in slack.seen("C1", by="U2")


# Signatures.


async def test_an_app_believes_slack_and_nobody_else(slack: FakeSlack) -> None:
    """The real verifier refuses every forgery; a signed challenge is answered."""
    app, body = bolt(slack), verification("seven")
    async with over_http(app, slack):
        plain = {"Content-Type": "application/json"}
        good = await slack.requests.post(body, signed(SIGNING_SECRET, body) | plain)
        bad = {
            name: (await slack.requests.post(body, forge(SIGNING_SECRET, body) | plain))[0]
            for name, forge in FORGERIES.items()
            if name != "not a number"  # slack_sdk raises, which no app wants
        }

    assert good == (200, {"challenge": "seven"})
    assert set(bad.values()) == {401}, bad


# What is refused.


async def test_tokens_and_scopes_are_checked(slack: FakeSlack) -> None:
    """With Slack's own words for what is missing."""
    assert await error(client(slack, "xoxb-nobody").auth_test()) == "invalid_auth"
    assert await error(client(slack).apps_connections_open(app_token=BOT_TOKEN)) == "not_allowed_token_type"
    slack.world.tokens[BOT_TOKEN].scopes.discard("chat:write")
    with pytest.raises(SlackApiError) as caught:
        await client(slack).chat_postMessage(channel="C1", text="Hello")
    assert caught.value.response["error"] == "missing_scope"
    assert caught.value.response["needed"] == "chat:write"
    assert "users:read" in caught.value.response["provided"]
    await slack.acts.revoke()
    assert await error(client(slack).auth_test()) == "token_revoked"


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
        ({"markdown_text": "x"}, "markdown_text_conflict"),
        ({"text": None, "markdown_text": "x" * 12_001}, "msg_too_long"),
        ({"blocks": "nonsense"}, "invalid_blocks_format"),
        ({"blocks": [{"type": "wave"}]}, "invalid_blocks"),
        ({"blocks": [{"type": "markdown", "text": "x" * 6_001}] * 2}, "msg_blocks_too_long"),
        ({"blocks": [section("x" * 2_900)] * 5}, "msg_blocks_too_long"),
        ({"blocks": [section("x")] * 51}, "invalid_blocks"),
        ({"metadata": {"event_type": "a"}}, "invalid_metadata_format"),
        ({"metadata": {"event_type": "a", "event_payload": "b"}}, "invalid_metadata_schema"),
        ({"metadata": {"event_type": "a", "event_payload": {"b": "c" * 8_000}}}, "metadata_too_large"),
    ],
)
async def test_posts_that_slack_does_not_take(slack: FakeSlack, arguments: dict[str, Any], expected: str) -> None:
    """Nothing of them stands there."""
    given = {name: value for name, value in ({"channel": "C1", "text": "Hi"} | arguments).items() if value}
    assert await error(client(slack).api_call("chat.postMessage", json=given)) == expected
    assert slack.world.messages == {}


async def test_blocks_are_refused_with_where_and_why(slack: FakeSlack) -> None:
    """As Slack words it."""
    bad = [section("x" * 3_001), {"type": "section"}, button("a" * 256), {"type": "divider", "colour": "red"}]
    with pytest.raises(SlackApiError) as caught:
        await client(slack).chat_postMessage(channel="C1", text="Hi", blocks=bad)
    assert caught.value.response["response_metadata"]["messages"] == [
        "[ERROR] must be less than 3001 characters [json-pointer:/blocks/0/text/text]",
        "[ERROR] missing required field: text [json-pointer:/blocks/1]",
        "[ERROR] must be less than 256 characters [json-pointer:/blocks/2/elements/0/action_id]",
        "[ERROR] invalid additional property: colour [json-pointer:/blocks/3]",
    ]


async def test_only_what_is_ours_and_there_is_changed(slack: FakeSlack) -> None:
    """Neither others' messages nor what one person saw, nor in archived channels."""
    web = client(slack)
    theirs = await slack.acts.say("Hello")
    whispered = (await web.chat_postEphemeral(channel="C1", user="U1", text="Hi"))["message_ts"]
    ours = (await web.chat_postMessage(channel="C1", text="Hi"))["ts"]

    assert await error(web.chat_update(channel="C1", ts=theirs, text="x")) == "cant_update_message"
    assert await error(web.chat_delete(channel="C1", ts=theirs)) == "cant_delete_message"
    assert await error(web.chat_update(channel="C1", ts=whispered, text="x")) == "message_not_found"
    assert await error(web.chat_update(channel="C1", ts="1.1", text="x")) == "message_not_found"
    assert await error(web.chat_update(channel="C1", ts=ours, text="x" * 4_001)) == "msg_too_long"
    assert await error(web.chat_postEphemeral(channel="C1", user="UX", text="x")) == "user_not_in_channel"
    slack.faults["chat.update"].append(refused("edit_window_closed"))
    assert await error(web.chat_update(channel="C1", ts=ours, text="x")) == "edit_window_closed"
    await web.chat_update(channel="C1", ts=ours, text="x")
    assert "Footnote: x (edited)" in slack.seen("C1", by="U2")
    await slack.acts.archive("C1")
    assert await error(web.chat_update(channel="C1", ts=ours, text="y")) == "is_inactive"


async def test_metadata_stays_over_updates_and_is_read_back(slack: FakeSlack) -> None:
    """Only where it is asked for, and until it is taken away."""
    web, mark = client(slack), {"event_type": "footnote_answer", "event_payload": {"key": "k"}}
    asked = await slack.acts.say("When?")
    ts = (await web.chat_postMessage(channel="C1", thread_ts=asked, text="a", metadata=mark))["ts"]
    await web.chat_update(channel="C1", ts=ts, text="b")
    plain = await web.conversations_replies(channel="C1", ts=asked)
    full = await web.conversations_replies(channel="C1", ts=asked, include_all_metadata=True)

    assert "metadata" not in plain["messages"][1]
    assert full["messages"][1]["metadata"] == mark
    await web.chat_update(channel="C1", ts=ts, text="c", metadata={})
    full = await web.conversations_replies(channel="C1", ts=asked, include_all_metadata=True)
    assert "metadata" not in full["messages"][1]


async def test_threads_and_channels_are_read_page_by_page(slack: FakeSlack) -> None:
    """A thread oldest first, a channel newest first; a cursor of somebody else's is refused."""
    web, root = client(slack), await slack.acts.say("0")
    for number in range(1, 6):
        await slack.acts.say(f"{number}", thread=root)
    await slack.acts.say("top")
    slack.page, found, cursor = 2, list[str](), ""
    while page := await web.conversations_replies(channel="C1", ts=root, cursor=cursor):
        found += [one["text"] for one in page["messages"] if one["ts"] != root or not cursor]
        cursor = page["response_metadata"]["next_cursor"]
        if not cursor:
            break

    assert found == list("012345")
    history = await web.conversations_history(channel="C1")
    assert [one["text"] for one in history["messages"]] == ["top", "0"]
    assert await error(web.conversations_replies(channel="C1", ts=root, cursor="x")) == "invalid_cursor"
    assert await error(web.conversations_replies(channel="C1", ts="1.1")) == "thread_not_found"
    assert (await web.conversations_info(channel="C5"))["channel"]["is_ext_shared"] is True


async def test_a_deleted_root_leaves_a_stone(slack: FakeSlack) -> None:
    """As long as there are replies under it."""
    root = await slack.acts.say("When?")
    await client(slack).chat_postMessage(channel="C1", thread_ts=root, text="1887.")
    await slack.acts.delete(root)

    assert "Slackbot: This message was deleted." in slack.seen("C1", by="U1")
    changed = slack.courier.unacked[-1].payload["event"]
    assert (changed["subtype"], changed["message"]["subtype"]) == ("message_changed", "tombstone")


# Streams.


async def test_a_stream_is_read_while_it_is_written(slack: FakeSlack) -> None:
    """Task cards, text, and blocks at its end; the status that was shown before goes."""
    web, asked = client(slack), await slack.acts.mention("When?", silent=True)
    await web.assistant_threads_setStatus(channel_id="C1", thread_ts=asked, status="is reading…")
    assert slack.seen("C1", by="U1").endswith("  … Footnote is reading…")
    card = {"type": "task_update", "id": "1", "title": "Claim 1", "status": "in_progress"}
    stream = await web.chat_startStream(channel="C1", thread_ts=asked, chunks=[card], **TO)
    at = {"channel": "C1", "ts": stream["ts"]}
    source = {"type": "url", "url": "https://skarholm.example/light.md", "text": "Lighthouse"}
    await web.chat_appendStream(chunks=[{**card, "status": "complete", "sources": [source]}], **at)
    for text in ("In **18", "87**. \\[1\\]"):
        await web.chat_appendStream(chunks=[{"type": "markdown_text", "text": text}], **at)
    half = slack.seen("C1", by="U1")
    assert await error(web.chat_update(text="x", **at)) == "streaming_state_conflict"
    await web.chat_stopStream(blocks=[button()], **at)

    assert half == (
        "#general\n"
        "Ana: @footnote When?\n"
        "  Footnote: ✓ Claim 1\n"
        "      Lighthouse <https://skarholm.example/light.md>\n"
        "    In 1887. [1]\n"
        "    ▌"
    )
    assert slack.seen("C1", by="U1") == half.replace("▌", "[Evidence]")
    assert await error(web.chat_appendStream(markdown_text="x", **at)) == "message_not_in_streaming_state"
    await web.chat_update(text="In 1887.", **at)
    assert slack.acts.answers(asked)[0].text == "In 1887."


async def test_slacks_own_helper_streams(slack: FakeSlack) -> None:
    """Buffered, in a DM without a recipient."""
    asked = await slack.acts.dm("When?")
    stream = await client(slack).chat_stream(channel="DU1", thread_ts=asked, buffer_size=5)
    for text in ("In ", "1887", "."):
        await stream.append(markdown_text=text)
    await stream.stop()
    assert "Footnote: In 1887." in slack.seen("DU1", by="U1")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"recipient_team_id": None}, "missing_recipient_team_id"),
        ({"recipient_user_id": None}, "missing_recipient_user_id"),
        ({"recipient_user_id": "U0"}, "user_not_found"),
        ({"recipient_user_id": "UX"}, "team_not_found"),
        ({"thread_ts": "1.1"}, "thread_not_found"),
        ({"chunks": [{"type": "task_update", "id": "1", "title": "x", "status": "done"}]}, "invalid_chunks"),
        (
            {"chunks": [{"type": "task_update", "id": "1", "title": "x" * 257, "status": "complete"}]},
            "invalid_chunks",
        ),
        ({"chunks": [{"type": "blocks", "blocks": [{"type": "wave"}]}]}, "invalid_chunks"),
        ({"chunks": [{"type": "markdown_text", "text": "x" * 10_601}]}, "msg_too_long"),
        (
            {"chunks": [{"type": "markdown_text", "text": "x"}], "markdown_text": "y"},
            "cannot_provide_both_markdown_text_and_chunks",
        ),
        ({"task_display_mode": "grid"}, "invalid_arguments"),
    ],
)
async def test_streams_that_slack_does_not_begin(slack: FakeSlack, arguments: dict[str, Any], expected: str) -> None:
    """And no message stands there."""
    asked = await slack.acts.say("When?")
    given = {"channel": "C1", "thread_ts": asked, **TO} | arguments
    given = {name: value for name, value in given.items() if value is not None}
    assert await error(client(slack).api_call("chat.startStream", json=given)) == expected
    assert slack.acts.answers(asked) == []


async def test_streams_end(slack: FakeSlack) -> None:
    """After five minutes, by the asker, and by growing too long; the other mode is refused."""
    web, asked = client(slack), await slack.acts.say("When?")

    async def begun() -> dict[str, Any]:
        stream = await web.chat_startStream(channel="C1", thread_ts=asked, markdown_text="x", **TO)
        return {"channel": "C1", "ts": stream["ts"]}

    old, stopped = await begun(), None
    await slack.clock.advance(300)
    assert await error(web.chat_appendStream(markdown_text="y", **old)) == "message_not_in_streaming_state"
    assert await error(web.chat_stopStream(**old)) == "message_not_in_streaming_state"
    await web.chat_update(text="whole", **old)
    stopped = await begun()
    await slack.acts.stop("C1", asked)
    assert await error(web.chat_appendStream(markdown_text="y", **stopped)) == "stopped_by_user"
    told = slack.courier.unacked[-1].payload["event"]
    assert (told["type"], told["streaming_message_ts"]) == ("agent_session_stopped", [stopped["ts"]])
    long = await begun()
    await web.chat_appendStream(markdown_text="y" * 10_000, **long)
    assert await error(web.chat_appendStream(markdown_text="é" * 400, **long)) == "msg_too_long"
    chunks = [{"type": "markdown_text", "text": "y"}]
    assert await error(web.chat_appendStream(chunks=chunks, **long)) == "streaming_mode_mismatch"
    assert await error(web.chat_appendStream(**long)) == "markdown_text_or_chunks_required"


# Limits and faults.


async def test_calls_over_the_limit_of_a_minute_are_asked_to_wait(slack: FakeSlack) -> None:
    """Each method has its own, which is full again a minute later."""
    web, asked = client(slack), await slack.acts.dm("When?")
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
        form = (await slack.acts.command("/ask", "When?")).payload
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
    web, asked = client(slack), await slack.acts.dm("When?")
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
    assert [one.unfurls for one in slack.world.ours()] == [False, True, False]


async def test_no_token_is_kept(slack: FakeSlack) -> None:
    """Calls are kept without the token they came with."""
    await client(slack).api_call("auth.test", params={"token": BOT_TOKEN})
    assert not any(secret in repr(slack.received) for secret in SECRETS)
    assert (await client(slack).auth_test())["user_id"] == BOT
