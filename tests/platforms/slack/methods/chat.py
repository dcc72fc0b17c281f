"""chat.*: messages that are posted, shown to one person, changed and deleted."""

import copy
from typing import Any

from tests.platforms.slack import limits
from tests.platforms.slack.calls import Call, Refusal, method
from tests.platforms.slack.events import message_json
from tests.platforms.slack.posting import content, thread_of, unbegun, visible, writable
from tests.platforms.slack.state import BOT, Message


def _post(slack: Any, call: Call) -> dict[str, Any]:
    state = slack.state
    channel = writable(state, call, call["channel"])
    thread = thread_of(state, channel.id, call.get("thread_ts"))
    said = content(call)
    message = Message(state.ts(), channel.id, BOT, said.text, thread, said.blocks or [], said.metadata)
    message.unfurls = call.flag("unfurl_links", default=True) or call.flag("unfurl_media", default=True)
    slack.wrote(state.add(message))
    return {"channel": channel.id, "ts": message.ts, "message": message_json(message, state)}


def _whisper(slack: Any, call: Call) -> dict[str, Any]:
    state = slack.state
    channel = writable(state, call, call["channel"])
    if call["user"] not in channel.members:
        raise Refusal("user_not_in_channel")
    thread = thread_of(state, channel.id, call.get("thread_ts"))
    said = content(call)
    message = Message(state.ts(), channel.id, BOT, said.text, thread, said.blocks or [])
    message.only, message.unshown = call["user"], unbegun(state, channel.id, thread)
    slack.showed(state.add(message))
    return {"message_ts": message.ts}


def _update(slack: Any, call: Call) -> dict[str, Any]:
    state = slack.state
    message = _ours(slack, call, "cant_update_message")
    if state.channels[message.channel].archived:
        raise Refusal("is_inactive")
    if message.stream and slack.streaming(message):
        raise Refusal("streaming_state_conflict")
    said = content(call, most=limits.UPDATED_TEXT)
    before = copy.deepcopy(message)
    message.stream = None
    message.text, message.blocks = said.text or message.text, said.blocks or []
    message.metadata = message.metadata if said.metadata is None else (said.metadata or None)
    message.edited = message.edited if said.blocks else state.ts()
    slack.changed(message, before)
    return {"channel": message.channel, "ts": message.ts, "text": message.text, "message": message_json(message, state)}


def _delete(slack: Any, call: Call) -> dict[str, Any]:
    message = _ours(slack, call, "cant_delete_message")
    slack.removed(message)
    return {"channel": message.channel, "ts": message.ts}


def _ours(slack: Any, call: Call, error: str) -> Message:
    channel = visible(slack.state, call["channel"])
    found = slack.state.messages.get((channel.id, str(call["ts"])))
    if found is None or found.only:
        raise Refusal("message_not_found")
    if found.user != BOT:
        raise Refusal(error)
    return found


_POST = "text blocks thread_ts metadata unfurl_links unfurl_media"
METHODS = {
    "chat.postMessage": method(_post, "channel", _POST, scopes="chat:write"),
    "chat.postEphemeral": method(_whisper, "channel user", "text blocks thread_ts", scopes="chat:write"),
    "chat.update": method(_update, "channel ts", "text blocks metadata", scopes="chat:write"),
    "chat.delete": method(_delete, "channel ts", scopes="chat:write"),
}
