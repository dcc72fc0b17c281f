"""Find the lines of a TOML file that set its keys, which `tomllib` does not report, and format values. Pure."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from storage.language.lazy_pattern import lazy_compile

Key = tuple[str | int, ...]  # the path of a value, such as `("corpus", 0, "name")`

_PART = r"(?:[\w-]+|\"[^\"]*\"|'[^']*')"
_NAME = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = lazy_compile(rf"\s*(\[{{1,2}})\s*({_NAME})\s*\]")
_SETTING = lazy_compile(rf"\s*({_NAME})\s*=")
_PARTS = lazy_compile(_PART)


def index_lines(text: str) -> dict[Key, range]:
    """Return the lines of each table's header, and of each key with its value. Lines are counted from 0."""
    return dict(_scan(text.split("\n")))


def find_line(text: str, key: Key) -> int | None:
    """Return the number, counted from 1, of the line that sets a key, or of the nearest enclosing table's line."""
    lines = index_lines(text)
    return next((lines[key[:size]].start + 1 for size in range(len(key), 0, -1) if key[:size] in lines), None)


def _scan(lines: list[str]) -> Iterator[tuple[Key, range]]:
    table: Key = ()
    counts: dict[Key, int] = {}
    number = 0
    while number < len(lines):
        end = number + 1
        if header := _HEADER.match(lines[number]):
            table = _resolve(_split(header[2]), counts, append=header[1] == "[[")
            yield table, range(number, end)
        elif setting := _SETTING.match(lines[number]):
            end = _find_end(lines, number)
            yield (*table, *_split(setting[1])), range(number, end)
        number = end


def _resolve(name: Key, counts: dict[Key, int], *, append: bool) -> Key:
    """Return the full key of a table in the file. An array of tables on its path stands for its last entry."""
    path: Key = ()
    for place, part in enumerate(name):
        path = (*path, part)
        if append and place == len(name) - 1:
            counts[path] = counts.get(path, 0) + 1
        if path in counts:
            path = (*path, counts[path] - 1)
    return path


def _split(name: str) -> Key:
    return tuple(part.strip("\"'") for part in _PARTS.findall(name))


_LONGEST = 200  # lines of a value


def _find_end(lines: list[str], start: int) -> int:
    """Return the number of the line after a value. The value ends as soon as its lines are valid TOML."""
    value = lines[start].partition("=")[2].strip()
    if not value.startswith(("[", "{", '"""', "'''")):
        return start + 1
    for end in range(start + 1, min(start + _LONGEST, len(lines)) + 1):
        try:
            tomllib.loads("\n".join(lines[start:end]))
        except tomllib.TOMLDecodeError:
            continue
        return end
    return start + 1


def format_toml(value: Any) -> str:
    """Format a value as TOML in one line: text, number, boolean, list or table."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {format_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(format_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
