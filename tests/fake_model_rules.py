"""Refuse the requests that servers of OpenAI's chat protocol refuse, with their messages.

The rules are stricter than any single server, so that a client that passes them passes everywhere.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.simulated_model.chat_protocol import Refusal, ServerProfile, count_prompt_tokens, get_token_limit

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
    "prompt_cache_key": (str,),
    "prompt_cache_options": (dict,),
}
CACHE_ARGUMENTS = frozenset({"prompt_cache_key", "prompt_cache_options"})
KNOWN_ARGUMENTS = frozenset(_TYPES) - CACHE_ARGUMENTS
_ROLES = frozenset({"system", "developer", "user", "assistant"})


@dataclass(frozen=True)
class StrictProfile(ServerProfile):
    rules: Callable[[ServerProfile, str, Mapping[str, str], Any], Refusal | None] = lambda *given: find_refusal(*given)  # noqa: PLW0108 - it is defined below
    key: str = ""
    """The API key that requests must have; empty if none is required."""
    thinkers: tuple[str, ...] = ()
    """Models with OpenAI's rules for reasoning: the limit has another name, and no temperature is allowed."""
    takes: frozenset[str] = KNOWN_ARGUMENTS
    formats: tuple[str, ...] = ("text", "json_object", "json_schema")
    bounds: frozenset[str] = frozenset({"minItems", "maxItems", "maxLength", "minimum", "maximum"})
    """The keywords that a schema may have besides its structure."""
    system_role: bool = True
    context: int = 0
    """In tokens of four characters each; 0 for no limit."""
    too_long: Callable[[int, int], Refusal] = lambda asked, context: Refusal(
        400,
        f"This model's maximum context length is {context} tokens. However, your messages resulted in {asked} tokens.",
        "messages",
        "context_length_exceeded",
    )


def find_refusal(profile: ServerProfile, path: str, headers: Mapping[str, str], body: Any) -> Refusal | None:
    assert isinstance(profile, StrictProfile)
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


def _check_key(profile: StrictProfile, headers: Mapping[str, str]) -> Refusal | None:
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    given = headers.get("api-key", bearer) if profile.azure else bearer
    if given == profile.key:
        return None
    said = f"Incorrect API key provided: {given}." if given else "You didn't provide an API key."
    return Refusal(401, said, None, "invalid_api_key")


def _check_arguments(profile: StrictProfile, body: Mapping[str, Any]) -> Refusal | None:
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


