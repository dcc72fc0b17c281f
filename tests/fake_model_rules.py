"""What servers of OpenAI's chat protocol reject, and in which words: the rules of `fake_model_server`.

A profile is a kind of server with its quirks. The rules are stricter than any single server, so that a client that
passes them passes everywhere.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KNOWN = frozenset(
    {"model", "messages", "temperature", "top_p", "n", "stream", "stream_options", "stop", "max_tokens", "seed"}
    | {"max_completion_tokens", "presence_penalty", "frequency_penalty", "response_format", "reasoning_effort", "user"}
)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "model": (str,),
    "messages": (list,),
    "temperature": (int, float),
    "stream": (bool,),
    "stream_options": (dict,),
    "max_tokens": (int,),
    "max_completion_tokens": (int,),
    "response_format": (dict,),
    "reasoning_effort": (str,),
}


@dataclass(frozen=True)
class Objection:
    status: int
    message: str
    param: str | None = None
    code: str | None = None
    type: str = "invalid_request_error"


@dataclass(frozen=True)
class Profile:
    name: str
    key: str = ""
    """Empty: none is asked for."""
    azure: bool = False
    models: tuple[str, ...] = ("small-model", "other-model", "thinking-model")
    thinkers: tuple[str, ...] = ()
    """Models with OpenAI's rules for reasoning: another name for the limit, no temperature."""
    takes: frozenset[str] = KNOWN
    formats: tuple[str, ...] = ("text", "json_object", "json_schema")
    system_role: bool = True
    usage: bool = True
    usage_in_streams: bool = True
    reasoning_field: str = "reasoning_content"
    context: int = 0
    """In tokens of four characters; 0: without limit."""
    too_long: Callable[[int, int], Objection] = lambda asked, context: Objection(
        400,
        f"This model's maximum context length is {context} tokens. However, your messages resulted in {asked} tokens.",
        "messages",
        "context_length_exceeded",
    )
    body: Callable[[Objection], Any] = lambda it: {
        "error": {"message": it.message, "type": it.type, "param": it.param, "code": it.code}
    }


OPENAI = Profile("openai", key="sk-right-0123456789", thinkers=("thinking-model",))
AZURE = Profile("azure", key="0123456789abcdef-azure", azure=True, models=("our-deployment",))
VLLM = Profile(
    "vllm",
    system_role=False,
    too_long=lambda asked, context: Objection(
        400,
        f"'max_tokens' or 'max_completion_tokens' is too large: 512. This model's maximum context length is {context} "
        f"tokens and your request has {asked} input tokens",
        type="BadRequestError",
    ),
    body=lambda it: {"object": "error", "message": it.message, "type": it.type, "param": None, "code": it.status},
)
LLAMA_CPP = Profile(
    "llama.cpp",
    formats=("text", "json_object"),
    too_long=lambda asked, context: Objection(
        400,
        f"the request exceeds the available context size ({asked} > {context}), try increasing it",
        type="exceed_context_size_error",
    ),
    body=lambda it: {"error": {"code": it.status, "message": it.message, "type": it.type}},
)
OLLAMA = Profile(
    "ollama",
    usage_in_streams=False,
    reasoning_field="reasoning",
    takes=KNOWN - {"stream_options", "reasoning_effort"},
    too_long=lambda asked, context: Objection(400, f"the input length {asked} exceeds the context length {context}"),
    body=lambda it: {"error": {"message": it.message, "type": "api_error", "param": None, "code": None}},
)


def objection(profile: Profile, path: str, headers: Mapping[str, str], body: Any) -> Objection | None:
    """Return why a request is rejected; None if it is taken."""
    if profile.key and (wrong := _wrong_key(profile, headers)):
        return wrong
    if not isinstance(body, dict):
        return Objection(400, "We could not parse the JSON body of your request.")
    if wrong := _wrong_arguments(profile, body):
        return wrong
    model = path.split("/")[3] if profile.azure else body["model"]
    if model not in profile.models:
        return Objection(
            404, f"The model `{model}` does not exist or you do not have access to it.", None, "model_not_found"
        )
    return _wrong_limits(profile, body) or _wrong_messages(profile, body["messages"]) or _wrong_format(profile, body)


