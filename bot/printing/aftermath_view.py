"""How what followed an answer looks in a terminal: its delivery, its retraction, what people did with it. Pure.

Changes of a channel's settings, which follow no answer, are shown alike. What is not put into words here, such as a
fact of a later version, is shown as a name and a value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bot.printing.facts_view import NOTHING, block, fact_lines, line, plain
from storage.types import EntryKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import RenderableType

    from storage.types import LogEntry

_ACTS = {"up": "helpful", "down": "not helpful", "ask": "a person was asked", "share": "shared"}


def aftermath_lines(entry: LogEntry) -> list[RenderableType]:
    """Show what an entry says, below its heading."""
    return _VIEWS[entry.kind](entry.body)


def _delivered(body: Mapping[str, Any]) -> list[RenderableType]:
    told = ("outcome", "platform", "workspace", "channel", "thread", "messages", "only_asker", "text", "ticket")
    facts = {
        "outcome": body.get("outcome"),
        "where": _place(body),
        "messages": body.get("messages"),
        "shown to": "the asker alone" if body.get("only_asker") else "",
        **_others(body, *told),
    }
    text = [line("text as delivered:"), block(str(body["text"]))] if body.get("text") else []
    return [*fact_lines(facts), *text]


def _edited(body: Mapping[str, Any]) -> list[RenderableType]:
    whats = [what for what in ("retracted", "stopped", "withheld") if body.get(what)]
    return [*_act(", ".join(whats), body), *fact_lines(_others(body, "retracted", "stopped", "withheld", "by"))]


def _feedback(body: Mapping[str, Any]) -> list[RenderableType]:
    what = str(body.get("what", ""))
    return [*_act(_ACTS.get(what, what), body), *fact_lines(_others(body, "what", "by"))]


def _setting(body: Mapping[str, Any]) -> list[RenderableType]:
    change = f"{body.get('key', '')}: {_value(body.get('was'))} → {_value(body.get('now'))}"
    return [*_act(change, body), *fact_lines(_others(body, "key", "was", "now", "by"))]


_VIEWS: Mapping[EntryKind, Callable[[Mapping[str, Any]], list[RenderableType]]] = {
    EntryKind.DELIVERED: _delivered,
    EntryKind.EDITED: _edited,
    EntryKind.FEEDBACK: _feedback,
    EntryKind.SETTING: _setting,
}
KINDS = frozenset(_VIEWS)
"""The kinds of entries that `aftermath_lines` shows."""


def _act(what: str, body: Mapping[str, Any]) -> list[RenderableType]:
    by = f"by {body['by']}" if body.get("by") else ""
    said = ", ".join(part for part in (what, by) if part)
    return [line(said)] if said else []


def _place(body: Mapping[str, Any]) -> str:
    channel = f"{body.get('platform', '')}:{body.get('workspace', '')}/{body['channel']}" if body.get("channel") else ""
    thread = f"thread {body['thread']}" if body.get("thread") else ""
    return ", ".join(part for part in (channel, thread) if part)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value == [] else "not set" if value in NOTHING else plain(value)


def _others(body: Mapping[str, Any], *told: str) -> dict[str, Any]:
    return {name.replace("_", " "): value for name, value in body.items() if name not in told}
