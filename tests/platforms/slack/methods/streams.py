"""chat.startStream, appendStream and stopStream: messages that are written while they are read."""

import copy
from collections.abc import Mapping
from typing import Any

from tests.platforms.shapes import choice, fields, several, string, typed, units
from tests.platforms.slack import limits
from tests.platforms.slack.blocks import URL_SOURCE, objections, too_long
from tests.platforms.slack.calls import Call, Refusal, method
from tests.platforms.slack.events import message_json
from tests.platforms.slack.posting import blocks_of, metadata, thread_of, visible, writable
from tests.platforms.slack.state import BOT, Message, Stream

_TASK = string(limits.TASK_FIELD, 0)
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
                {"details": _TASK, "output": _TASK, "sources": several(URL_SOURCE, least=0)},
            ),
            "blocks": fields({"type": string(), "blocks": several(lambda *_: iter(()), limits.MESSAGE_BLOCKS)}),
        }
    ),
    least=0,
)
_DISPLAYS = {"timeline", "plan", "dense"}


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
    if call.get("task_display_mode", "timeline") not in _DISPLAYS:
        raise Refusal("invalid_arguments", "[ERROR] must be one of: timeline, plan [json-pointer:/task_display_mode]")
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
    if not call.get("markdown_text") and not call.get("chunks"):
        raise Refusal("markdown_text_or_chunks_required")
    _take(message, stream, call)
    slack.showed(message)
    return {"channel": message.channel, "ts": message.ts}


def _stop(slack: Any, call: Call) -> dict[str, Any]:
    message, stream = _streamed(slack, call)
    _streaming(slack, message)
    if call.get("session_status", "active") not in {"active", "processing", "suspended", "closed"}:
        raise Refusal("invalid_arguments", "[ERROR] unknown status [json-pointer:/session_status]")
    blocks, data, before = blocks_of(call), metadata(call), copy.deepcopy(message)
    if blocks and (error := too_long(blocks)):
        raise Refusal(error)
    _take(message, stream, call)
    if not stream.parts and not blocks:
        raise Refusal("no_text")
    stream.state = "complete"
    message.blocks, message.metadata = blocks or [], data or None
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
    """Add what a call brings to a stream; nothing of it if it is refused."""
    markdown, chunks = call.get("markdown_text"), call.parsed("chunks", "invalid_chunks")
    if markdown and chunks:
        raise Refusal("cannot_provide_both_markdown_text_and_chunks")
    if not markdown and not chunks:
        return
    mode = "markdown_text" if markdown else "chunks"
    if stream.mode not in {"", mode}:
        raise Refusal("streaming_mode_mismatch")
    if markdown and units(markdown) > limits.MARKDOWN:
        raise Refusal("msg_too_long")
    after = copy.deepcopy(stream)
    after.mode = mode
    for chunk in _checked(chunks) if chunks else [{"type": "markdown_text", "text": markdown}]:
        _add(after, chunk)
    _measure(after)
    stream.mode, stream.parts, stream.tasks = after.mode, after.parts, after.tasks
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
    """Add details, output and sources to those that a task has: they are appended to, titles replaced [K]."""
    task = {**old, **new}
    for name in ("details", "output"):
        if name in old and name in new:
            task[name] = old[name] + new[name]
    if "sources" in old and "sources" in new:
        task["sources"] = [*old["sources"], *(one for one in new["sources"] if one not in old["sources"])]
    return task


def _measure(stream: Stream) -> None:
    blocks = [block for kind, part in stream.parts if kind == "blocks" for block in part]
    if len(blocks) > limits.MESSAGE_BLOCKS:
        raise Refusal("msg_blocks_too_many")
    texts = [part for kind, part in stream.parts if kind == "text"]
    tasks = stream.tasks.values()
    once = [*texts, *(task["title"] for task in tasks)]
    twice = [task.get(name, "") for task in tasks for name in ("details", "output")]
    weight = sum(len(text.encode("utf-8", "replace")) for text in once + twice + twice)
    if texts and weight > limits.STREAM_BYTES:
        raise Refusal("msg_too_long")


METHODS = {
    "chat.startStream": method(
        _start,
        "channel thread_ts",
        "markdown_text chunks recipient_team_id recipient_user_id task_display_mode icon_emoji icon_url username",
        scopes="chat:write",
    ),
    "chat.appendStream": method(_append, "channel ts", "markdown_text chunks", scopes="chat:write"),
    "chat.stopStream": method(
        _stop, "channel ts", "markdown_text chunks blocks metadata session_status", scopes="chat:write"
    ),
}
