"""How many tokens a text has, about. Pure: servers' tokenizers differ, and none is at hand before the call.

Three and a half bytes of UTF-8 a token: a fifth too many for English on today's vocabularies, about right for German
and for Chinese (a character a token), too many for Cyrillic. To count too many is the safe side of a limit.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from pipeline.model import ModelCall

_BYTES_A_TOKEN = 3.5
_A_MESSAGE = 4
"""Tokens around each message: its role, and the marks that part it from the next."""


def tokens(text: str) -> int:
    """Return about how many tokens a text has."""
    return math.ceil(len(text.encode("utf-8", "replace")) / _BYTES_A_TOKEN)


def prompt_tokens(call: ModelCall) -> int:
    """Return about how many tokens the server reads for a call, its schema included."""
    return sum(tokens(message.text) + _A_MESSAGE for message in call.messages) + _schema_tokens(call.schema)


def _schema_tokens(schema: Mapping[str, Any] | None) -> int:
    return tokens(json.dumps(schema)) if schema else 0
