"""The fake Slack itself, with Slack's own clients in between: what people do reaches an app over both transports."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_bolt.async_app import AsyncApp

from tests.platforms.clock import ManualClock
from tests.platforms.slack import limits
from tests.platforms.slack.apps import bolt, button, client, error, over_http, over_socket, section, view
from tests.platforms.slack.request_url import verification
from tests.platforms.slack.server import FakeSlack, serve
from tests.platforms.slack.signing import FORGERIES, signed
from tests.platforms.slack.state import APP_TOKEN, OTHER_BOT, SIGNING_SECRET
from tests.platforms.slack.transcript import modal


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
        asked = await either.people.mention("When was it built?", user="U2")
        await either.until(lambda: either.people.answers(asked) and len(heard) == 2 and not either.courier.unacked)

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
        await either.people.press("footnote:down", posted["ts"])
        await either.until(lambda: either.state.views.get("U1"))
        await either.people.submit(comment="")
        await either.until(lambda: either.people.view().errors)
        assert modal(either.people.view(), either.state) == (
            "= Evidence =\nWhat was wrong?: [_____]\n! Say something\n[Send]"
        )
        await either.people.submit(comment="The year")
        await either.until(lambda: not either.state.views["U1"])

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
        await either.people.command("/ask", "When?", user="U2")
        await either.until(lambda: len(either.state.messages) == 3)

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
        said = await either.people.say("It is 5 m high.")
        await either.people.shortcut("check", said, user="U2")
        await either.people.edit(said, "It is 6 m high.")
        await either.people.delete(said)
        await either.people.open_home()
        await either.people.rename("C2", "port")
        await either.people.share("C2")
        await either.people.archive("C2")
        await either.until(lambda: not either.courier.unacked and "It is 5 m high." in heard)
        await either.people.uninstall()
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
        await slack.people.say("Hello")
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
        await slack.people.say("Hello")
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
        await slack.people.say("Hello")
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
        await slack.people.say("Hello")
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
    await slack.people.mention("When?", user=OTHER_BOT)
    await slack.people.invite("C1", "UX")
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
        await slack.people.say("Hello")
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
            await slack.people.say(f"{number}")
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
    await slack.people.mention("When?", channel="C4")
    await slack.people.kick("C2")
    await slack.people.mention("When?", channel="C2")
    assert [one.payload["event"]["type"] for one in slack.courier.unacked] == ["channel_left"]


async def test_the_same_event_comes_again_as_asked(slack: FakeSlack) -> None:
    """With the same id, or as a new event of the same message."""
    app, heard = bolt(slack), list[Any]()

    @app.event("message")
    async def on_message(body: dict[str, Any]) -> None:
        heard.append((body["event_id"], body["event"]["ts"]))
        slack.notify()

    async with over_socket(app, slack):
        said = await slack.people.say("Hello")
        await slack.people.again(said, same_id=True)
        await slack.people.again(said)
        await slack.until(lambda: len(heard) == 3)

    assert len({event for event, _ in heard}) == 2
    assert {ts for _, ts in heard} == {said}


async def test_what_is_pressed_comes_once_and_silence_is_told(slack: FakeSlack) -> None:
    """Whoever typed a command that nobody took is told so, alone."""
    async with over_socket(bolt(slack), slack) as handler:
        handler.client.socket_mode_request_listeners = []
        await slack.people.command("/ask", "When?")
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
