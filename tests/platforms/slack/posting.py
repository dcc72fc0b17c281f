"""Checks of every method that writes: of the channel, the thread, text, blocks and metadata."""

import json
from dataclasses import dataclass
from typing import Any

from tests.platforms.shapes import units
from tests.platforms.slack import limits
from tests.platforms.slack.blocks import Surface, objections, too_long
from tests.platforms.slack.calls import Call, Refusal, need
from tests.platforms.slack.state import BOT, Channel, State

READ = {"public": "channels:read", "private": "groups:read", "dm": "im:read", "mpim": "mpim:read"}
HISTORY = {"public": "channels:history", "private": "groups:history", "dm": "im:history", "mpim": "mpim:history"}


@dataclass(frozen=True)
class Content:
    """A message's content."""

    text: str
    blocks: list[dict[str, Any]] | None
    metadata: dict[str, Any] | None


def visible(state: State, channel: str, error: str = "channel_not_found") -> Channel:
    """Return a channel that the bot can see: its own, and all public ones. Raises `Refusal`."""
    found = state.channels.get(channel)
    if found is None or (found.kind != "public" and BOT not in found.members):
        raise Refusal(error)
    return found


def writable(state: State, call: Call, channel: str) -> Channel:
    """Return a channel that the bot may write to; a user's id means the DM with them. Raises `Refusal`."""
    user = state.users.get(channel)
    if user and not user.bot:
        return state.dm(channel)
    found = visible(state, channel)
    if found.archived:
        raise Refusal("is_archived")
    if BOT not in found.members and "chat:write.public" not in call.token.scopes:
        raise Refusal("not_in_channel")
    return found


def readable(state: State, call: Call, channel: str) -> Channel:
    """Return a channel whose messages the bot may read. Raises `Refusal`."""
    found = visible(state, channel)
    need(call.token, {HISTORY[found.kind]})
    if BOT not in found.members:
        raise Refusal("not_in_channel")
    return found


def thread_of(state: State, channel: str, thread: Any) -> str:
    """Return the root's ts that a message is written under. Raises `Refusal`."""
    if not thread:
        return ""
    if state.channels[channel].threadless:
        raise Refusal("restricted_action_non_threadable_channel")
    root = state.messages.get((channel, str(thread)))
    if root is None or root.only:
        raise Refusal("thread_not_found")
    if root.thread:
        # Slack takes a reply's ts and makes a mess of it: "Avoid using a reply's ts value".
        raise Refusal("cannot_reply_to_message")
    return root.ts


def unbegun(state: State, channel: str, thread: str) -> bool:
    """Return whether a thread has no reply yet: private messages are not shown in it then."""
    replies = (
        message for message in state.messages.values() if message.channel == channel and message.thread == thread
    )
    return bool(thread) and all(reply.only for reply in replies)


def content(call: Call, *, most: int = limits.TEXT, weighed: bool = True) -> Content:
    """Return a call's content, checked. Raises `Refusal`."""
    text, blocks = call.get("text") or "", blocks_of(call)
    if units(text) > most:
        raise Refusal("msg_too_long")
    if blocks and weighed and (error := too_long(blocks)):
        raise Refusal(error)
    if not (text.strip() or blocks):
        raise Refusal("no_text")
    return Content(text, blocks, metadata(call))


def blocks_of(call: Call, name: str = "blocks") -> list[dict[str, Any]] | None:
    """Return the blocks of a call, checked. Raises `Refusal`."""
    blocks = call.parsed(name, "invalid_blocks_format")
    if blocks is not None:
        checked(blocks, f"/{name}")
    return blocks


def checked(blocks: Any, where: str = "/blocks", surface: Surface = "message", error: str = "invalid_blocks") -> None:
    """Refuse invalid blocks. Raises `Refusal`."""
    if not isinstance(blocks, list):
        raise Refusal("invalid_blocks_format")
    if found := objections(blocks, surface, where):
        raise Refusal(error, *found, errors=[one.removeprefix("[ERROR] ") for one in found])


def metadata(call: Call) -> dict[str, Any] | None:
    """Return the metadata of a call; an empty one removes the old metadata. Raises `Refusal`."""
    given = call.parsed("metadata", "invalid_metadata_format")
    if given is None or given == {}:
        return given
    well = isinstance(given, dict) and set(given) == {"event_type", "event_payload"}
    if not well or not isinstance(given["event_type"], str) or not given["event_type"]:
        raise Refusal("invalid_metadata_format")
    if not isinstance(given["event_payload"], dict):
        raise Refusal("invalid_metadata_schema")
    if len(json.dumps(given).encode()) > limits.METADATA_BYTES:
        raise Refusal("metadata_too_large")
    return given
