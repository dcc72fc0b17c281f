"""A call as the arguments that a server gets. Pure."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pipeline.errors import PromptTooLong
from pipeline.llm.counting import prompt_tokens
from pipeline.llm.manners import SCHEMA, Manners, begins_unopened, thinks
from pipeline.llm.settings import ModelSettings, Plan
from pipeline.llm.surrogates import sound
from pipeline.model import Message, ModelCall

_BY_SCHEMA = "Reply with one JSON object and nothing else. It must fit this JSON schema:\n"


LESS = "set a model with a larger window, or lower passages in [limits]"
"""What to do where a call does not fit."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A call ready to be sent."""

    plan: Plan
    manners: Manners
    arguments: Mapping[str, Any]
    prompt_tokens: int
    """Estimated."""
    reply_tokens: int
    """How long the whole reply may be, thoughts included."""
    hold: bool
    """Whether what comes first may be the rest of a thought."""

    @property
    def streamed(self) -> bool:
        """Whether the reply is to come in pieces."""
        return bool(self.arguments.get("stream"))


def compose(call: ModelCall, settings: ModelSettings, manners: Manners, *, streamed: bool) -> Asked:
    """Return what is sent for a call.

    Raises:
        PromptTooLong: It cannot fit the context window that is set, by our estimate.
    """
    plan = settings.plan(call.stage)
    prompt, visible = prompt_tokens(call), plan.max_tokens or call.max_tokens
    reply = visible + (settings.thinking_tokens if thinks(settings, plan.model, manners) else 0)
    if settings.context_tokens:
        reply = _fitted(prompt, visible, reply, settings.context_tokens)
    arguments = {
        "model": plan.model,
        "messages": _messages(call, plan, manners),
        "max_completion_tokens" if "max_tokens" in manners.left_out else "max_tokens": reply,
        **_modest(plan, manners, streamed=streamed),
    }
    if call.schema is not None:
        arguments[SCHEMA] = _format(call, plan)
    hold = not streamed or begins_unopened(settings, plan.model, manners)
    return Asked(plan, manners, arguments, prompt, reply, hold)


def _fitted(prompt: int, visible: int, reply: int, context: int) -> int:
    """Return how long a reply may be beside its prompt: thoughts give way, the reply does not."""
    if prompt + visible > context:
        message = f"the call needs about {prompt + visible} tokens, and the model can hold {context}"
        raise PromptTooLong(message, hint=f"raise context_tokens if the model holds more, or {LESS}")
    return min(reply, context - prompt)


def _modest(plan: Plan, manners: Manners, *, streamed: bool) -> dict[str, Any]:
    wanted = {
        "temperature": plan.temperature,
        "reasoning_effort": plan.reasoning_effort or None,
        "stream": True if streamed else None,
        "stream_options": {"include_usage": True} if streamed else None,
    }
    return {name: value for name, value in wanted.items() if value is not None and name not in manners.left_out}


def _format(call: ModelCall, plan: Plan) -> dict[str, Any]:
    if plan.structured == "json":
        return {"type": "json_object"}
    name = re.sub(r"[^A-Za-z0-9_-]", "_", call.stage)[:64] or "reply"
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": call.schema}}


def _messages(call: ModelCall, plan: Plan, manners: Manners) -> list[dict[str, str]]:
    messages: Sequence[Message] = call.messages
    if call.schema is not None and plan.structured == "json":
        messages = _with_rule(messages, _BY_SCHEMA + json.dumps(call.schema))
    if manners.plain_roles:
        messages = tuple(_taking_turns(messages))
    return [{"role": message.role, "content": sound(message.text)} for message in messages]


def _with_rule(messages: Sequence[Message], rule: str) -> Sequence[Message]:
    """Return messages whose instruction ends in a rule: before the examples, where a prefix cache keeps it."""
    if messages[0].role != "system":
        return (Message("system", rule), *messages)
    return (Message("system", f"{messages[0].text}\n\n{rule}"), *messages[1:])


def _taking_turns(messages: Iterable[Message]) -> Iterable[Message]:
    """Yield messages of a user and an assistant by turns: the instruction becomes the user's."""
    for assistant, group in groupby(messages, key=lambda message: message.role == "assistant"):
        yield Message("assistant" if assistant else "user", "\n\n".join(message.text for message in group))
