"""Decide how calls are made for servers that ask less for the beginning of a prompt that they know. Pure.

OpenAI and Azure keep prompts from 1,024 tokens on. Models before GPT-5.6 know whatever a call before began with, in
steps of 128 tokens. Later ones know only what ends at a mark in the call, and keeping it costs a quarter more.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

from pipeline.model import ModelCall
from storage.language.lazy_pattern import lazy_compile

SharedBeginning = Literal["auto", "always", "never"]
"""Whether all calls of a turn begin alike: where it is known to cost less, in any case, or nowhere."""
CacheKind = Literal["none", "beginnings", "marks"]
"""What a server asks less for: nothing that is known of, what a call before began with, or what ends at a mark."""

KEY_ARGUMENT, OPTIONS_ARGUMENT = "prompt_cache_key", "prompt_cache_options"
CACHE_ARGUMENTS = frozenset({KEY_ARGUMENT, OPTIONS_ARGUMENT})
_OPENAI = "api.openai.com"
_FAMILY = lazy_compile(r"(?i)(?<![a-z0-9])gpt-(\d+)(?:\.(\d+))?(?![\do])")
_CHEAP_SINCE = (5, 0)  # those before ask a quarter or half for what they know, for which a longer beginning seldom pays
_MARKED_SINCE = (5, 6)


def find_cache_kind(api: str, server: str, model: str) -> CacheKind:
    """Return what a model's server asks less for, as far as the address and the model's name tell."""
    family = _FAMILY.search(model)
    if not family or not (api == "azure" or server == _OPENAI):
        return "none"
    version = (int(family[1]), int(family[2] or 0))
    return "marks" if version >= _MARKED_SINCE else "beginnings" if version >= _CHEAP_SINCE else "none"


def build_cache_arguments(call: ModelCall, kind: CacheKind) -> dict[str, Any]:
    """Return the arguments by which calls that begin alike reach the same cache; nothing in them is of a user."""
    if kind == "none" or call.messages[0].role != "system":
        return {}
    beginning = call.messages[0].text[: call.shared or None]
    key = hashlib.sha256(beginning.encode("utf-8", "replace")).hexdigest()[:32]
    # Else all of each call is kept, at a price, and no other call ever ends there.
    return {KEY_ARGUMENT: key} | ({OPTIONS_ARGUMENT: {"mode": "explicit"}} if kind == "marks" else {})


def mark_beginning(messages: Sequence[dict[str, Any]], shared: int) -> list[dict[str, Any]]:
    """Return messages with a mark where the shared beginning ends."""
    first, *others = messages
    marked = {"type": "text", "text": first["content"][:shared], "prompt_cache_breakpoint": {"mode": "explicit"}}
    return [{**first, "content": [marked, {"type": "text", "text": first["content"][shared:]}]}, *others]
