"""What of a server's error may be said: one short line, without anything like a key. Pure.

A server may echo the key it was given, whole or in part, and the prompt.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

_LONGEST = 240
_READ = 4_000
_KEYS = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|key)[-_][\w*.\-]{6,}"
    r"|(?i:bearer)\s+[^\s\"',;]+"
    r"|(?i:api[-_]?key|authorization|token|secret|password)\b[\"']?\s*[=:]\s*[\"']?(?:(?i:bearer|basic)\s+)?[^\s\"',;&]+"
    r"|(?<=//)[^/\s@]+(?=@)"
)
_TELLING = 6
"""Characters of a secret that tell of it."""
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
    line = _KEYS.sub("***", _without(" ".join(text.split())[:_READ], secrets))
    return line if len(line) <= _LONGEST else line[:_LONGEST].rstrip() + "…"


def _without(line: str, secrets: Iterable[str]) -> str:
    """Return a line with `***` for each run that is a secret, or `_TELLING` characters or more of one, in any case."""
    parts = {part for secret in secrets for part in _parts(_lowered(secret))}
    low, hidden = _lowered(line), bytearray(len(line))
    for size in {len(part) for part in parts}:
        for start in range(len(low) - size + 1):
            if low[start : start + size] in parts:
                hidden[start : start + size] = b"\1" * size
    runs = groupby(zip(line, hidden, strict=True), key=lambda pair: pair[1])
    return "".join("***" if hide else "".join(char for char, _ in run) for hide, run in runs)


def _parts(secret: str) -> Iterator[str]:
    """Yield the stretches by which a secret is known; one that is no longer is known as a whole."""
    if secret:
        yield from (secret[start : start + _TELLING] for start in range(max(1, len(secret) - _TELLING + 1)))


def _lowered(text: str) -> str:
    """Return a text in lower case that is as long as it was."""
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


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