def prompt_tokens(body: Mapping[str, Any]) -> int:
    return sum(len(message["content"]) for message in body["messages"]) // 4 + 1


def _wrong_key(profile: Profile, headers: Mapping[str, str]) -> Objection | None:
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    given = headers.get("api-key", bearer) if profile.azure else bearer
    if given == profile.key:
        return None
    said = f"Incorrect API key provided: {given}." if given else "You didn't provide an API key."
    return Objection(401, said, None, "invalid_api_key")


def _wrong_arguments(profile: Profile, body: Mapping[str, Any]) -> Objection | None:
    for name in ("model", "messages"):
        if not body.get(name):
            return Objection(400, f"Missing required parameter: '{name}'.", name, "missing_required_parameter")
    for name, value in body.items():
        if name not in profile.takes:
            return Objection(400, f"Unrecognized request argument supplied: {name}", name, "unknown_parameter")
        types = _TYPES.get(name, (object,))
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types and object not in types):
            return Objection(400, f"Invalid type for '{name}'.", name, "invalid_type")
    if body.get("stream_options") and not body.get("stream"):
        return Objection(400, "The 'stream_options' parameter is only allowed with 'stream'.", "stream_options")
    return None


def _wrong_limits(profile: Profile, body: Mapping[str, Any]) -> Objection | None:
    if "max_tokens" in body and "max_completion_tokens" in body:
        return Objection(400, "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    if body["model"] in profile.thinkers:
        if "max_tokens" in body:
            message = (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
            )
            return Objection(400, message, "max_tokens", "unsupported_parameter")
        if body.get("temperature", 1) != 1:
            message = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is."
            return Objection(400, message, "temperature", "unsupported_value")
    limit = body.get("max_tokens", body.get("max_completion_tokens", 16))
    if limit < 1:
        return Objection(400, f"max_tokens must be at least 1, got {limit}.", "max_tokens")
    asked = prompt_tokens(body)
    return profile.too_long(asked, profile.context) if profile.context and asked + limit > profile.context else None


def _wrong_messages(profile: Profile, messages: Sequence[Any]) -> Objection | None:
    for index, message in enumerate(messages):
        if (
            not isinstance(message, dict)
            or set(message) != {"role", "content"}
            or not isinstance(message["content"], str)
        ):
            return Objection(400, f"Invalid value for 'messages[{index}]'.", f"messages[{index}]")
        if message["role"] not in {"system", "developer", "user", "assistant"}:
            return Objection(400, f"Invalid value: '{message['role']}'.", f"messages[{index}].role")
    roles = [message["role"] for message in messages]
    if not profile.system_role and "system" in roles:
        return Objection(400, "System role not supported", type="BadRequestError")
    if not profile.system_role and roles != [("user", "assistant")[index % 2] for index in range(len(roles))]:
        return Objection(
            400, "Conversation roles must alternate user/assistant/user/assistant/...", type="BadRequestError"
        )
    return None


def _wrong_format(profile: Profile, body: Mapping[str, Any]) -> Objection | None:
    wanted = body.get("response_format", {"type": "text"})
    kind = wanted.get("type")
    if kind not in profile.formats:
        allowed = " or ".join(f"'{name}'" for name in profile.formats)
        return Objection(400, f"'response_format.type' must be {allowed}", "response_format")
    if kind == "json_object" and "json" not in json.dumps(body["messages"]).lower():
        message = "'messages' must contain the word 'json' to use 'response_format' of type 'json_object'."
        return Objection(400, message, "messages")
    if kind == "json_schema" and (wrong := _wrong_schema(wanted.get("json_schema", {}).get("schema"), ())):
        return Objection(400, f"Invalid schema for response_format: {wrong}", "response_format")
    return None


def _wrong_schema(schema: Any, where: tuple[str, ...]) -> str | None:
    """Return what strict mode dislikes: every object closed, every property required."""
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
    inner = [(name, value) for name, value in properties.items()]
    inner += [("items", schema["items"])] if "items" in schema else []
    return next((wrong for name, value in inner if (wrong := _wrong_schema(value, (*where, name)))), None)
