"""Read fields of JSON that may be malformed, and strip formatting from text; pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bot.views.catalog import is_count
from bot.views.sanitize import strip_invisible
from storage.language.lazy_pattern import lazy_compile

Json = Mapping[str, Any]
JsonObject = dict[str, Any]


def read_object(data: Json, name: str) -> Json:
    """Return the object in a field; an empty one if there is none."""
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def read_objects(data: Json, name: str) -> list[Json]:
    values = data.get(name)
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list | tuple) else []


StripFormatting = Callable[[str], str]

_CODE = lazy_compile(r"```(?:[\w+#.-]*\n)?(.*?)```|``(.+?)``|`([^`\n]+)`", re.DOTALL)
_WIDEST = 300
"""Longest text between two marks, in characters: a message with thousands of marks must not block others."""
_FOOTNOTE = lazy_compile(r"^\[\d+\] .*$|[ \t]*\[\d+\]", re.MULTILINE)


def build_stripper(lines: str, marks: Sequence[str], link: str = "") -> StripFormatting:
    """Return a function that removes a platform's formatting; code stays as it is."""
    at_beginning = re.compile(rf"^[ \t]*(?:{lines})", re.MULTILINE)
    shown_of = re.compile(link) if link else None
    around = [
        re.compile(rf"(?<![\w\\]){mark}(?=\S)(.{{1,{_WIDEST}}}?)(?<=\S){mark}(?!\w)", re.DOTALL) for mark in marks
    ]

    def unmarked(text: str) -> str:
        text = at_beginning.sub("", text)
        text = shown_of.sub(r"\1", text) if shown_of else text
        for mark in around:
            text = mark.sub(r"\1", text)
        return text

    def unformatted(text: str) -> str:
        return replace_pieces(
            text, _CODE, lambda code: next(group for group in code.groups() if group is not None), unmarked
        )

    return unformatted


def replace_pieces(
    text: str, pieces: re.Pattern[str], replace: Callable[[re.Match[str]], str], escape: Callable[[str], str]
) -> str:
    """Replace each match of `pieces` in a text, and escape the text between them."""
    shown, end = "", 0
    for piece in pieces.finditer(text):
        shown += escape(text[end : piece.start()]) + replace(piece)
        end = piece.end()
    return shown + escape(text[end:])


def strip_footnotes(text: str) -> str:
    """Return the text of our own answer without footnotes, lines of counts and invisible characters."""
    lines = _FOOTNOTE.sub("", strip_invisible(text)).splitlines()
    return "\n".join(line for line in lines if not is_count(line)).strip()
