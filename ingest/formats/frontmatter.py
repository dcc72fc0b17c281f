"""The block of YAML (`---`) or TOML (`+++`) that opens many Markdown files: read, and cut off."""

import re
import tomllib
from collections.abc import Mapping
from datetime import date
from typing import Any

import yaml

from ingest.formats import safe_yaml

_YAML = re.compile(r"\A---[ \t]*\n(.*?\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TOML = re.compile(r"\A\+\+\+[ \t]*\n(.*?\n)??\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"^[A-Za-z_][\w -]*:", re.MULTILINE)

DATES = ("updated", "last_updated", "lastmod", "last_modified", "modified", "date")
"""The fields that tell when a page was last changed, the most telling first."""
REVISIONS = ("revision", "version")


def split(text: str) -> tuple[Mapping[str, Any], str]:
    """The plain fields, named in lower case with `_` for `-`, and the text after them; no block has no fields."""
    if match := _YAML.match(text):
        fields = _loaded(match[1] or "")
    elif match := _TOML.match(text):
        fields = _toml(match[1] or "")
    else:
        return {}, text
    if fields is None:
        return {}, text
    said = {str(name).lower().replace("-", "_"): value for name, value in fields.items() if _is_plain(value)}
    return said, text[match.end() :]


def first(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The first of the named fields that is there and says something, else None."""
    return next(iter(stated(fields, names)), None)


def stated(fields: Mapping[str, Any], names: tuple[str, ...]) -> list[Any]:
    """Those of the named fields that are there and say something, in the order of the names."""
    return [fields[name] for name in names if fields.get(name) not in (None, "")]


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | date)


def _loaded(source: str) -> Mapping[str, Any] | None:
    """None where the block is no front matter: a text between two rules."""
    try:
        fields = safe_yaml.load(source)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {} if _FIELD.match(source) else None
    if fields is None:
        return {}
    return fields if isinstance(fields, dict) else None


def _toml(source: str) -> Mapping[str, Any] | None:
    try:
        return tomllib.loads(source)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
