"""What of a server's error may be said: one short line, without anything like a key. Pure.

A server may echo the key it was given, whole or in part, and the prompt.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_LONGEST = 240
_KEYS = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|key)[-_][\w*.\-]{6,}"
    r"|(?i:bearer)\s+[^\s\"',;]+"
    r"|(?i:api[-_]?key|authorization|token|secret|password)\b[\"']?\s*[=:]\s*[\"']?(?:(?i:bearer|basic)\s+)?[^\s\"',;&]+"
    r"|(?<=//)[^/\s@]+(?=@)"
)
_DEEPEST = 8
_TOLD = ("code", "type", "param", "message", "msg", "loc", "detail", "error")
_UNREAD = "it sent no message"


def words_of(body: bytes) -> str:
    """Return the words by which an error can be told, in lower case: never the input that a server echoes."""
    return " ".join(_strings(_parsed(body))).lower()


def said_by(body: bytes, secrets: Iterable[str]) -> str:
    """Return the server's message in one line that may be shown."""
    content = _parsed(body)
    if isinstance(content, str):
        return "it sent a web page" if content.lstrip().startswith("<") else shown(content, secrets) or _UNREAD
    return shown(_message(content), secrets) or _UNREAD


def shown(text: str, secrets: Iterable[str]) -> str:
    """Return a text in one line, cut where it is long, without keys."""
    line = " ".join(text.split())
    for secret in secrets:
        line = line.replace(secret, "***")
    line = _KEYS.sub("***", line)
    return line if len(line) <= _LONGEST else line[:_LONGEST].rstrip() + "…"


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def _message(content: Any) -> str:
    return next(_strings(content, ("error", "message", "detail", "msg")), "")


def _strings(content: Any, keys: tuple[str, ...] = _TOLD, depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(content, dict):
        for key in keys:
            yield from _strings(content.get(key), keys, depth + 1)
    elif isinstance(content, list):
        for item in content:
            yield from _strings(item, keys, depth + 1)
    elif isinstance(content, str | int) and not isinstance(content, bool):
        yield str(content)
