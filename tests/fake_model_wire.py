"""What the fake model server puts on the wire: replies whole and in pieces, errors, and faults as bytes.

Apart from `fake_model_server`, which takes connections and asks its script what to send.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tests.fake_model_rules import Profile, prompt_tokens


class Ending(Enum):
    """How a fault leaves a connection; without one it is kept."""

    CLOSE = "close"
    RESET = "reset"
    HANG = "hang"


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    profile: Profile

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def text(self) -> str:
        """All messages, one after the other."""
        return "\n".join(message["content"] for message in self.body["messages"])


@dataclass(frozen=True)
class Reply:
    text: str | None = "Good."
    reasoning: str = ""
    finish: str | None = "stop"
    refusal: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """More fields of the message."""
    pieces: tuple[str, ...] | None = None
    """How the text is streamed; None: word by word."""
    cached: int = 0
    seconds: float = 0.0
    """Before the first byte."""
    piece_seconds: float = 0.0
    """Before each piece."""


@dataclass(frozen=True)
class Fault:
    """Bytes to send, seconds to wait between them, and how to end."""

    parts: tuple[bytes | float | Ending, ...]


def refuse(status: int, body: object = "", *, kind: str = "application/json", **headers: str) -> Fault:
    """Return an answer with a status; a body that is no text is sent as JSON."""
    text = body if isinstance(body, str) else json.dumps(body)
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault((_whole(status, text.encode(), kind, more),))


def error(status: int, message: str, *, code: str | None = None, **headers: str) -> Fault:
    """Return an error as OpenAI words it."""
    return refuse(status, {"error": {"message": message, "type": "error", "param": None, "code": code}}, **headers)


RESET = Fault((Ending.RESET,))
HANG = Fault((Ending.HANG,))


def wire(request: Request, reply: Reply) -> tuple[bytes, ...]:
    """Return what is sent for a reply: the head and body as one if whole; if streamed, the head and then each piece."""
    if not request.streamed:
        return (_whole(200, json.dumps(_completion(request, reply)).encode()),)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    events = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in _chunks(request, reply)]
    return (head, *(chunk(event) for event in (*events, b"data: [DONE]\n\n")), chunk(b""))


def chunk(data: bytes) -> bytes:
    """Return bytes as one chunk of HTTP; the empty one is the last."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _whole(status: int, body: bytes, kind: str = "application/json", more: Mapping[str, str] | None = None) -> bytes:
    headers = {"Content-Type": kind, "Content-Length": str(len(body)), **(more or {})}
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join((*lines, "", "")).encode() + body


def _completion(request: Request, reply: Reply) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply.text, "refusal": reply.refusal, **reply.extra}
    if reply.reasoning:
        message[request.profile.reasoning_field] = reply.reasoning
    usage = {"usage": _usage(request, reply)} if request.profile.usage else {}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    return {**_frame(request, "chat.completion"), "choices": [choice], **usage}


def _chunks(request: Request, reply: Reply) -> list[dict[str, Any]]:
    words = (reply.text or "").split(" ")
    pieces = reply.pieces or (*(f"{word} " for word in words[:-1]), words[-1])
    thoughts = [{request.profile.reasoning_field: word + " "} for word in reply.reasoning.split()]
    deltas = [{"role": "assistant", "content": ""}, *thoughts, *({"content": piece} for piece in pieces)]
    deltas += [{"refusal": reply.refusal}] if reply.refusal else []
    deltas += [dict(reply.extra)] if reply.extra else []
    frame = _frame(request, "chat.completion.chunk")
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reply.finish})
    events = [{**frame, "choices": [choice]} for choice in choices]
    wanted = (request.body.get("stream_options") or {}).get("include_usage")
    if wanted and request.profile.usage_in_streams:
        events.append({**frame, "choices": [], "usage": _usage(request, reply)})
    return [{**frame, "choices": [], "prompt_filter_results": []}, *events] if request.profile.azure else events


def _frame(request: Request, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": f"{request.body['model']}-2026"}


def _usage(request: Request, reply: Reply) -> dict[str, Any]:
    prompt, written = prompt_tokens(request.body), len(f"{reply.reasoning}{reply.text or ''}") // 4 + 1
    details = {"prompt_tokens_details": {"cached_tokens": reply.cached}}
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written, **details}
