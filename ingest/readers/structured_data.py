"""Read JSON, YAML and TOML: one table block per object, "name: value; name: value"."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from ingest.readers import table_rows, value_parsers
from ingest.readers.parsed_document import ContentItem, Heading, ParsedDocument
from ingest.types import Block, UnreadableDocument

_DEEPEST_HEADING = 4
_LARGEST = 1_000_000
"""Values. A few lines of YAML that refer to each other can expand beyond any memory."""
_LONG_VALUE = 200  # characters; a longer value becomes a paragraph


def read_json(text: str) -> ParsedDocument:
    try:
        return _read_data(json.loads(text))
    except json.JSONDecodeError as error:
        try:
            return _read_data([json.loads(line) for line in text.splitlines() if line.strip()])
        except json.JSONDecodeError:
            raise UnreadableDocument(f"is broken JSON, in line {error.lineno}") from error


def read_yaml(text: str) -> ParsedDocument:
    try:
        documents = list(value_parsers.load_yaml_documents(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise UnreadableDocument(f"is broken YAML{f', in line {mark.line + 1}' if mark else ''}") from error
    return _read_data(documents[0] if len(documents) == 1 else documents)


def read_toml(text: str) -> ParsedDocument:
    try:
        return _read_data(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UnreadableDocument(f"is broken TOML: {error}") from error


def _read_data(data: Any) -> ParsedDocument:
    if _weight(data, {}) > _LARGEST:
        raise UnreadableDocument("grows too large once its references are followed")
    return ParsedDocument(tuple(_items(data, 2)))


def _weight(data: Any, known: dict[int, int]) -> int:
    """Count the values in `data`. A value with several references counts once for each, but is visited only once."""
    if not isinstance(data, list | Mapping):
        return 1
    if id(data) not in known:
        # Until its weight is known, data that contains itself exceeds the limit.
        known[id(data)] = _LARGEST + 1
        inside = data if isinstance(data, list) else data.values()
        known[id(data)] = 1 + sum(_weight(value, known) for value in inside)
    return known[id(data)]


def _items(data: Any, level: int) -> Iterator[ContentItem]:
    if isinstance(data, Mapping):
        yield from _object(data, level)
    elif isinstance(data, list):
        for element in data:
            yield from _items(element, level)
    elif text := _format(data):
        yield Block(text)


def _object(data: Mapping[Any, Any], level: int) -> Iterator[ContentItem]:
    """Read the plain values of an object first, then the objects in it, each under its name."""
    facts = {str(name): text for name, value in data.items() if (text := _fact(value)) and len(text) <= _LONG_VALUE}
    yield from table_rows.make_row_blocks(list(facts), [list(facts.values())])
    for name, value in data.items():
        if str(name) in facts:
            continue
        inside = list(_items(value, min(level + 1, _DEEPEST_HEADING)))
        if inside:
            yield Heading(level, str(name))
            yield from inside


def _fact(value: Any) -> str:
    """Format a plain value, or a list of plain values; empty for anything else."""
    if isinstance(value, list):
        return "" if any(isinstance(part, list | Mapping) for part in value) else ", ".join(map(_format, value))
    return "" if isinstance(value, Mapping) else _format(value)


def _format(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(str(value).split())