def _check_limits(profile: StrictProfile, body: Mapping[str, Any]) -> Refusal | None:
    if "max_tokens" in body and "max_completion_tokens" in body:
        return Refusal(400, "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    if body["model"] in profile.thinkers:
        if "max_tokens" in body:
            message = (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
            )
            return Refusal(400, message, "max_tokens", "unsupported_parameter")
        if penalties := sorted({"frequency_penalty", "presence_penalty"}.intersection(body)):
            message = f"Unsupported parameter: '{penalties[0]}' is not supported with this model."
            return Refusal(400, message, penalties[0], "unsupported_parameter")
        if body.get("temperature", 1) != 1:
            message = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is."
            return Refusal(400, message, "temperature", "unsupported_value")
    limit = get_token_limit(body, 16)
    if limit < 1:
        return Refusal(400, f"max_tokens must be at least 1, got {limit}.", "max_tokens")
    asked = count_prompt_tokens(body) if profile.context else 0
    return profile.too_long(asked, profile.context) if profile.context and asked + limit > profile.context else None


def _check_messages(profile: StrictProfile, messages: Sequence[Any]) -> Refusal | None:
    for place, message in enumerate(messages):
        right = isinstance(message, dict) and set(message) == {"role", "content"}
        marks = "prompt_cache_options" in profile.takes and message["role"] != "assistant"
        if not right or not (isinstance(message["content"], str) or (marks and _are_text_parts(message["content"]))):
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


def _are_text_parts(parts: Any) -> bool:
    marks = [dict(part).pop("prompt_cache_breakpoint", None) for part in parts]
    plain = [set(part) - {"prompt_cache_breakpoint"} == {"type", "text"} and part["type"] == "text" for part in parts]
    return all(plain) and all(mark in (None, {"mode": "explicit"}) for mark in marks)


def _check_format(profile: StrictProfile, body: Mapping[str, Any]) -> Refusal | None:
    wanted = body.get("response_format", {"type": "text"})
    kind = wanted.get("type")
    if kind not in profile.formats:
        allowed = " or ".join(f"'{name}'" for name in profile.formats)
        return Refusal(400, f"'response_format.type' must be {allowed}", "response_format")
    if kind == "json_object" and "json" not in json.dumps(body["messages"]).lower():
        message = "'messages' must contain the word 'json' to use 'response_format' of type 'json_object'."
        return Refusal(400, message, "messages")
    schema = wanted.get("json_schema", {}).get("schema")
    if kind == "json_schema" and (wrong := _find_loose_schema(schema, (), profile)):
        if profile.name == "vllm":
            return Refusal(400, "The provided JSON schema contains features not supported by xgrammar.")
        return Refusal(400, f"Invalid schema for response_format: {wrong}", "response_format")
    return None


_STRUCTURE = frozenset({"type", "properties", "required", "additionalProperties", "items", "enum"})


def _find_loose_schema(schema: Any, where: tuple[str, ...], profile: StrictProfile) -> str | None:
    """Return what strict mode rejects: every object must be closed and every property required."""
    if not isinstance(schema, dict):
        return f"In context={where}, it is no object."
    if strange := sorted(set(schema) - _STRUCTURE - profile.bounds):
        return f"In context={where}, '{strange[0]}' is not permitted."
    properties = schema.get("properties", {})
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            return f"In context={where}, 'additionalProperties' is required to be supplied and to be false."
        if set(schema.get("required", ())) != set(properties):
            return f"In context={where}, 'required' is required to include every key in properties."
    elif not where:
        return "schema must be a JSON Schema of 'type: \"object\"'."
    inner = [*properties.items(), *([("items", schema["items"])] if "items" in schema else [])]
    wrongs = (_find_loose_schema(value, (*where, name), profile) for name, value in inner)
    return next(filter(None, wrongs), None)


_MODELS = ("small-model", "other-model", "thinking-model")
OPENAI = StrictProfile("openai", key="sk-right-0123456789", models=_MODELS, thinkers=("thinking-model",))
AZURE = StrictProfile("azure", key="0123456789abcdef-azure", azure=True, models=("our-deployment",))
AZURE_GPT = StrictProfile(
    **{**vars(AZURE), "models": ("gpt-5.6-terra", "gpt-5.4-mini"), "takes": KNOWN_ARGUMENTS | CACHE_ARGUMENTS}
)
"""Deployments that are named after their models and cache prompts."""
VLLM = StrictProfile(
    "vllm",
    models=_MODELS,
    system_role=False,
    too_long=lambda asked, context: Refusal(
        400,
        f"'max_tokens' or 'max_completion_tokens' is too large: 512. This model's maximum context length is {context} "
        f"tokens and your request has {asked} input tokens",
        type="BadRequestError",
    ),
    body=lambda it: {"object": "error", "message": it.message, "type": it.type, "param": None, "code": it.status},
)
LLAMA_CPP = StrictProfile(
    "llama.cpp",
    models=_MODELS,
    formats=("text", "json_object"),
    too_long=lambda asked, context: Refusal(
        400,
        f"the request exceeds the available context size ({asked} > {context}), try increasing it",
        type="exceed_context_size_error",
    ),
    body=lambda it: {"error": {"code": it.status, "message": it.message, "type": it.type}},
)
OLLAMA = StrictProfile(
    "ollama",
    models=_MODELS,
    usage_in_streams=False,
    reasoning_field="reasoning",
    takes=KNOWN_ARGUMENTS - {"stream_options", "reasoning_effort"},
    too_long=lambda asked, context: Refusal(400, f"the input length {asked} exceeds the context length {context}"),
    body=lambda it: {"error": {"message": it.message, "type": "api_error", "param": None, "code": None}},
)
