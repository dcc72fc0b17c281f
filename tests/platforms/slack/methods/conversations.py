"""conversations.*: channels, their members and messages, page by page."""

import base64
from collections.abc import Sequence
from typing import Any

from tests.platforms.slack import limits
from tests.platforms.slack.calls import Call, Refusal, method, need
from tests.platforms.slack.events import channel_json, message_json
from tests.platforms.slack.posting import READ, readable, visible
from tests.platforms.slack.state import BOT, Channel, Message, State


def _info(slack: Any, call: Call) -> dict[str, Any]:
    channel = visible(slack.state, call["channel"])
    need(call.token, {READ[channel.kind]})
    return {"channel": channel_json(channel)}


def _listed(slack: Any, call: Call) -> dict[str, Any]:
    return _channels(slack, call, list(slack.state.channels.values()))


def _of_user(slack: Any, call: Call) -> dict[str, Any]:
    return _channels(slack, call, [channel for channel in slack.state.channels.values() if BOT in channel.members])


def _channels(slack: Any, call: Call, channels: Sequence[Channel]) -> dict[str, Any]:
    names = {"public_channel": "public", "private_channel": "private", "im": "dm", "mpim": "mpim"}
    kinds = {names[name.strip()] for name in (call.get("types") or "public_channel").split(",")}
    for kind in kinds:
        need(call.token, {READ[kind]})
    found = [
        channel
        for channel in channels
        if channel.kind in kinds and (channel.kind == "public" or BOT in channel.members)
    ]
    if call.flag("exclude_archived"):
        found = [one for one in found if not one.archived]
    page, following = _paged(found, call, slack)
    return {"channels": [channel_json(one) for one in page], **_following(following)}


def _replies(slack: Any, call: Call) -> dict[str, Any]:
    state = slack.state
    channel = readable(state, call, call["channel"])
    found = state.messages.get((channel.id, str(call["ts"])))
    if found is None or found.only:
        raise Refusal("thread_not_found")
    root, *replies = state.thread(channel.id, found.root)
    if found.thread:  # a reply's ts is answered with the thread, as documented
        root = state.messages[channel.id, found.thread]
    page, following = _paged(_between(replies, call), call, slack)
    # Every page begins with the root [K].
    return _messages([root, *page], following, call, state)


def _history(slack: Any, call: Call) -> dict[str, Any]:
    channel = readable(slack.state, call, call["channel"])
    found = _between(slack.state.top(channel.id), call)[::-1]
    page, following = _paged(found, call, slack, normal=100)
    return _messages(page, following, call, slack.state)


def _messages(page: Sequence[Message], following: str, call: Call, state: State) -> dict[str, Any]:
    metadata = call.flag("include_all_metadata")
    found = [message_json(one, state, metadata=metadata) for one in page]
    return {"messages": found, "has_more": bool(following), **_following(following)}


def _between(messages: Sequence[Message], call: Call) -> list[Message]:
    oldest, latest = float(call.get("oldest") or 0), float(call.get("latest") or "inf")
    within = call.flag("inclusive")
    return [
        message
        for message in messages
        if oldest < float(message.ts) < latest or (within and float(message.ts) in {oldest, latest} - {0.0})
    ]


def _paged(found: Sequence[Any], call: Call, slack: Any, normal: int = limits.PAGE) -> tuple[list[Any], str]:
    """Return a page and the cursor of the next. Pages may be shorter than was asked for."""
    try:
        begin = int(base64.b64decode(call.get("cursor") or b"", validate=True).decode().rpartition(":")[2] or 0)
    except ValueError:
        raise Refusal("invalid_cursor") from None
    most = int(call.get("limit") or normal)
    if not 0 < most <= limits.PAGE:
        raise Refusal("invalid_limit")
    end = begin + min(most, slack.page)
    following = base64.b64encode(f"next:{end}".encode()).decode() if end < len(found) else ""
    return list(found[begin:end]), following


def _following(cursor: str) -> dict[str, Any]:
    return {"response_metadata": {"next_cursor": cursor}}


_PAGES = "cursor limit"
_SPAN = f"{_PAGES} oldest latest inclusive include_all_metadata"
METHODS = {
    "conversations.info": method(_info, "channel", ""),
    "conversations.list": method(_listed, "", f"types exclude_archived {_PAGES}"),
    "conversations.replies": method(_replies, "channel ts", _SPAN),
    "conversations.history": method(_history, "channel", _SPAN),
    "users.conversations": method(_of_user, "", f"types exclude_archived {_PAGES}"),
}
