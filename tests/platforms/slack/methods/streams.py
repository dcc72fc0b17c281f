"""chat.startStream, appendStream and stopStream: messages that are written while they are read."""

import copy
from collections.abc import Mapping
from typing import Any

from tests.platforms.shapes import choice, fields, several, string, typed
from tests.platforms.slack import limits
from tests.platforms.slack.blocks import objections
from tests.platforms.slack.calls import Call, Refusal, method
from tests.platforms.slack.events import message_json
from tests.platforms.slack.posting import metadata, thread_of, visible, writable
from tests.platforms.slack.state import BOT, Message, Stream

_CHUNKS = several(
    typed(
        {
            "markdown_text": fields({"type": string(), "text": string(limits.MARKDOWN)}),
            "task_update": fields(
                {
                    "type": string(),
                    "id": string(limits.TASK_FIELD),
                    "title": string(limits.TASK_FIELD),
                    "status": choice("pending", "in_progress", "complete", "error"),
                },
                {"details": string(limits.TASK_FIELD, 0)},
            ),
            "blocks": fields({"type": string(), "blocks": several(lambda *_: iter(()), limits.MESSAGE_BLOCKS)}),
        }
    )
)


def _start(slack: Any, call: Call) -> dict[str, Any]:
    state = slack.state
    channel = writable(state, call, call["channel"])
    thread = thread_of(state, channel.id, call["thread_ts"])
    if channel.kind != "dm":
        for name in ("recipient_team_id", "recipient_user_id"):
            if not call.get(name):
                raise Refusal(f"missing_{name}")
        if call["recipient_user_id"] not in state.users:
            raise Refusal("user_not_found")
        if state.users[call["recipient_user_id"]].team != call["recipient_team_id"]:
            raise Refusal("team_not_found")
    stream = Stream(state.clock.now())
    message = Message(state.ts(), channel.id, BOT, thread=thread, stream=stream)
    _take(message, stream, call)
    slack.wrote(state.add(message))
    return {"channel": channel.id, "ts": message.ts}


def _append(slack: Any, call: Call) -> dict[str, Any]:
    message, stream = _streamed(slack, call)
    if stream.state == "stopped_by_user":
        raise Refusal("stopped_by_user")
    _streaming(slack, message)
    _take(message, stream, call)
    slack.showed(message)
    return {"channel": message.channel, "ts": message.ts}


def _stop(slack: Any, call: Call) -> dict[str, Any]:
    message, stream = _streamed(slack, call)
    _streaming(slack, message)
    before, message.metadata, stream.state = copy.deepcopy(message), metadata(call) or None, "complete"
    slack.changed(message, before)
    return {"channel": message.channel, "ts": message.ts, "message": message_json(message, slack.state)}


def _streamed(slack: Any, call: Call) -> tuple[Message, Stream]:
    channel = visible(slack.state, call["channel"])
    message = slack.state.messages.get((channel.id, str(call["ts"])))
    if message is None:
        raise Refusal("message_not_found")
    if message.user != BOT:
        raise Refusal("message_not_owned_by_app")
    if message.stream is None:
        raise Refusal("message_not_in_streaming_state")
    if channel.archived:
        raise Refusal("is_archived")
    return message, message.stream


def _streaming(slack: Any, message: Message) -> None:
    if not slack.streaming(message):
        raise Refusal("message_not_in_streaming_state")


def _take(message: Message, stream: Stream, call: Call) -> None:
    """Add the chunks of a call to a stream; none if it is refused."""
    after = copy.deepcopy(stream)
    for chunk in _checked(call.parsed("chunks", "invalid_chunks")):
        _add(after, chunk)
    _measure(after)
    stream.parts, stream.tasks = after.parts, after.tasks
    message.text = "".join(part for kind, part in stream.parts if kind == "text")


def _checked(chunks: Any) -> list[dict[str, Any]]:
    found = list(_CHUNKS(chunks, "/chunks"))
    if not found:
        for number, chunk in enumerate(chunks):
            found += objections(chunk.get("blocks", []), "message", f"/chunks/{number}/blocks")
    if found:
        raise Refusal("invalid_chunks", *found)
    return chunks


def _add(stream: Stream, chunk: Mapping[str, Any]) -> None:
    match chunk["type"]:
        case "markdown_text":
            if stream.parts and stream.parts[-1][0] == "text":
                stream.parts[-1] = ("text", stream.parts[-1][1] + chunk["text"])
            else:
                stream.parts.append(("text", chunk["text"]))
        case "task_update":
            if chunk["id"] not in stream.tasks:
                stream.parts.append(("task", chunk["id"]))
            stream.tasks[chunk["id"]] = _merged(stream.tasks.get(chunk["id"], {}), chunk)
        case "blocks":
            stream.parts.append(("blocks", chunk["blocks"]))


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Update a task: its details are appended to, other fields replaced [K]."""
    details = old.get("details", "") + new.get("details", "")
    return {**old, **new, **({"details": details} if details else {})}


def _measure(stream: Stream) -> None:
    blocks = [block for kind, part in stream.parts if kind == "blocks" for block in part]
    if len(blocks) > limits.MESSAGE_BLOCKS:
        raise Refusal("msg_blocks_too_many")
    texts, tasks = [part for kind, part in stream.parts if kind == "text"], stream.tasks.values()
    twice = [task.get("details", "") for task in tasks]
    weight = sum(
        len(text.encode("utf-8", "replace")) for text in (*texts, *(task["title"] for task in tasks), *twice * 2)
    )
    if texts and weight > limits.STREAM_BYTES:
        raise Refusal("msg_too_long")


_READER = "recipient_team_id recipient_user_id task_display_mode"
METHODS = {
    "chat.startStream": method(_start, "channel thread_ts chunks", _READER, scopes="chat:write"),
    "chat.appendStream": method(_append, "channel ts chunks", scopes="chat:write"),
    "chat.stopStream": method(_stop, "channel ts", "metadata", scopes="chat:write"),
}
