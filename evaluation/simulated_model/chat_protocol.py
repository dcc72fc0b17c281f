"""Check requests by the rules of OpenAI's chat protocol, and encode replies, errors and faults as HTTP. Pure.

A profile is a kind of server with its quirks. The rules are stricter than any single server, so that a client that
passes them passes everywhere.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
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
KNOWN_ARGUMENTS = frozenset(_TYPES)
_ROLES = frozenset({"system", "developer", "user", "assistant"})


@dataclass(frozen=True)
class Refusal:
    """Why a request is refused."""

    status: int
    message: str
    param: str | None = None
    code: str | None = None
    type: str = "invalid_request_error"


@dataclass(frozen=True)
class ServerProfile:
    """What a kind of server takes, and how it words its refusals."""

    name: str
    key: str = ""
    """Empty: none is asked for."""
    azure: bool = False
    models: tuple[str, ...] = ()
    """Empty: whatever the client calls it."""
    thinkers: tuple[str, ...] = ()
    """Models with OpenAI's rules for reasoning: another name for the limit, no temperature."""
    takes: frozenset[str] = KNOWN_ARGUMENTS
    formats: tuple[str, ...] = ("text", "json_object", "json_schema")
    system_role: bool = True
    usage: bool = True
    usage_in_streams: bool = True
    reasoning_field: str = "reasoning_content"
    context: int = 0
    """In tokens of four characters; 0: without limit."""
    too_long: Callable[[int, int], Refusal] = lambda asked, context: Refusal(
        400,
        f"This model's maximum context length is {context} tokens. However, your messages resulted in {asked} tokens.",
        "messages",
        "context_length_exceeded",
    )
    body: Callable[[Refusal], Any] = lambda it: {
        "error": {"message": it.message, "type": it.type, "param": it.param, "code": it.code}
    }


SIMULATED = ServerProfile("simulated", formats=("text", "json_schema"))


def find_refusal(profile: ServerProfile, path: str, headers: Mapping[str, str], body: Any) -> Refusal | None:
    """Return why a request is refused; None if it is taken."""
    if profile.key and (wrong := _check_key(profile, headers)):
        return wrong
    if not isinstance(body, dict):
        return Refusal(400, "We could not parse the JSON body of your request.")
    if wrong := _check_arguments(profile, body):
        return wrong
    model = path.split("/")[3] if profile.azure else body["model"]
    if profile.models and model not in profile.models:
        message = f"The model `{model}` does not exist or you do not have access to it."
        return Refusal(404, message, None, "model_not_found")
    return _check_limits(profile, body) or _check_messages(profile, body["messages"]) or _check_format(profile, body)


def count_prompt_tokens(body: Mapping[str, Any]) -> int:
    """Count four characters as a token, as English has with the vocabularies of today."""
    return sum(len(message["content"]) for message in body["messages"]) // 4 + 1


def get_token_limit(body: Mapping[str, Any], otherwise: int = 4_096) -> int:
    """Return how many tokens a reply may have."""
    limit: int = body.get("max_tokens", body.get("max_completion_tokens", otherwise))
    return limit


def _check_key(profile: ServerProfile, headers: Mapping[str, str]) -> Refusal | None:
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    given = headers.get("api-key", bearer) if profile.azure else bearer
    if given == profile.key:
        return None
    said = f"Incorrect API key provided: {given}." if given else "You didn't provide an API key."
    return Refusal(401, said, None, "invalid_api_key")


def _check_arguments(profile: ServerProfile, body: Mapping[str, Any]) -> Refusal | None:
    for name in ("model", "messages"):
        if not body.get(name):
            return Refusal(400, f"Missing required parameter: '{name}'.", name, "missing_required_parameter")
    for name, value in body.items():
        if name not in profile.takes:
            return Refusal(400, f"Unrecognized request argument supplied: {name}", name, "unknown_parameter")
        if not isinstance(value, _TYPES[name]) or (isinstance(value, bool) and bool not in _TYPES[name]):
            return Refusal(400, f"Invalid type for '{name}'.", name, "invalid_type")
    if body.get("stream_options") and not body.get("stream"):
        return Refusal(400, "The 'stream_options' parameter is only allowed with 'stream'.", "stream_options")
    return None


