"""Channels and threads: looked at, begun, joined, archived."""

from typing import Any

from tests.platforms.discord import limits
from tests.platforms.discord.access import allowed, message_in, visible
from tests.platforms.discord.bodies import CREATE, checked, is_new, not_empty
from tests.platforms.discord.calls import NOTHING, Answer, Call, Route, check
from tests.platforms.discord.jsons import channel_json
from tests.platforms.discord.methods.messages import fill
from tests.platforms.discord.refusing import refusal
from tests.platforms.discord.shapes import anything, boolean, choice, fields, integer, nullable, several, string
from tests.platforms.discord.state import (
    BOT,
    FORUM,
    MANAGE_THREADS,
    PRIVATE_THREAD,
    PRIVATE_THREADS,
    PUBLIC_THREADS,
    SEND,
    SILENT,
    SUPPRESS_EMBEDS,
    TEXT,
    THREAD,
    V2,
    Channel,
    Message,
    permissions,
)

_NAME = string(limits.THREAD_NAME, 1)
_LIFE = {"auto_archive_duration": nullable(choice(60, 1440, 4320, 10080)), "rate_limit_per_user": nullable(integer())}
_FROM = fields({"name": _NAME}, _LIFE)
_WITHOUT = fields({"name": _NAME}, {**_LIFE, "type": choice(THREAD, PRIVATE_THREAD), "invitable": boolean})
_POST = fields(
    {"name": _NAME, "message": anything},
    {**_LIFE, "type": choice(THREAD), "applied_tags": nullable(several(anything, 5))},
)
_CHANGE = fields({}, {**_LIFE, "name": _NAME, "archived": boolean, "locked": boolean, "invitable": boolean})


def get(discord: Any, call: Call) -> Answer:
    """Return a channel."""
    return Answer(channel_json(discord.state, visible(discord, call["channel"])))


def from_message(discord: Any, call: Call) -> Answer:
    """Begin a thread at a message; its id is the message's."""
    channel = visible(discord, call["channel"])
    message = message_in(discord, channel, call["message"])
    body = check(call.body, _FROM)
    if channel.kind != TEXT:
        raise refusal(50024)
    allowed(discord, channel, PUBLIC_THREADS)
    if message.thread:
        raise refusal(160004)
    thread = _begun(discord, channel, message.id, THREAD, body)
    message.thread = thread.id
    discord.state.start(thread)
    discord.tell_message("MESSAGE_UPDATE", message)
    return Answer(channel_json(discord.state, thread), 201)


def without(discord: Any, call: Call) -> Answer:
    """Begin a thread of its own, or a post of a forum, whose first message has the thread's id."""
    channel = visible(discord, call["channel"])
    if channel.kind == FORUM:
        return _post(discord, channel, call.body)
    body = check(call.body, _WITHOUT)
    if channel.kind != TEXT:
        raise refusal(50024)
    kind = body.get("type", PRIVATE_THREAD)
    allowed(discord, channel, PRIVATE_THREADS if kind == PRIVATE_THREAD else PUBLIC_THREADS)
    thread = _begun(discord, channel, discord.state.snowflake(), kind, body)
    return Answer(channel_json(discord.state, thread), 201)


def _post(discord: Any, channel: Channel, given: Any) -> Answer:
    body = check(given, _POST)
    allowed(discord, channel, SEND)
    said = checked(body["message"], CREATE, new=is_new(body["message"]), where=("message",))
    not_empty(said.get("content"), said.get("embeds"), said.get("components"))
    thread = _begun(discord, channel, discord.state.snowflake(), THREAD, body)
    message = Message(thread.id, thread.id, BOT)
    fill(message, said)
    message.flags = (said.get("flags") or 0) & (SUPPRESS_EMBEDS | SILENT | V2)
    discord.write(message, said.get("allowed_mentions"))
    return Answer({**channel_json(discord.state, thread), "message": discord.json(message)}, 201)


def _begun(discord: Any, channel: Channel, thread: str, kind: int, body: Any) -> Channel:
    made = Channel(thread, body["name"], kind, channel.guild, {BOT}, parent=channel.id, owner=BOT)
    made.archive_minutes = body.get("auto_archive_duration") or made.archive_minutes
    discord.state.channels[thread] = made
    discord.tell_channel("THREAD_CREATE", made, newly_created=True)
    return made


def change(discord: Any, call: Call) -> Answer:
    """Change a thread: its owner may, and who manages threads."""
    channel = visible(discord, call["channel"])
    if not channel.is_thread:
        raise refusal(50013)
    body = check(call.body, _CHANGE)
    manages = permissions(discord.state, BOT, channel) & MANAGE_THREADS
    if not manages and (channel.owner != BOT or "locked" in body):
        raise refusal(50013)
    if channel.archived and body.get("archived", True):
        raise refusal(50083)
    for name in ("name", "archived", "locked"):
        setattr(channel, name, body.get(name, getattr(channel, name)))
    discord.tell_channel("THREAD_UPDATE", channel)
    return Answer(channel_json(discord.state, channel))


def join(discord: Any, call: Call) -> Answer:
    """Join a thread."""
    visible(discord, call["channel"]).members.add(BOT)
    return NOTHING


def leave(discord: Any, call: Call) -> Answer:
    """Leave a thread."""
    visible(discord, call["channel"]).members.discard(BOT)
    return NOTHING


_HERE = "/channels/{channel}"
ROUTES = (
    Route("get_channel", "GET", _HERE, get),
    Route("edit_channel", "PATCH", _HERE, change, 5, 5),
    Route("create_thread", "POST", _HERE + "/messages/{message}/threads", from_message, 50, 300),
    Route("create_thread_without", "POST", _HERE + "/threads", without, 50, 300),
    Route("join_thread", "PUT", _HERE + "/thread-members/@me", join),
    Route("leave_thread", "DELETE", _HERE + "/thread-members/@me", leave),
)
