"""Build the arguments of a chat completion from a call, adapted to the server's known quirks. Pure."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from pipeline.errors import PromptTooLong
from pipeline.llm.model import ChatMessage, ModelCall
from pipeline.llm.model_settings import CacheKind, ModelSettings, StagePlan, find_cache_kind
from pipeline.llm.usage import estimate_prompt_tokens
from storage.language.lazy_pattern import lazy_compile

_SURROGATES = lazy_compile("[\ud800-\udfff]")


def repair_surrogates(text: str) -> str:
    """Join surrogate pairs, and replace lone surrogates by U+FFFD, so that the text can be encoded."""
    if not _SURROGATES.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


PENALTIES = {"frequency_penalty": 0.5, "presence_penalty": 0.5}
"""The arguments of a call after a reply that repeated itself without end."""
OPTIONAL_ARGUMENTS = frozenset({"temperature", "top_p", "reasoning_effort", "stream_options", "max_tokens", *PENALTIES})
"""Arguments that a call can omit; `max_tokens` has a newer name."""
SCHEMA_ARGUMENT = "response_format"
_BOUNDS = frozenset({"minItems", "maxItems", "maxLength", "minimum", "maximum"})
"""Keywords of schemas that a call can omit."""
KEY_ARGUMENT = "prompt_cache_key"
OPTIONS_ARGUMENT = "prompt_cache_options"
CACHE_ARGUMENTS = frozenset({KEY_ARGUMENT, OPTIONS_ARGUMENT})
_HIDDEN_REASONERS = lazy_compile(r"(?i)(?<![a-z])(?:o[1-9](?![0-9])|gpt-5|gpt-oss)")
"""Names of models whose reasoning the server hides or sends apart."""
_VISIBLE_REASONERS = lazy_compile(r"(?i)(?<![a-z])r1(?![0-9])|qwq|qwen3|think|reason|magistral")
"""Names of models whose reasoning may be in the text."""
_NON_REASONERS = lazy_compile(r"(?i)instruct|chat|non-?(?:think|reason)")


@dataclass(frozen=True, slots=True)
class ServerQuirks:
    left_out: frozenset[str] = frozenset()  # arguments, and bounds of schemas, that the server rejects
    plain_roles: bool = False  # whether it accepts only alternating user and assistant messages
    thinks: bool | None = None  # whether the model reasons before it replies; None: not seen yet
    unopened: bool | None = None  # whether its text has an end tag of reasoning without a start tag; None: not seen yet

    def without(self, argument: str) -> "ServerQuirks":
        return replace(self, left_out=self.left_out | {argument})

    def merge(self, other: "ServerQuirks") -> "ServerQuirks":
        return ServerQuirks(
            self.left_out | other.left_out,
            self.plain_roles or other.plain_roles,
            self.thinks if other.thinks is None else other.thinks,
            self.unopened if other.unopened is None else other.unopened,
        )

    @property
    def schema(self) -> bool:
        return SCHEMA_ARGUMENT not in self.left_out


class QuirkMemory:
    def __init__(self) -> None:
        self._quirks: dict[str, ServerQuirks] = {}

    def of(self, model: str) -> ServerQuirks:
        return self._quirks.get(model, ServerQuirks())

    def learn(self, model: str, found: ServerQuirks) -> None:
        self._quirks[model] = self.of(model).merge(found)


def is_reasoning_model(settings: ModelSettings, model: str, quirks: ServerQuirks) -> bool:
    """Return whether a model reasons before it replies: by the settings, else as observed, else by its name."""
    known = settings.thinks if settings.thinks is not None else quirks.thinks
    if known is not None:
        return known
    return bool(_HIDDEN_REASONERS.search(model) or _VISIBLE_REASONERS.search(model)) and not _NON_REASONERS.search(
        model
    )


def may_begin_inside_reasoning(settings: ModelSettings, model: str, quirks: ServerQuirks) -> bool:
    """Return whether a stream may begin inside the reasoning, so that its start must be held back."""
    if quirks.unopened is not None:
        return quirks.unopened
    return is_reasoning_model(settings, model, quirks) and not _HIDDEN_REASONERS.search(model)


_SCHEMA_INSTRUCTION = "Reply with one JSON object and nothing else. It must fit this JSON schema:\n"

SHORTEN_HINT = "set a model with a larger window, or lower passages in [limits]"


@dataclass(frozen=True, slots=True)
class ModelRequest:
    plan: StagePlan
    quirks: ServerQuirks
    arguments: Mapping[str, Any]
    prompt_tokens: int  # estimated
    reply_tokens: int  # maximum length of the whole reply, reasoning included
    shown: bool  # whether pieces of the reply are passed on as they arrive
    hold: bool  # whether to wait for the end of the reply, as it may begin inside the reasoning


def find_bounds(schema: Any) -> Iterator[str]:
    """Yield the bounds that a schema sets for the lengths of lists and texts, and for numbers."""
    for key, value in schema.items() if isinstance(schema, Mapping) else ():
        if key in _BOUNDS:
            yield key
        yield from find_bounds(value)


def _omit_bounds(schema: Any, left_out: frozenset[str]) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    return {key: _omit_bounds(value, left_out) for key, value in schema.items() if key not in left_out & _BOUNDS}


def compose_request(call: ModelCall, settings: ModelSettings, quirks: ServerQuirks, *, shown: bool) -> ModelRequest:
    """Build the request for a call. Raises `PromptTooLong`.

    Every reply is streamed, also one that nobody sees before its end, so that a loop can be stopped.
    """
    plan = settings.plan(call.stage)
    prompt, visible = estimate_prompt_tokens(call), plan.max_tokens or call.max_tokens
    reply = visible + (settings.thinking_tokens if is_reasoning_model(settings, plan.model, quirks) else 0)
    if settings.context_tokens:
        reply = _fit_reply(prompt, visible, reply, settings.context_tokens)
    arguments: dict[str, Any] = {
        "model": plan.model,
        "messages": _format_messages(call, plan, quirks),
        "max_completion_tokens" if "max_tokens" in quirks.left_out else "max_tokens": reply,
    }
    optional = {
        "temperature": plan.temperature,
        "top_p": settings.top_p,
        "reasoning_effort": plan.reasoning_effort or None,
        "stream": True,
        "stream_options": {"include_usage": True},
        **(PENALTIES if call.varied else {}),
        **_build_cache_arguments(call, find_cache_kind(settings.api, settings.server, plan.model)),
    }
    arguments |= {key: value for key, value in optional.items() if value is not None and key not in quirks.left_out}
    if call.shared and OPTIONS_ARGUMENT in arguments and not quirks.plain_roles:
        arguments["messages"] = _mark_beginning(arguments["messages"], call.shared)
    if call.schema is not None:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", call.stage)[:64] or "reply"
        # OpenAI bounds numbers and lists, but not texts.
        left_out = quirks.left_out | ({"maxLength"} if settings.at_openai else set())
        bounded = _omit_bounds(call.schema, left_out)
        schema = {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": bounded}}
        arguments[SCHEMA_ARGUMENT] = {"type": "json_object"} if plan.structured == "json" else schema
    hold = not shown or may_begin_inside_reasoning(settings, plan.model, quirks)
    return ModelRequest(plan, quirks, arguments, prompt, reply, shown, hold)


def _fit_reply(prompt: int, visible: int, reply: int, context: int) -> int:
    """Fit a reply into the context window by shortening its reasoning, not the visible reply."""
    if prompt + visible > context:
        message = f"the call needs about {prompt + visible} tokens, and the model can hold {context}"
        raise PromptTooLong(message, hint=f"raise context_tokens if the model holds more, or {SHORTEN_HINT}")
    return min(reply, context - prompt)


def _format_messages(call: ModelCall, plan: StagePlan, quirks: ServerQuirks) -> list[dict[str, str]]:
    messages: Sequence[ChatMessage] = call.messages
    if call.schema is not None and plan.structured == "json":
        messages = _append_instruction(messages, _SCHEMA_INSTRUCTION + json.dumps(_omit_bounds(call.schema, _BOUNDS)))
    if quirks.plain_roles:
        # User and assistant alternate; the instruction becomes the user's.
        groups = groupby(messages, key=lambda message: message.role == "assistant")
        merge = ((is_reply, "\n\n".join(message.text for message in group)) for is_reply, group in groups)
        messages = tuple(ChatMessage("assistant" if is_reply else "user", text) for is_reply, text in merge)
    return [{"role": message.role, "content": repair_surrogates(message.text)} for message in messages]


def _append_instruction(messages: Sequence[ChatMessage], rule: str) -> Sequence[ChatMessage]:
    """Append a rule to the system message: before the examples, so that a prefix cache covers it."""
    if messages[0].role != "system":
        return (ChatMessage("system", rule), *messages)
    return (ChatMessage("system", f"{messages[0].text}\n\n{rule}"), *messages[1:])


def _build_cache_arguments(call: ModelCall, kind: CacheKind) -> dict[str, Any]:
    """Return the arguments by which calls with the same beginning reach the same cache; they contain no user data."""
    if kind == "none" or call.messages[0].role != "system":
        return {}
    beginning = call.messages[0].text[: call.shared or None]
    key = hashlib.sha256(beginning.encode("utf-8", "replace")).hexdigest()[:32]
    # Without a mark, the server stores each whole call at a price, though no other call can use it.
    return {KEY_ARGUMENT: key} | ({OPTIONS_ARGUMENT: {"mode": "explicit"}} if kind == "marks" else {})


def _mark_beginning(messages: Sequence[dict[str, Any]], shared: int) -> list[dict[str, Any]]:
    """Return messages with a cache mark at the end of the shared beginning."""
    first, *others = messages
    marked = {"type": "text", "text": first["content"][:shared], "prompt_cache_breakpoint": {"mode": "explicit"}}
    return [{**first, "content": [marked, {"type": "text", "text": first["content"][shared:]}]}, *others]
