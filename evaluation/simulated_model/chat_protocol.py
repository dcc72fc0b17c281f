"""Parse requests and encode replies of OpenAI's chat protocol, and as much of HTTP as that needs. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "model": (str,),
    "messages": (list,),
    "temperature": (int, float),
    "top_p": (int, float),
    "n": (int,),
    "seed": (int,),
    "stop": (str, list),
    "stream": (bool,),
    "stream_options": (dict,),
    "max_tokens": (int,),
    "max_completion_tokens": (int,),
    "presence_penalty": (int, float),
    "frequency_penalty": (int, float),
    "response_format": (dict,),
    "reasoning_effort": (str,),
    "user": (str,),
}
_ROLES = frozenset({"system", "developer", "user", "assistant"})
_FORMATS = frozenset({"text", "json_schema"})
_STATUSES = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"} | {
    429: "Too Many Requests", 500: "Internal Server Error"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChatRefusal:
    """An error as the protocol has it."""

    status: int
    message: str
    param: str = ""


def parse_request(body: bytes) -> Mapping[str, Any] | ChatRefusal:
    """Return a request, or why it is refused."""
    try:
        asked = json.loads(body)
    except ValueError:
        return ChatRefusal(400, "We could not parse the JSON body of your request.")
    if not isinstance(asked, dict):
        return ChatRefusal(400, "The JSON body of your request is no object.")
    return _check_arguments(asked) or _check_messages(asked["messages"]) or _check_values(asked) or asked


def _check_arguments(asked: Mapping[str, Any]) -> ChatRefusal | None:
    for name in ("model", "messages"):
        if not asked.get(name):
            return ChatRefusal(400, f"Missing required parameter: '{name}'.", name)
    for name, value in asked.items():
        if name not in _TYPES:
            return ChatRefusal(400, f"Unrecognized request argument supplied: {name}", name)
        right = isinstance(value, _TYPES[name]) and (not isinstance(value, bool) or bool in _TYPES[name])
        if not right:
            return ChatRefusal(400, f"Invalid type for '{name}'.", name)
    return None


def _check_messages(messages: list[Any]) -> ChatRefusal | None:
    for place, message in enumerate(messages):
        right = isinstance(message, dict) and set(message) == {"role", "content"}
        if not right or message["role"] not in _ROLES or not isinstance(message["content"], str):
            return ChatRefusal(400, f"Invalid value for 'messages[{place}]'.", f"messages[{place}]")
    return None


def _check_values(asked: Mapping[str, Any]) -> ChatRefusal | None:
    if "max_tokens" in asked and "max_completion_tokens" in asked:
        return ChatRefusal(400, "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    if token_limit(asked) < 1:
        return ChatRefusal(400, f"max_tokens must be at least 1, got {token_limit(asked)}.", "max_tokens")
    if asked.get("stream_options") and not asked.get("stream"):
        return ChatRefusal(400, "The 'stream_options' parameter is only allowed with 'stream'.", "stream_options")
    wanted = asked.get("response_format", {"type": "text"})
    if wanted.get("type") not in _FORMATS:
        return ChatRefusal(400, "'response_format.type' must be 'text' or 'json_schema'.", "response_format")
    if wanted["type"] == "json_schema" and not isinstance(wanted.get("json_schema", {}).get("schema"), dict):
        return ChatRefusal(400, "Invalid schema for response_format.", "response_format")
    return None


def token_limit(asked: Mapping[str, Any]) -> int:
    """Return how many tokens a reply may have."""
    most: int = asked.get("max_tokens", asked.get("max_completion_tokens", 4_096))
    return most


@dataclass(frozen=True, slots=True)
class CompletedReply:
    """What of a reply is sent."""

    model: str
    text: str
    prompt_tokens: int
    cached_tokens: int
    tokens: int
    finish: str


def encode_completion(written: CompletedReply) -> bytes:
    """Return a whole reply as a response."""
    message = {"role": "assistant", "content": written.text, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": written.finish}
    frame = _frame(written.model, "chat.completion")
    return encode_response(200, {**frame, "choices": [choice], "usage": _usage(written)})


STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def encode_event(model: str, piece: str, *, first: bool = False) -> bytes:
    """Return one piece of a streamed reply; the first names who speaks."""
    delta = {"role": "assistant", "content": piece} if first else {"content": piece}
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return _event({**_frame(model, "chat.completion.chunk"), "choices": [choice]})


def encode_ending(written: CompletedReply, *, usage: bool) -> bytes:
    """Return what ends a streamed reply: why, what it took where that is wanted, and that it is all."""
    frame = _frame(written.model, "chat.completion.chunk")
    ends = _event({**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": written.finish}]})
    counts = _event({**frame, "choices": [], "usage": _usage(written)}) if usage else b""
    return ends + counts + _chunk(b"data: [DONE]\n\n") + _chunk(b"")


def encode_refusal(refused: ChatRefusal) -> bytes:
    """Return an error as a response; a busy server says when to come back."""
    error = {"message": refused.message, "type": "error", "param": refused.param or None, "code": None}
    more = "Retry-After: 1\r\n" if refused.status == 429 else ""
    return encode_response(refused.status, {"error": error}, more=more)


def encode_response(status: int, body: Any, *, more: str = "") -> bytes:
    """Return JSON as a response."""
    said = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} {_STATUSES[status]}\r\nContent-Type: application/json\r\n{more}"
    return f"{head}Content-Length: {len(said)}\r\n\r\n".encode() + said


def _event(body: Mapping[str, Any]) -> bytes:
    return _chunk(b"data: " + json.dumps(body).encode() + b"\n\n")


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _frame(model: str, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": model}


def _usage(written: CompletedReply) -> dict[str, Any]:
    return {
        "prompt_tokens": written.prompt_tokens,
        "completion_tokens": written.tokens,
        "total_tokens": written.prompt_tokens + written.tokens,
        "prompt_tokens_details": {"cached_tokens": written.cached_tokens},
    }
