"""What Slack's events mean, without Slack."""

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


def test_a_mention_has_the_key_of_its_message_whichever_event_tells_of_it():
    """It arrives as both, with different ids."""
    text = "<@U0BOT> Why?"
    mention = {name: value for name, value in SAID.items() if name != "channel_type"}
    one = meant(text=text)
    other = parse_event({"event_id": "Ev2", "event": {**mention, "type": "app_mention", "text": text}}, US)

    assert one == other
    assert one.key == "slack:T1/C1/17.000100"
    assert one.mentions(US)


def test_a_question_goes_to_the_thread_of_its_message_or_begins_one():
    """Answers go there, and what is asked there later belongs to it."""
    root = events.build_message_question(meant(), US, ASKER)
    reply = events.build_message_question(meant(ts="18.000000", thread_ts="17.000100"), US, ASKER)

    assert (root.place.thread, root.message) == ("17.000100", "17.000100")
    assert (reply.place.thread, reply.message) == ("17.000100", "18.000000")
    assert root.conversation == reply.conversation == "slack:T1/C1/17.000100"
    assert root.at == datetime(1970, 1, 1, 0, 0, 17, 100, UTC)
    assert (root.place.channel_id, root.handle, root.task) == ("slack:T1/C1", "", "ask")


def test_a_root_whose_thread_is_named_is_a_root_all_the_same():
    """Slack names it where others have replied already."""
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
def test_the_bots_own_name_is_no_part_of_a_question_and_references_are_words(written, said):
    """Whatever form they have, and decoded once."""
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
def test_what_bots_write_what_slack_says_and_what_makes_no_sense_is_nothing(facts):
    """Nobody is answered for it."""
    assert meant(**facts) is None


def test_files_and_broadcasts_are_messages_of_people():
    """Their subtypes say how they were written."""
    assert isinstance(meant(subtype="file_share"), SlackMessagePosted)
    assert isinstance(meant(subtype="thread_broadcast"), SlackMessagePosted)


def test_an_edit_has_the_key_of_what_is_edited_and_its_new_text():
    """A preview that Slack adds is no edit, and one of a bot's message nobody's question."""
    now, before = {**SAID, "text": "Why not?", "edited": {"ts": "18.0"}}, {**SAID}
    changed = {"subtype": "message_changed", "hidden": True, "ts": "18.000000", "previous_message": before}
    found = meant(**changed, message=now)

    assert isinstance(found, SlackMessageEdited)
    assert (found.now.key, found.now.raw) == ("slack:T1/C1/17.000100", "Why not?")
    assert meant(**changed, message={**before, "attachments": [{}]}) is None
    assert meant(**changed, message={**now, "user": "U0BOT", "bot_id": "B0BOT"}) is None


def test_a_deleted_message_is_known_by_its_own_moment_also_where_a_stone_stands_for_it():
    """A root with replies is not gone: Slack puts another text in its place."""
    deleted = {"subtype": "message_deleted", "hidden": True, "ts": "18.000000", "previous_message": {**SAID}}
    stone = {"ts": SAID["ts"], "user": "USLACKBOT", "subtype": "tombstone", "text": "This message was deleted."}
    changed = {"subtype": "message_changed", "hidden": True, "message": stone, "previous_message": {**SAID}}

    assert meant(**deleted, deleted_ts=SAID["ts"]) == meant(**changed) == SlackMessageDeleted("T1", "C1", "17.000100")
    assert meant(**{**deleted, "previous_message": {**SAID, "bot_id": "B0BOT"}}, deleted_ts=SAID["ts"]) is None


def test_a_dm_is_told_by_its_kind_and_a_group_of_several_is_a_channel():
    """In a DM everything is to the bot."""
    assert meant(channel="D1", channel_type="im").direct
    assert not meant(channel="G3", channel_type="mpim").direct


def test_who_is_spoken_to_first_is_whom_a_reply_is_to():
    """In a thread, what is to somebody else is not for the bot."""
    for others in ("<@U2>", "<@U2|ben>", "<!subteam^S1|@ops>", "<!subteam^S1>", "<!here>", "<!channel|@channel>"):
        assert meant(text=f" {others} what do you think?").to_others(US)
    assert not meant(text="<@U0BOT> and <@U2>?").to_others(US)
    assert not meant(text="what does <@U2> think?").to_others(US)
    assert not meant(text="<!date^1|now> or <#C2|later>?").to_others(US)


def test_that_other_organisations_are_there_comes_with_the_event():
    """It counts at once, before anything was looked up."""
    assert parse_event({**event(), "is_ext_shared_channel": True}, US).shared
    assert not parse_event({**event(), "is_ext_shared_channel": False}, US).shared


def test_other_events_are_read_as_what_they_mean():
    """Opening the chat, stopping, channels that change, and the end."""
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


def test_only_our_own_revoked_token_ends_it():
    """Others of the app's are people's."""
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
def test_whatever_comes_is_read_or_is_nothing(made, shared):
    """Nothing that Slack could send raises, and every question has the key of a message."""
    found = parse_event({"event": made, "is_ext_shared_channel": shared}, US)

    if isinstance(found, SlackMessagePosted):
        question = events.build_message_question(found, US, ASKER)
        assert question.key == f"slack:T1/{found.channel}/{found.ts}"
        assert found.user not in {"U0BOT", "USLACKBOT"}
        assert question.at.tzinfo is UTC


@given(
    st.text(max_size=60), st.sampled_from(["<@U0BOT>", "<@U0BOT|f>", "<@U2>", "<#C1|x>", "<!here>", "&lt;@U0BOT&gt;"])
)
def test_no_mention_of_the_bot_stays_in_a_question(text, reference):
    """Wherever it stands; what only looks like one when it is decoded was none."""
    said = events.extract_text(f"{text} {reference} {text}", US)

    assert "<@U2" not in said or "<@U2" in text
    assert ("U0BOT" in said) == ("U0BOT" in text or reference == "&lt;@U0BOT&gt;")
