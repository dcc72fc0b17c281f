"""Slack's events, parsed."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.access import Asker
from bot.platforms.slack import events
from bot.platforms.slack.events import (
    PARSERS,
    AssistantOpened,
    ChannelChanged,
    Invited,
    SlackBotIdentity,
    SlackMessageDeleted,
    SlackMessageEdited,
    SlackMessagePosted,
    StopRequested,
    WorkspaceDisconnected,
    parse_event,
)

US = SlackBotIdentity("T1", "U0BOT", "B0BOT")
ASKER = Asker("slack", "channel", "T1", "C1", "U1", shared_with_other_organisations=False)
SAID = {"type": "message", "channel": "C1", "channel_type": "channel", "user": "U1", "ts": "17.000100", "text": "Why?"}


def event(**facts):
    return {"type": "event_callback", "event": {**SAID, **facts}}


def meant(**facts):
    return parse_event(event(**facts), US)


def test_mention_has_the_same_key_in_both_events():
    text = "<@U0BOT> Why?"
    mention = {name: value for name, value in SAID.items() if name != "channel_type"}
    one = meant(text=text)
    other = parse_event({"event_id": "Ev2", "event": {**mention, "type": "app_mention", "text": text}}, US)

    assert one == other
    assert one.key == "slack:T1/C1/17.000100"
    assert one.mentions(US)


def test_question_belongs_to_the_thread_of_its_message():
    root = events.build_message_question(meant(), US, ASKER)
    reply = events.build_message_question(meant(ts="18.000000", thread_ts="17.000100"), US, ASKER)

    assert (root.place.thread, root.message) == ("17.000100", "17.000100")
    assert (reply.place.thread, reply.message) == ("17.000100", "18.000000")
    assert root.conversation == reply.conversation == "slack:T1/C1/17.000100"
    assert root.at == datetime(1970, 1, 1, 0, 0, 17, 100, UTC)
    assert (root.place.channel_id, root.handle, root.task) == ("slack:T1/C1", "", "ask")


def test_root_message_with_replies_has_no_thread():
    assert meant(thread_ts=SAID["ts"]).thread == ""


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("<@U0BOT> Why?", "Why?"),
        ("<@U0BOT>: why?", "why?"),
        ("<@U0BOT|footnote>, why?", "why?"),
        ("Hey <@U0BOT> why?", "Hey why?"),
        ("<@U0BOT>", ""),
        ("Does <@U2|ben> know <#C2|general>?", "Does @ben know #general?"),
        (
            "See <https://x.example/a?b=1&amp;c|this> &lt;now&gt; &amp; then",
            "See this (https://x.example/a?b=1&c) <now> & then",
        ),
        ("a\n<@U0BOT>\nb", "a\n\nb"),
        ("&amp;lt;", "&lt;"),
    ],
)
def test_mention_of_the_bot_is_removed_from_a_question(written, said):
    assert events.extract_text(written, US) == said


@pytest.mark.parametrize(
    "facts",
    [
        {"bot_id": "B7"},
        {"user": "U0BOT"},
        {"user": "USLACKBOT"},
        {"user": None},
        {"subtype": "channel_join"},
        {"subtype": "bot_message"},
        {"hidden": True},
        {"ts": "now"},
        {"ts": None},
        {"channel": None},
        {"text": {"odd": 1}},
        {"type": "reaction_added"},
        {"subtype": "message_changed", "message": "odd"},
        {"subtype": "message_deleted", "deleted_ts": "never"},
    ],
)
def test_bot_system_and_invalid_messages_are_ignored(facts):
    assert meant(**facts) is None


def test_files_and_broadcasts_are_messages_of_people():
    assert isinstance(meant(subtype="file_share"), SlackMessagePosted)
    assert isinstance(meant(subtype="thread_broadcast"), SlackMessagePosted)


def test_edit_event_is_parsed_with_its_key_and_new_text():
    now, before = {**SAID, "text": "Why not?", "edited": {"ts": "18.0"}}, {**SAID}
    changed = {"subtype": "message_changed", "hidden": True, "ts": "18.000000", "previous_message": before}
    found = meant(**changed, message=now)

    assert isinstance(found, SlackMessageEdited)
    assert (found.now.key, found.now.raw) == ("slack:T1/C1/17.000100", "Why not?")
    assert meant(**changed, message={**before, "attachments": [{}]}) is None
    assert meant(**changed, message={**now, "user": "U0BOT", "bot_id": "B0BOT"}) is None


def test_deletion_and_tombstone_name_the_deleted_message():
    deleted = {"subtype": "message_deleted", "hidden": True, "ts": "18.000000", "previous_message": {**SAID}}
    stone = {"ts": SAID["ts"], "user": "USLACKBOT", "subtype": "tombstone", "text": "This message was deleted."}
    changed = {"subtype": "message_changed", "hidden": True, "message": stone, "previous_message": {**SAID}}

    assert meant(**deleted, deleted_ts=SAID["ts"]) == meant(**changed) == SlackMessageDeleted("T1", "C1", "17.000100")
    assert meant(**{**deleted, "previous_message": {**SAID, "bot_id": "B0BOT"}}, deleted_ts=SAID["ts"]) is None


def test_group_dm_is_not_a_dm():
    assert meant(channel="D1", channel_type="im").direct
    assert not meant(channel="G3", channel_type="mpim").direct


def test_message_is_to_others_if_it_begins_with_their_mention():
    for others in ("<@U2>", "<@U2|ben>", "<!subteam^S1|@ops>", "<!subteam^S1>", "<!here>", "<!channel|@channel>"):
        assert meant(text=f" {others} what do you think?").to_others(US)
    assert not meant(text="<@U0BOT> and <@U2>?").to_others(US)
    assert not meant(text="what does <@U2> think?").to_others(US)
    assert not meant(text="<!date^1|now> or <#C2|later>?").to_others(US)


def test_shared_flag_of_an_event_is_parsed():
    assert parse_event({**event(), "is_ext_shared_channel": True}, US).shared
    assert not parse_event({**event(), "is_ext_shared_channel": False}, US).shared


def test_each_kind_of_event_is_parsed():
    assert parse_event(
        {"event": {"type": "app_home_opened", "tab": "messages", "channel": "D1", "user": "U1"}}, US
    ) == AssistantOpened("D1", "U1")
    at_home = {"type": "app_home_opened", "tab": "home", "channel": "D1", "user": "U1"}
    assert parse_event({"event": at_home}, US) == AssistantOpened("D1", "U1", home=True)
    assert parse_event({"event": {**at_home, "tab": "about"}}, US) is None
    taken_in = {"type": "member_joined_channel", "user": US.user, "channel": "C1", "inviter": "U9"}
    assert parse_event({"event": taken_in}, US) == Invited("T1", "C1", "U9")
    assert parse_event({"event": {**taken_in, "user": "U2"}}, US) is None
    halt = {"type": "agent_session_stopped", "channel": "C1", "thread_ts": "17.1", "user": "U1"}
    assert parse_event({"event": {**halt, "streaming_message_ts": ["18.1"]}}, US) == StopRequested(
        "T1", "C1", "17.1", "U1", ("18.1",)
    )
    assert parse_event({"event": {"type": "channel_rename", "channel": {"id": "C1"}}}, US) == ChannelChanged(
        "C1", "channel_rename"
    )
    assert parse_event({"event": {"type": "channel_shared", "channel": "C1"}}, US) == ChannelChanged(
        "C1", "channel_shared"
    )
    assert isinstance(parse_event({"event": {"type": "app_uninstalled"}}, US), WorkspaceDisconnected)


def test_only_the_bots_revoked_token_disconnects():
    revoked = {"type": "tokens_revoked", "tokens": {"oauth": ["U7"], "bot": ["U0BOT"]}}

    assert isinstance(parse_event({"event": revoked}, US), WorkspaceDisconnected)
    assert parse_event({"event": {**revoked, "tokens": {"oauth": ["U7"]}}}, US) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
TS = st.sampled_from(["17.000100", "18.1", "", "nan", "1e9.1"])
FIELDS = {
    "subtype": st.sampled_from(["", "message_changed", "message_deleted", "tombstone", "file_share", "bot_message"]),
    "channel": st.sampled_from(["C1", "D1", ""]) | JSON,
    "channel_type": st.sampled_from(["im", "channel"]) | JSON,
    "user": st.sampled_from(["U1", "U0BOT"]) | JSON,
    "ts": TS | JSON,
    "thread_ts": TS | JSON,
    "deleted_ts": TS | JSON,
    "text": st.text(max_size=20) | JSON,
    "tokens": JSON,
    "tab": st.sampled_from(["messages", "home"]) | JSON,
}
INNER = st.fixed_dictionaries({}, optional=FIELDS)
EVENTS = st.builds(
    lambda kind, facts, more: {"type": kind, **facts, **more},
    st.sampled_from([*PARSERS, "reaction_added"]),
    INNER,
    st.fixed_dictionaries({}, optional={"message": INNER | JSON, "previous_message": INNER | JSON}),
)


@given(EVENTS, JSON)
def test_any_event_is_parsed_without_an_error(made, shared):
    found = parse_event({"event": made, "is_ext_shared_channel": shared}, US)

    if isinstance(found, SlackMessagePosted):
        question = events.build_message_question(found, US, ASKER)
        assert question.key == f"slack:T1/{found.channel}/{found.ts}"
        assert found.user not in {"U0BOT", "USLACKBOT"}
        assert question.at.tzinfo is UTC


@given(
    st.text(max_size=60), st.sampled_from(["<@U0BOT>", "<@U0BOT|f>", "<@U2>", "<#C1|x>", "<!here>", "&lt;@U0BOT&gt;"])
)
def test_no_mention_of_the_bot_is_left_in_a_question(text, reference):
    said = events.extract_text(f"{text} {reference} {text}", US)

    assert "<@U2" not in said or "<@U2" in text
    assert ("U0BOT" in said) == ("U0BOT" in text or reference == "&lt;@U0BOT&gt;")
