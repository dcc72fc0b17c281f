"""Read the front matter of a page: the fields in YAML or TOML before its text."""

import re
import tomllib
from collections.abc import Mapping
from datetime import date
from typing import Any

import yaml

from ingest.readers import value_parsers
from storage.language.lazy_pattern import lazy_compile

_YAML_BLOCK = lazy_compile(r"\A---[ \t]*\n(.*?\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TOML_BLOCK = lazy_compile(r"\A\+\+\+[ \t]*\n(.*?\n)??\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = lazy_compile(r"^[A-Za-z_][\w -]*:", re.MULTILINE)

DATE_FIELDS = ("updated", "last_updated", "lastmod", "last_modified", "modified", "date")
"""The fields that tell when a page was last changed, the most telling first."""
REVISION_FIELDS = ("revision", "version")


def split_front_matter(text: str) -> tuple[Mapping[str, Any], str]:
    """Return the plain fields, named in lower case with `_` for `-`, and the text after them."""
    fields, rest = load_front_matter(text)
    return {name: value for name, value in fields.items() if isinstance(value, str | int | float | date)}, rest


def load_front_matter(text: str) -> tuple[Mapping[str, Any], str]:
    """Return all fields, named alike, and the text after them."""
    if match := _YAML_BLOCK.match(text):
        fields = _load_fields(match[1] or "")
    elif match := _TOML_BLOCK.match(text):
        fields = _load_toml(match[1] or "")
    else:
        return {}, text
    if fields is None:
        return {}, text
    return {str(name).lower().replace("-", "_"): value for name, value in fields.items()}, text[match.end() :]


def first_field(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """Return the first of the named fields that is there and says something, else None."""
    return next(iter(stated_fields(fields, names)), None)


def stated_fields(fields: Mapping[str, Any], names: tuple[str, ...]) -> list[Any]:
    """Return those of the named fields that are there and say something, in the order of the names."""
    return [fields[name] for name in names if fields.get(name) not in (None, "")]


def _load_fields(source: str) -> Mapping[str, Any] | None:
    """Load the fields; None where the block is no front matter: a text between two rules."""
    try:
        fields = value_parsers.load_yaml(source)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {} if _FIELD.match(source) else None
    if fields is None:
        return {}
    return fields if isinstance(fields, dict) else None


def _load_toml(source: str) -> Mapping[str, Any] | None:
    try:
        return tomllib.loads(source)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def title_field(fields: Mapping[str, Any]) -> str:
    """Return the title; empty where a template would make it."""
    title = " ".join(str(fields.get("title") or "").split())
    return "" if "{{" in title or "{%" in title else title


def language_field(fields: Mapping[str, Any]) -> str:
    """Return the language's two letters; empty where none is stated."""
    language = str(first_field(fields, ("language", "lang", "locale")) or "")
    return language[:2].lower() if re.fullmatch(r"[A-Za-z]{2}([-_].*)?", language) else ""
