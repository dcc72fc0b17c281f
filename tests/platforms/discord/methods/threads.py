"""Channels and threads: looked at, begun, joined, archived."""

from typing import Any

from tests.platforms.discord import limits
from tests.platforms.discord.access import allowed, message_in, visible
from tests.platforms.discord.calls import Answer, Call, Route, check
from tests.platforms.discord.jsons import channel_json
from tests.platforms.discord.refusing import refusal
from tests.platforms.discord.state import (
    BOT,
    MANAGE_THREADS,
    PUBLIC_THREADS,
    TEXT,
    THREAD,
    Channel,
    permissions,
)
from tests.platforms.shapes import BOOL, choice, fields, kind, nullable, words

_NAME = words(limits.THREAD_NAME)
_LIFE = {"auto_archive_duration": nullable(choice(60, 1440, 4320, 10080)), "rate_limit_per_user": nullable(kind(int))}
_FROM = fields({"name": _NAME}, _LIFE)
_CHANGE = fields({}, {**_LIFE, "name": _NAME, "archived": BOOL, "locked": BOOL, "invitable": BOOL})


def get(discord: Any, call: Call) -> Answer:
    return Answer(channel_json(discord.state, visible(discord, call["channel"])))


def from_message(discord: Any, call: Call) -> Answer:
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
    discord.send_message_event("MESSAGE_UPDATE", message)
    return Answer(channel_json(discord.state, thread), 201)


def _begun(discord: Any, channel: Channel, thread: str, kind: int, body: Any) -> Channel:
    made = Channel(thread, body["name"], kind, channel.guild, {BOT}, parent=channel.id, owner=BOT)
    made.archive_minutes = body.get("auto_archive_duration") or made.archive_minutes
    discord.state.channels[thread] = made
    discord.send_channel_event("THREAD_CREATE", made, newly_created=True)
    return made


def change(discord: Any, call: Call) -> Answer:
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
    discord.send_channel_event("THREAD_UPDATE", channel)
    return Answer(channel_json(discord.state, channel))


_HERE = "/channels/{channel}"
ROUTES = (
    Route("get_channel", "GET", _HERE, get),
    Route("edit_channel", "PATCH", _HERE, change, 5, 5),
    Route("create_thread", "POST", _HERE + "/messages/{message}/threads", from_message, 50, 300),
)
