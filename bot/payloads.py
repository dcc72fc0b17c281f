"""Foreign JSON: a field may lack, be null or be of another type. Pure."""

from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]


def part(data: Json, name: str) -> Json:
    """Return the object that a field holds; an empty one where it holds none."""
    found = data.get(name)
    return found if isinstance(found, Mapping) else {}


def parts(data: Json, name: str) -> list[Json]:
    """Return the objects of the list that a field holds."""
    found = data.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list | tuple) else []
