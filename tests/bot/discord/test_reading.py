"""Discord's events and interactions, parsed; anything else is ignored."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.platforms.discord import events, interactions
from bot.platforms.discord.events import (
    DiscordBotIdentity,
    DiscordMessageDeleted,
    DiscordMessageEdited,
    DiscordMessagePosted,
    PlaceUpdate,
    build_invitation,
    may_moderate,
)
from bot.platforms.discord.interactions import build_commands, matches_definitions
from bot.platforms.discord.messages import decode_markup

US = DiscordBotIdentity("601", "501")
MESSAGE: dict[str, Any] = {
    "id": "1188000000000000000",
    "channel_id": "201",
    "guild_id": "301",
    "type": 0,
    "content": "<@501> When was it built?",
    "author": {"id": "101", "username": "ana"},
    "member": {"roles": ["401"]},
    "mentions": [{"id": "501", "username": "Footnote"}],
    "mention_roles": [],
    "timestamp": "2023-12-23T00:00:00+00:00",
    "edited_timestamp": None,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["1", "501", "MESSAGE_CREATE"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*MESSAGE, "data", "token", "user", "type", "channel", "ids", "role"]), inner)
    ),
    max_leaves=12,
)


def _written(**more: Any) -> DiscordMessagePosted:
    found = events.parse_event("MESSAGE_CREATE", MESSAGE | more, US)
    assert isinstance(found, DiscordMessagePosted)
    return found


def test_message_event_is_parsed_with_author_roles_and_mentions() -> None:
    found = _written()

    assert (found.key, found.user, found.roles) == ("discord:301/201/1188000000000000000", "101", {"401"})
    assert events.is_addressed(found, US)
    assert events.extract_text(found.raw, US, {}) == "When was it built?"
    assert found.at.year == 2023


@pytest.mark.parametrize(
    "more",
    [
        {"author": {"id": "502", "bot": True}},
        {"author": {"id": "501"}},
        {"webhook_id": "9"},
        {"type": 7},
        {"type": 20},
        {"content": None},
        {"id": "x"},
    ],
)
def test_bot_webhook_and_system_messages_are_ignored(more: dict[str, Any]) -> None:
    assert events.parse_event("MESSAGE_CREATE", MESSAGE | more, US) is None


@pytest.mark.parametrize(
    ("more", "ours", "another"),
    [
        ({"content": "Lunch?", "mentions": []}, False, False),
        ({"content": "<@102> lunch?", "mentions": [{"id": "102"}]}, False, True),
        ({"content": "@everyone lunch?", "mentions": []}, False, True),
        ({"content": "<@&777> hi", "mentions": [], "mention_roles": ["777"]}, True, True),
        ({"content": "And?", "mentions": [], "referenced_message": {"author": {"id": "501"}}}, True, False),
        ({"content": "And?", "mentions": [], "referenced_message": {"author": {"id": "102"}}}, False, True),
        ({"content": "", "mentions": [], "guild_id": None}, True, False),
    ],
)
def test_addressee_of_a_message_is_recognised(more: dict[str, Any], *, ours: bool, another: bool) -> None:
    found = _written(**more)

    assert events.is_addressed(found, US, {"777"}) is ours
    assert events.is_to_another(found, US) is another


def test_edits_and_bulk_deletions_are_parsed() -> None:
    edited = events.parse_event("MESSAGE_UPDATE", MESSAGE | {"edited_timestamp": "2024-01-01T00:00:00+00:00"}, US)
    gone = events.parse_event("MESSAGE_DELETE_BULK", {"ids": ["2", "1"], "channel_id": "201", "guild_id": "301"}, US)

    assert isinstance(edited, DiscordMessageEdited)
    assert events.parse_event("MESSAGE_UPDATE", MESSAGE, US) is None
    assert gone == DiscordMessageDeleted("301", "201", ("1", "2"))


def test_server_event_lists_threads_and_our_role() -> None:
    roles = [{"id": "7", "name": "Footnote", "tags": {"bot_id": "501"}}, {"id": "8", "name": "crew"}]
    body = {"id": "301", "channels": [{"id": "1", "type": 0, "name": "a"}], "roles": roles}
    found = events.parse_event("GUILD_CREATE", body | {"threads": [{"id": "2", "type": 11, "parent_id": "1"}]}, US)

    assert isinstance(found, PlaceUpdate)
    assert [(channel.id, channel.parent, channel.is_thread, channel.guild) for channel in found.channels] == [
        ("1", "", False, "301"),
        ("2", "1", True, "301"),
    ]
    assert (found.ours, found.roles) == ("7", {"7": "Footnote", "8": "crew"})


@given(
    st.sampled_from([*events.PARSERS, "TYPING_START"]),
    st.dictionaries(st.sampled_from([*MESSAGE, "ids"]), JSON),
)
def test_any_gateway_event_is_parsed_without_an_error(event: str, data: dict[str, Any]) -> None:
    events.parse_event(event, data, US)
    events.parse_event(event, MESSAGE | data, US)


@given(st.dictionaries(st.sampled_from(["id", "token", "type", "data", "user", "member", "channel", "guild_id"]), JSON))
def test_any_interaction_is_parsed_without_an_error(data: dict[str, Any]) -> None:
    whole = {"id": "9", "token": "t", "type": 2, "user": {"id": "1"}, "channel_id": "2", "data": {"name": "ask"}}
    for body in (data, whole | data):
        if found := interactions.parse_invocation(body, US):
            interactions.parse_question(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<@102> and <@!999>", "@ben and @somebody"),
        ("<#201> <#5>", "#general #channel"),
        ("<@&8>", "@crew"),
        ("<:wave:1> <a:dance:2>", ":wave: :dance:"),
        ("<t:1700000000:d> <t:1700000000>", "2023-11-14 2023-11-14 22:13"),
        ("<t:99999999999999:R>", "<t:99999999999999:R>"),
        ("</ask:5> <https://x.example/a> <id:customize>", "/ask https://x.example/a #customize"),
        ("1 < 2 <b> **so**", "1 < 2 <b> **so**"),
    ],
)
def test_mentions_emoji_times_and_links_become_words(text: str, expected: str) -> None:
    assert decode_markup(text, {"102": "ben", "201": "general", "8": "crew"}) == expected


@given(st.text(alphabet="<>@#&!:tidask/0123456789 ", max_size=60))
def test_every_mention_by_id_is_replaced(text: str) -> None:
    assert "<@1>" not in decode_markup(text + "<@1>", {})


def test_snowflake_converts_to_time_and_back() -> None:
    at = events.parse_snowflake_time("1188000000000000000").timestamp()

    assert events.parse_snowflake_time(str(events.build_snowflake(at))).timestamp() == at


@pytest.mark.parametrize("user_install", [False, True])
def test_registered_commands_are_recognised_as_unchanged(*, user_install: bool) -> None:
    ours = build_commands(user_install=user_install)
    theirs = [
        {**one, "id": "1", "version": "2", "nsfw": False, "description": one.get("description", "")} for one in ours
    ]

    assert matches_definitions(ours, theirs)
    assert not matches_definitions(ours, [{**theirs[0], "description": "else"}, *theirs[1:]])
    assert not matches_definitions(ours, build_commands(user_install=not user_install))


def test_permissions_are_parsed_from_decimal_strings() -> None:
    assert [may_moderate(one) for one in ("0", "8192", "8", "x", None)] == [False, True, True, False, False]
    assert build_invitation("601").endswith("&permissions=309237713920")
