"""What a prompt asks for, told by the form that it wants its reply in. Pure.

The stage that asks can also be named as the model; where the prompt tells a form, that counts.
"""

import re
from collections.abc import Mapping
from typing import Any

_BY_FIELDS = (("search", "query"), ("bullets", "summarise"), ("claims", "split"), ("verdict", "verify"))
"""Fields of a JSON schema, and the kind of reply that has them."""
_BY_WORDS = (
    (re.compile(r"^Search: yes or no", re.MULTILINE), "query"),
    (re.compile(r"- statement \[numbers\]"), "summarise"),
    (re.compile(r"- claim \| time"), "split"),
    (re.compile(r"^Verdict: SUPPORTS", re.MULTILINE), "verify"),
    (re.compile(r"\b1\. SUPPORTS \["), "verdicts"),
    (re.compile(r"remark\. score/100"), "feedback"),
    (re.compile(r"You revise the draft"), "refine"),
    (re.compile(r"numbers of the notes"), "draft"),
)
_OTHERWISE = "generate"


def kind_of(asked: Mapping[str, Any]) -> str:
    """Return which kind of reply a request wants: one of `settings.LENGTHS`.

    Args:
        asked: The request's body, as the protocol has it.
    """
    fields = schema_of(asked).get("properties", {})
    if "relevant" in fields:
        return "feedback"
    by_schema = next((kind for name, kind in _BY_FIELDS if name in fields), "")
    if by_schema:
        return by_schema
    instruction = asked["messages"][0]["content"]
    return next((kind for words, kind in _BY_WORDS if words.search(instruction)), _OTHERWISE)


def schema_of(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON schema that a reply must fit; empty where none is asked for."""
    wanted = asked.get("response_format") or {}
    found: Mapping[str, Any] = wanted.get("json_schema", {}).get("schema", {})
    return found
