"""Define the format of replies, JSON by a schema or strict text, and parse the elements that formats share. Pure."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from pipeline.errors import UnreadableReply
from storage.language.lazy_pattern import lazy_compile

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ReplyFormat(Generic[T]):
    """A stage's reply in both formats; the parsers raise `UnreadableReply`, which names the missing part."""

    schema: Mapping[str, Any] | None
    """A strict JSON schema (an object at its top); None for replies that are plain text anyway."""
    from_json: Callable[[Any], T]  # parses JSON that fits the schema
    from_text: Callable[[str], T]  # parses the text that the template requests without a schema


class ReplySplitter(Protocol[T_co]):
    """Splits a streamed reply into values, each as soon as it is certain.

    A retried reply gets a fresh copy of the splitter.
    """

    def feed(self, piece: str) -> tuple[T_co, ...]:
        """Take the next piece of the reply, and return the values that have become certain with it."""
        ...

    def close(self, *, cut: bool = False) -> tuple[T_co, ...]:
        """Return the last values, of a `cut` reply without an incomplete one.

        Raises `UnreadableReply`, but only if no value was returned before.
        """
        ...


MAX_REPLY = 100_000  # characters. No stage asks for a reply near this.
MAX_JSON_STARTS = 20  # opening braces at which a JSON object is tried
_NAMED_ITEM = r"(?:claim|fact|bullet|point)\s*\d*\s*[:.)]"
_BULLET = lazy_compile(rf"\s*(?:[-*•‣–—·]\s+(?:{_NAMED_ITEM}\s+)?|{_NAMED_ITEM}\s+)(?=\S)", re.IGNORECASE)
_LINE_END = lazy_compile(r"[.!?。！？…:|\])\"”]$|\|\s*\w+$")
_ENUMERATOR = lazy_compile(r"\s*\(?(\d{1,2})[.):]\s+(?=\S)")
_EMPHASIS = lazy_compile(r"\*\*|^#+\s+")
_NUMBER_RANGE = lazy_compile(r"(\d{1,4})(?:\s*[-–]\s*(\d{1,4}))?")
_NOTHING = frozenset({"nothing", "none", "null", "n/a", "no", "no claims", "no facts", "unrelated", ""})


def extract_json_object(text: str, *, cut: bool = False) -> Mapping[str, Any]:
    """Return the first JSON object in a text; of a `cut` one, the complete items. Raises `UnreadableReply`."""
    text = _close_json(text) if cut else text
    decoder, start = json.JSONDecoder(), text.find("{")
    for _ in range(MAX_JSON_STARTS):
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


_JSON_TOKEN = lazy_compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[][{}]')


def _close_json(text: str) -> str:
    """Return the beginning of a JSON text up to the last whole item of a list, closed; unchanged without any."""
    closing, whole = list[str](), text
    for token in _JSON_TOKEN.finditer(text):
        if token[0] in {"{", "["}:
            closing.append("}" if token[0] == "{" else "]")
        elif closing and token[0] == closing[-1]:
            closing.pop()
            if closing[-1:] == ["]"]:
                whole = text[: token.end()] + "".join(reversed(closing))
            elif not closing:
                return text  # it is complete
    return whole


def get_field(found: Any, name: str, kind: type | tuple[type, ...]) -> Any:
    """Return a field of a JSON object. Raises `UnreadableReply` if it is missing or of another type."""
    if not isinstance(found, Mapping) or name not in found:
        raise UnreadableReply(f"“{name}” is missing")
    value = found[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise UnreadableReply(f"“{name}” has the wrong type")
    return value


def strip_emphasis_marks(text: str) -> str:
    return _EMPHASIS.sub("", text).strip()


def is_nothing(text: str) -> bool:
    return strip_emphasis_marks(text).strip(" .!\"'“”()[]*•-").casefold() in _NOTHING


def split_items(text: str) -> tuple[str, ...]:
    """Return the items of a list in a text, without bullets and numbers; empty if there is no list.

    Numbers must count up from 1, so "7. Juli" is not an item.
    """
    found: list[str] = []
    numbered, open_item = 0, False
    for line in (_EMPHASIS.sub("", raw) for raw in text.splitlines()):
        bullet, number = _BULLET.match(line), _ENUMERATOR.match(line)
        mark = bullet or (number if number and int(number[1]) == numbered + 1 else None)
        if mark:
            numbered += mark is number
            found.append(_join_spaces(line[mark.end() :]))
        elif open_item and line.strip() and not _LINE_END.search(found[-1]):
            found[-1] += f" {_join_spaces(line)}"
        open_item = bool(found) and bool(line.strip())
    return tuple(found)


def split_lines(text: str) -> tuple[str, ...]:
    lines = (_join_spaces(strip_emphasis_marks(line)) for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("```"))


def _join_spaces(line: str) -> str:
    """Return a line with single spaces: some models write endless runs of them, which would slow patterns down."""
    return " ".join(line.split())


def find_labelled(text: str, *labels: str) -> str | None:
    """Return the text after a label and a colon, from the last line that begins with these; None if none does."""
    opening = re.compile(rf"\s*(?:[-*•]\s+)?(?:{'|'.join(map(re.escape, labels))})\s*[:：=]\s*(.*)", re.IGNORECASE)
    values = [match[1] for line in text.splitlines() if (match := opening.fullmatch(_EMPHASIS.sub("", line)))]
    return values[-1].strip() if values else None


def parse_numbers(text: str, count: int) -> tuple[int, ...]:
    """Return the numbers from 1 to `count` that a text names, each once; "2-4" names three."""
    ranges = ((int(match[1]), int(match[2] or match[1])) for match in _NUMBER_RANGE.finditer(text))
    named = (number for first, last in ranges for number in range(max(first, 1), min(last, count) + 1))
    return tuple(dict.fromkeys(named))


def parse_number_list(found: Any, count: int) -> tuple[int, ...]:
    """Return the numbers from 1 to `count` in a JSON list, each once. A string of digits counts as a number."""
    if not isinstance(found, list):
        raise UnreadableReply("a list of numbers is missing")
    written = [item.strip().strip("[]") if isinstance(item, str) else item for item in found]
    named = [int(item) if isinstance(item, str) and re.fullmatch(r"\d{1,4}", item) else item for item in written]
    whole = (item for item in named if isinstance(item, int) and not isinstance(item, bool))
    return tuple(dict.fromkeys(number for number in whole if 1 <= number <= count))


def object_schema(**properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a strict schema: an object with exactly these properties, all of them required."""
    closed = {"required": list(properties), "additionalProperties": False}
    return {"type": "object", "properties": properties, **closed}


def list_schema(items: Mapping[str, Any], most: int) -> Mapping[str, Any]:
    """Return the schema of a list. Bounds do not depend on the turn: servers compile and keep each schema."""
    return {"type": "array", "items": items, "maxItems": most}


def string_schema(most: int) -> Mapping[str, Any]:
    """Return the schema of a text of at most so many characters, fewer than the 2,000 that llama.cpp allows."""
    return {"type": "string", "maxLength": most}


def integer_schema(least: int, most: int) -> Mapping[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


BOOLEAN: Mapping[str, Any] = {"type": "boolean"}
TIME: Mapping[str, Any] = {"type": "string", "maxLength": 10}  # "recent", "none", or a year
_NUMBER: Mapping[str, Any] = {"type": "integer", "minimum": 1, "maximum": 999}
SENTENCE_NUMBERS: Mapping[str, Any] = {"type": "array", "items": _NUMBER, "maxItems": 12}
