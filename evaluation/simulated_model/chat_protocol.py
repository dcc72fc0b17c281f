"""Encode replies, errors and faults of OpenAI's chat protocol as HTTP, like a certain kind of server. Pure."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


@dataclass(frozen=True)
class Refusal:
    """The reason why a request is refused."""

    status: int
    message: str
    param: str | None = None
    code: str | None = None
    type: str = "invalid_request_error"


def check_basics(_: "ServerProfile", __: str, ___: Mapping[str, str], body: Any) -> Refusal | None:
    """Return the reason if a request cannot be answered, or None. Real servers check more than this."""
    if not isinstance(body, dict):
        return Refusal(400, "We could not parse the JSON body of your request.")
    for name in ("model", "messages"):
        if not body.get(name):
            return Refusal(400, f"Missing required parameter: '{name}'.", name)
    for place, message in enumerate(body["messages"]):
        if not isinstance(message, dict) or not all(isinstance(message.get(name), str) for name in ("role", "content")):
            return Refusal(400, f"Invalid value for 'messages[{place}]'.", f"messages[{place}]")
    return None


@dataclass(frozen=True)
class ServerProfile:
    """A kind of server: which requests it accepts, and how it phrases its answers."""

    name: str
    rules: Callable[["ServerProfile", str, Mapping[str, str], Any], Refusal | None] = check_basics
    azure: bool = False
    models: tuple[str, ...] = ("simulated",)
    usage: bool = True
    usage_in_streams: bool = True
    reasoning_field: str = "reasoning_content"
    body: Callable[[Refusal], Any] = lambda it: {
        "error": {"message": it.message, "type": it.type, "param": it.param, "code": it.code}
    }


SIMULATED = ServerProfile("simulated")


def count_prompt_tokens(body: Mapping[str, Any]) -> int:
    """Estimate the tokens of a prompt: one for each four characters, as in English with current vocabularies."""
    return sum(len(message["content"]) for message in body["messages"]) // 4 + 1


def get_token_limit(body: Mapping[str, Any], otherwise: int = 4_096) -> int:
    """Return how many tokens a reply may have, by the request's parameters."""
    limit: int = body.get("max_tokens", body.get("max_completion_tokens", otherwise))
    return limit


def get_schema(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON schema of the requested reply; empty if text is requested."""
    form = body.get("response_format") or {}
    schema: Mapping[str, Any] = form.get("json_schema", {}).get("schema", {})
    return schema


@dataclass(frozen=True)
class ChatRequest:
    """A request that the server accepts."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    profile: ServerProfile

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def text(self) -> str:
        """All messages, one on each line."""
        return "\n".join(message["content"] for message in self.body["messages"])


@dataclass(frozen=True)
class Reply:
    """A reply and its timing."""

    text: str | None = "Good."
    reasoning: str = ""
    finish: str | None = "stop"
    refusal: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)  # more fields of the message
    pieces: tuple[str, ...] | None = None  # the pieces of a stream; None: the words of the text
    cached: int = 0
    prompt_tokens: int = 0  # 0: estimated from the messages; likewise `tokens` from the text
    tokens: int = 0
    seconds: float = 0.0
    piece_seconds: float = 0.0
    schedule: Iterator[float] | None = None
    """Instead of the two above: when the reply starts, and when each piece is due, by the server's clock."""
    cut: int | None = None  # the number of pieces of a stream after which the connection is closed

    @property
    def parts(self) -> tuple[str, ...]:
        """The pieces in which the text is streamed."""
        words = (self.text or "").split(" ")
        return self.pieces or (*(f"{word} " for word in words[:-1]), words[-1])


class Ending(Enum):
    """What a fault finally does with the connection. Without an ending, it stays open."""

    CLOSE = "close"
    RESET = "reset"
    HANG = "hang"


@dataclass(frozen=True)
class Fault:
    """Bytes to send, seconds to wait between them, and how the connection ends."""

    parts: tuple[bytes | float | Ending, ...]


RESET = Fault((Ending.RESET,))
HANG = Fault((Ending.HANG,))


def answer_with(status: int, body: object = "", *, kind: str = "application/json", **headers: str) -> Fault:
    """Return an answer with this status. A body that is not text is sent as JSON."""
    text = body if isinstance(body, str) else json.dumps(body)
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault((_encode_response(status, text.encode(), kind, more),))


def answer_error(status: int, message: str, *, code: str | None = None, **headers: str) -> Fault:
    """Return an error in OpenAI's format."""
    body = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    return answer_with(status, body, **headers)


def encode_reply(request: ChatRequest, reply: Reply) -> tuple[bytes, ...]:
    """Return the parts to send. A streamed reply has a head, events and an end; any other is one part."""
    if not request.streamed:
        return (_encode_response(200, json.dumps(_completion(request, reply)).encode()),)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    events = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in _events(request, reply)]
    return (head, *(encode_chunk(event) for event in (*events, b"data: [DONE]\n\n")), encode_chunk(b""))


def encode_chunk(data: bytes) -> bytes:
    """Return bytes as one chunk of HTTP. An empty chunk is the last one."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _encode_response(
    status: int, body: bytes, kind: str = "application/json", more: Mapping[str, str] | None = None
) -> bytes:
    headers = {"Content-Type": kind, "Content-Length": str(len(body)), **(more or {})}
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join((*lines, "", "")).encode() + body


def _completion(request: ChatRequest, reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": reply.refusal, **reply.extra}
    if reply.reasoning:
        message[request.profile.reasoning_field] = reply.reasoning
    usage = {"usage": _usage(request, reply)} if request.profile.usage else {}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    return {**_frame(request, "chat.completion"), "choices": [choice], **usage}


def _events(request: ChatRequest, reply: Reply) -> list[dict[str, Any]]:
    thoughts: list[dict[str, Any]] = [{request.profile.reasoning_field: word + " "} for word in reply.reasoning.split()]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, *thoughts]
    deltas += [{"content": piece} for piece in reply.parts]
    deltas += [{"refusal": reply.refusal}] if reply.refusal else []
    deltas += [dict(reply.extra)] if reply.extra else []
    frame = _frame(request, "chat.completion.chunk")
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reply.finish})
    events = [{**frame, "choices": [choice]} for choice in choices]
    with_usage = (request.body.get("stream_options") or {}).get("include_usage")
    if with_usage and request.profile.usage_in_streams:
        events.append({**frame, "choices": [], "usage": _usage(request, reply)})
    return [{**frame, "choices": [], "prompt_filter_results": []}, *events] if request.profile.azure else events


def _frame(request: ChatRequest, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": f"{request.body['model']}-2026"}


def _usage(request: ChatRequest, reply: Reply) -> dict[str, Any]:
    prompt = reply.prompt_tokens or count_prompt_tokens(request.body)
    written = reply.tokens or len(f"{reply.reasoning}{reply.text or ''}") // 4 + 1
    details = {"prompt_tokens_details": {"cached_tokens": reply.cached}}
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written, **details}
