"""How replies are read, whatever the stage: JSON in its wrappings, lists, labelled lines, numbers. Pure.

Strict about what is said, lenient about how: code fences, a sentence before the JSON, bullets of any shape, bold labels
and remarks after the end are habits of models and harmless. All that cannot be read raises `UnreadableReply`, nothing
else.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from pipeline.errors import UnreadableReply

LONGEST = 100_000
"""Characters. No stage asks for a reply near this."""
TRIES = 20
"""At so many opening braces a JSON object is looked for."""
_NAMED = r"(?:claim|fact|bullet|point)\s*\d*\s*[:.)]"
_BULLET = re.compile(rf"\s*(?:[-*•‣–—·]\s+(?:{_NAMED}\s+)?|{_NAMED}\s+)(?=\S)", re.IGNORECASE)
_ENDED = re.compile(r"[.!?。！？…:|\])\"”]$|\|\s*\w+$")
_ENUMERATOR = re.compile(r"\s*\(?(\d{1,2})[.):]\s+(?=\S)")
_EMPHASIS = re.compile(r"\*\*|^#+\s+")
_RANGE = re.compile(r"(\d{1,4})(?:\s*[-–]\s*(\d{1,4}))?")
_NOTHING = frozenset({"nothing", "none", "null", "n/a", "no", "no claims", "no facts", "unrelated", ""})


def json_object(text: str) -> Mapping[str, Any]:
    """Return the first JSON object in a text, whatever stands round it.

    Raises:
        UnreadableReply: there is none, or it was cut short.
    """
    decoder, start = json.JSONDecoder(), text.find("{")
    for _ in range(TRIES):
        if start < 0:
            break
        try:
            found, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
            continue
        if isinstance(found, dict):
            return found
    raise UnreadableReply("there is no complete JSON object in it")


def field(found: Any, name: str, kind: type | tuple[type, ...]) -> Any:
    """Return a field of a JSON object.

    Raises:
        UnreadableReply: it is missing or of another kind.
    """
    if not isinstance(found, Mapping) or name not in found:
        raise UnreadableReply(f"“{name}” is missing")
    value = found[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise UnreadableReply(f"“{name}” has the wrong type")
    return value


def plain(text: str) -> str:
    """Return a line without emphasis, the white space around it gone."""
    return _EMPHASIS.sub("", text).strip()


def is_nothing(text: str) -> bool:
    """Return whether a text says that there is nothing to say."""
    return plain(text).strip(" .!\"'“”()[]*•-").casefold() in _NOTHING


def items(text: str) -> tuple[str, ...]:
    """Return the items of a list, marks gone; none where no line is marked. A line that runs on belongs to its item.

    A number is a mark only where it counts on: "3.5 million" and "7. Juli" open no item, unless six went before.
    """
    found: list[str] = []
    numbered, open_item = 0, False
    for line in (_EMPHASIS.sub("", raw) for raw in text.splitlines()):
        bullet, number = _BULLET.match(line), _ENUMERATOR.match(line)
        mark = bullet or (number if number and int(number[1]) == numbered + 1 else None)
        if mark:
            numbered += mark is number
            found.append(line[mark.end() :].strip())
        elif open_item and line.strip() and not _ENDED.search(found[-1]):
            found[-1] += f" {line.strip()}"
        open_item = bool(found) and bool(line.strip())
    return tuple(found)


def lines(text: str) -> tuple[str, ...]:
    """Return the lines of a text that are not empty, without emphasis and the fences of code."""
    found = (plain(line) for line in text.splitlines())
    return tuple(line for line in found if line and not line.startswith("```"))


def labelled(text: str, *labels: str) -> str | None:
    """Return what stands behind the last line that opens with one of the labels and a colon; None where none does."""
    opening = re.compile(rf"\s*(?:[-*•]\s+)?(?:{'|'.join(map(re.escape, labels))})\s*[:：=]\s*(.*)", re.IGNORECASE)
    found = [match[1] for line in text.splitlines() if (match := opening.fullmatch(_EMPHASIS.sub("", line)))]
    return found[-1].strip() if found else None


def numbers(text: str, count: int) -> tuple[int, ...]:
    """Return the numbers from 1 to `count` that a text names, each once; "2-4" names three."""
    named: dict[int, None] = {}
    for match in _RANGE.finditer(text):
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        named.update(dict.fromkeys(number for number in range(first, min(last, count) + 1) if number >= 1))
    return tuple(named)


def whole_numbers(found: Any, count: int) -> tuple[int, ...]:
    """Return those of a JSON list that are numbers from 1 to `count`, each once; digits in a string are numbers too."""
    if not isinstance(found, list):
        raise UnreadableReply("a list of numbers is missing")
    named = (_whole(one) for one in found)
    return tuple(dict.fromkeys(number for number in named if 1 <= number <= count))


def _whole(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"\[?\d{1,4}\]?", value.strip()):
        return int(value.strip().strip("[]"))
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def object_schema(**properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a strict schema: an object with exactly these properties, all of them required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def list_schema(items: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


STRING: Mapping[str, Any] = {"type": "string"}
INTEGER: Mapping[str, Any] = {"type": "integer"}
BOOLEAN: Mapping[str, Any] = {"type": "boolean"}
