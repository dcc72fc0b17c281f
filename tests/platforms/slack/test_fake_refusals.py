"""What the fake Slack refuses, in Slack's own words, and what it hands back; and its streams."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError

from tests.platforms.clock import ManualClock
from tests.platforms.fake_server import refused
from tests.platforms.slack.apps import button, client, error, section
from tests.platforms.slack.server import FakeSlack, serve
from tests.platforms.slack.state import BOT_TOKEN, TEAM

TO = {"recipient_team_id": TEAM, "recipient_user_id": "U1"}


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with serve(clock=ManualClock()) as fake:
        yield fake
        assert fake.errors == []


async def test_tokens_and_scopes_are_checked(slack: FakeSlack) -> None:
    """With Slack's own words for what is missing."""
    assert await error(client(slack, "xoxb-nobody").auth_test()) == "invalid_auth"
    assert await error(client(slack).apps_connections_open(app_token=BOT_TOKEN)) == "not_allowed_token_type"
    slack.state.tokens[BOT_TOKEN].scopes.discard("chat:write")
    with pytest.raises(SlackApiError) as caught:
        await client(slack).chat_postMessage(channel="C1", text="Hello")
    assert caught.value.response["error"] == "missing_scope"
    assert caught.value.response["needed"] == "chat:write"
    assert "users:read" in caught.value.response["provided"]
    await slack.people.revoke()
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
    assert slack.state.messages == {}


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


async def test_what_one_person_is_to_see_in_a_thread_is_shown_once_the_thread_has_replies(slack: FakeSlack) -> None:
    """Slack takes it all the same."""
    web, root = client(slack), await slack.people.say("Hello")
    at = {"channel": "C1", "user": "U1", "thread_ts": root}
    await web.chat_postEphemeral(text="Too early", **at)
    await slack.people.say("Hello to you", thread=root, user="U2")
    await web.chat_postEphemeral(text="In time", **at)

    assert "Too early" not in slack.seen("C1", by="U1")
    assert "Footnote (only you see this): In time" in slack.seen("C1", by="U1")


async def test_only_what_is_ours_and_there_is_changed(slack: FakeSlack) -> None:
    """Neither others' messages nor what one person saw, nor in archived channels."""
    web = client(slack)
    theirs = await slack.people.say("Hello")
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
    await slack.people.archive("C1")
    assert await error(web.chat_update(channel="C1", ts=ours, text="y")) == "is_inactive"


async def test_metadata_stays_over_updates_and_is_read_back(slack: FakeSlack) -> None:
    """Only where it is asked for, and until it is taken away."""
    web, mark = client(slack), {"event_type": "footnote_answer", "event_payload": {"key": "k"}}
    asked = await slack.people.say("When?")
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
    web, root = client(slack), await slack.people.say("0")
    for number in range(1, 6):
        await slack.people.say(f"{number}", thread=root)
    await slack.people.say("top")
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
    root = await slack.people.say("When?")
    await client(slack).chat_postMessage(channel="C1", thread_ts=root, text="1887.")
    await slack.people.delete(root)

    assert "Slackbot: This message was deleted." in slack.seen("C1", by="U1")
    changed = slack.courier.unacked[-1].payload["event"]
    assert (changed["subtype"], changed["message"]["subtype"]) == ("message_changed", "tombstone")


# Streams.


async def test_a_stream_is_read_while_it_is_written(slack: FakeSlack) -> None:
    """Task cards, text, and blocks at its end; the status that was shown before goes."""
    web, asked = client(slack), await slack.people.mention("When?", silent=True)
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
    assert slack.people.answers(asked)[0].text == "In 1887."


async def test_slacks_own_class_streams(slack: FakeSlack) -> None:
    """Buffered, in a DM without a recipient."""
    asked = await slack.people.dm("When?")
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
    asked = await slack.people.say("When?")
    given = {"channel": "C1", "thread_ts": asked, **TO} | arguments
    given = {name: value for name, value in given.items() if value is not None}
    assert await error(client(slack).api_call("chat.startStream", json=given)) == expected
    assert slack.people.answers(asked) == []


async def test_streams_end(slack: FakeSlack) -> None:
    """After five minutes, by the asker, and by growing too long; the other mode is refused."""
    web, asked = client(slack), await slack.people.say("When?")

    async def begun() -> dict[str, Any]:
        stream = await web.chat_startStream(channel="C1", thread_ts=asked, markdown_text="x", **TO)
        return {"channel": "C1", "ts": stream["ts"]}

    old, stopped = await begun(), None
    await slack.clock.advance(300)
    assert await error(web.chat_appendStream(markdown_text="y", **old)) == "message_not_in_streaming_state"
    assert await error(web.chat_stopStream(**old)) == "message_not_in_streaming_state"
    await web.chat_update(text="whole", **old)
    stopped = await begun()
    await slack.people.stop("C1", asked)
    assert await error(web.chat_appendStream(markdown_text="y", **stopped)) == "stopped_by_user"
    told = slack.courier.unacked[-1].payload["event"]
    assert (told["type"], told["streaming_message_ts"]) == ("agent_session_stopped", [stopped["ts"]])
    long = await begun()
    await web.chat_appendStream(markdown_text="y" * 10_000, **long)
    assert await error(web.chat_appendStream(markdown_text="é" * 400, **long)) == "msg_too_long"
    chunks = [{"type": "markdown_text", "text": "y"}]
    assert await error(web.chat_appendStream(chunks=chunks, **long)) == "streaming_mode_mismatch"
    assert await error(web.chat_appendStream(**long)) == "markdown_text_or_chunks_required"