def _check_limits(profile: ServerProfile, body: Mapping[str, Any]) -> Refusal | None:
    if "max_tokens" in body and "max_completion_tokens" in body:
        return Refusal(400, "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    if body["model"] in profile.thinkers:
        if "max_tokens" in body:
            message = (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
            )
            return Refusal(400, message, "max_tokens", "unsupported_parameter")
        if body.get("temperature", 1) != 1:
            message = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is."
            return Refusal(400, message, "temperature", "unsupported_value")
    limit = get_token_limit(body, 16)
    if limit < 1:
        return Refusal(400, f"max_tokens must be at least 1, got {limit}.", "max_tokens")
    asked = count_prompt_tokens(body) if profile.context else 0
    return profile.too_long(asked, profile.context) if profile.context and asked + limit > profile.context else None


def _check_messages(profile: ServerProfile, messages: Sequence[Any]) -> Refusal | None:
    for place, message in enumerate(messages):
        right = isinstance(message, dict) and set(message) == {"role", "content"}
        if not right or not isinstance(message["content"], str):
            return Refusal(400, f"Invalid value for 'messages[{place}]'.", f"messages[{place}]")
        if message["role"] not in _ROLES:
            return Refusal(400, f"Invalid value: '{message['role']}'.", f"messages[{place}].role")
    roles = [message["role"] for message in messages]
    if not profile.system_role and "system" in roles:
        return Refusal(400, "System role not supported", type="BadRequestError")
    if not profile.system_role and roles != [("user", "assistant")[place % 2] for place in range(len(roles))]:
        said = "Conversation roles must alternate user/assistant/user/assistant/..."
        return Refusal(400, said, type="BadRequestError")
    return None


def _check_format(profile: ServerProfile, body: Mapping[str, Any]) -> Refusal | None:
    wanted = body.get("response_format", {"type": "text"})
    kind = wanted.get("type")
    if kind not in profile.formats:
        allowed = " or ".join(f"'{name}'" for name in profile.formats)
        return Refusal(400, f"'response_format.type' must be {allowed}", "response_format")
    if kind == "json_object" and "json" not in json.dumps(body["messages"]).lower():
        message = "'messages' must contain the word 'json' to use 'response_format' of type 'json_object'."
        return Refusal(400, message, "messages")
    if kind == "json_schema" and (wrong := _find_loose_schema(wanted.get("json_schema", {}).get("schema"), ())):
        return Refusal(400, f"Invalid schema for response_format: {wrong}", "response_format")
    return None


def _find_loose_schema(schema: Any, where: tuple[str, ...]) -> str | None:
    """Return what strict mode dislikes: every object must be closed and every property required."""
    if not isinstance(schema, dict):
        return f"In context={where}, it is no object."
    properties = schema.get("properties", {})
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            return f"In context={where}, 'additionalProperties' is required to be supplied and to be false."
        if set(schema.get("required", ())) != set(properties):
            return f"In context={where}, 'required' is required to include every key in properties."
    elif not where:
        return "schema must be a JSON Schema of 'type: \"object\"'."
    inner = [*properties.items(), *([("items", schema["items"])] if "items" in schema else [])]
    return next((wrong for name, value in inner if (wrong := _find_loose_schema(value, (*where, name)))), None)


@dataclass(frozen=True)
class ChatRequest:
    """A request that the rules passed."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    profile: ServerProfile

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def text(self) -> str:
        """All messages, one after the other."""
        return "\n".join(message["content"] for message in self.body["messages"])


@dataclass(frozen=True)
class Reply:
    """What is replied, and when."""

    text: str | None = "Good."
    reasoning: str = ""
    finish: str | None = "stop"
    refusal: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """More fields of the message."""
    pieces: tuple[str, ...] | None = None
    """How the text is streamed; None: word by word."""
    cached: int = 0
    prompt_tokens: int = 0
    """0: as many as the messages have; so for `tokens`."""
    tokens: int = 0
    seconds: float = 0.0
    """Before the first byte."""
    piece_seconds: float = 0.0
    """Before each piece."""
    schedule: Iterator[float] | None = None
    """Instead of these: when it begins, and when each piece is due, by the server's clock."""
    cut: int | None = None
    """After so many pieces of a stream the connection is closed."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The pieces of the text as they are streamed."""
        words = (self.text or "").split(" ")
        return self.pieces or (*(f"{word} " for word in words[:-1]), words[-1])


class Ending(Enum):
    """How a fault leaves a connection; without one it is kept."""

    CLOSE = "close"
    RESET = "reset"
    HANG = "hang"


@dataclass(frozen=True)
class Fault:
    """Bytes to send, seconds to wait between them, and how to end."""

    parts: tuple[bytes | float | Ending, ...]


RESET = Fault((Ending.RESET,))
HANG = Fault((Ending.HANG,))


def answer_with(status: int, body: object = "", *, kind: str = "application/json", **headers: str) -> Fault:
    """Return an answer with a status; a body that is no text is sent as JSON."""
    text = body if isinstance(body, str) else json.dumps(body)
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault((_encode_response(status, text.encode(), kind, more),))


def answer_error(status: int, message: str, *, code: str | None = None, **headers: str) -> Fault:
    """Return an error as OpenAI words it."""
    body = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    return answer_with(status, body, **headers)


def encode_reply(request: ChatRequest, reply: Reply) -> tuple[bytes, ...]:
    """Return the head and body as one if the reply is sent whole; if streamed, the head, each event, and the end."""
    if not request.streamed:
        return (_encode_response(200, json.dumps(_completion(request, reply)).encode()),)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    events = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in _events(request, reply)]
    return (head, *(encode_chunk(event) for event in (*events, b"data: [DONE]\n\n")), encode_chunk(b""))


def encode_chunk(data: bytes) -> bytes:
    """Return bytes as one chunk of HTTP; the empty one is the last."""
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
    wanted = (request.body.get("stream_options") or {}).get("include_usage")
    if wanted and request.profile.usage_in_streams:
        events.append({**frame, "choices": [], "usage": _usage(request, reply)})
    return [{**frame, "choices": [], "prompt_filter_results": []}, *events] if request.profile.azure else events


def _frame(request: ChatRequest, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": f"{request.body['model']}-2026"}


def _usage(request: ChatRequest, reply: Reply) -> dict[str, Any]:
    prompt = reply.prompt_tokens or count_prompt_tokens(request.body)
    written = reply.tokens or len(f"{reply.reasoning}{reply.text or ''}") // 4 + 1
    details = {"prompt_tokens_details": {"cached_tokens": reply.cached}}
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written, **details}
