"""What a body of the record may hold, and how it is written: JSON, and nothing that would be read back as another."""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from typing import Any


def storable(value: Any) -> Any:
    """Turn a value into what JSON has: dataclasses and mappings to objects, sequences to arrays, moments to ISO 8601.

    Raises:
        ValueError: A number is not finite, or a moment has no time zone.
        TypeError: JSON has no place for it.
    """
    match value:
        case Enum():
            return storable(value.value)
        case None | str() | int() | float():
            return _finite(value)
        case date():
            return _zoned(value).isoformat()
        case Mapping():
            return {_key(key): storable(item) for key, item in value.items()}
        case list() | tuple():
            return [storable(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {field.name: storable(getattr(value, field.name)) for field in fields(value)}
        case _:
            raise TypeError(f"a {type(value).__name__} cannot be recorded")


def encoded(body: Any) -> str:
    """Write a value as JSON that every database takes. Raises as `storable` does."""
    value = storable(body)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # What was typed may hold half a surrogate pair, which no database takes but as an escape.
    return text if text.isascii() or _is_utf8(text) else json.dumps(value, separators=(",", ":"))


def decoded(text: str) -> Any:
    """Read what `encoded` wrote."""
    return json.loads(text)


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _finite(value: str | float | None) -> str | float | None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} cannot be recorded: it is not finite")
    return value


def _zoned(value: date) -> date:
    if isinstance(value, datetime) and value.tzinfo is None:
        raise ValueError(f"{value} cannot be recorded: it has no time zone")
    return value


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a {type(key).__name__} cannot name what is recorded")
    return str(key)
