"""How single facts of the record look in a terminal: a name and its value, indented as a block. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from bot.sanitizing import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING: tuple[Any, ...] = (None, "", [], {})


def fact_lines(body: Mapping[str, Any]) -> list[Padding]:
    """Show each fact that says something."""
    return [line(f"{name}: {plain(value)}") for name, value in body.items() if value not in NOTHING]


def line(text: str, *, depth: int = 1, style: str = "") -> Padding:
    """Show a text as one paragraph, whose every line stands so many steps from the edge."""
    return indented(Text(one_line(text), style=style), depth=depth)


def block(text: str, *, depth: int = 2) -> Padding:
    """Show a text as it stands, line by line."""
    return indented(Text(safe(text)), depth=depth)


def indented(text: Text, *, depth: int = 1) -> Padding:
    """Move a text away from the edge."""
    return Padding(text, (0, 0, 0, 2 * depth), expand=False)


def plain(value: Any) -> str:
    """Write a value of the record as people do."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {plain(inner)}" for name, inner in value.items() if inner not in NOTHING)
    if isinstance(value, list):
        return ", ".join(map(plain, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
