"""What people did with an answer, as entries of the log: pure functions that write and read them.

All are of one kind; `what` says which: `up`, `down`, `ask`, `share`. What is done once, and may fail on the way, has a
`state` as well: `begun` before, then `done` or `failed`.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from bot.access import Asker
from storage.types import EntryKind, LogEntry

BEGUN, DONE, FAILED = "begun", "done", "failed"


def act(turn_id: str, what: str, by: Asker, **facts: object) -> LogEntry:
    """Return the entry of what somebody did."""
    place = f"{by.platform}:{by.workspace}"
    whose = {"what": what, "by": f"{place}/{by.user}", "where": f"{place}/{by.channel}"}
    return LogEntry(turn_id, EntryKind.FEEDBACK, {**whose, **facts})


def tried(entries: Iterable[LogEntry], what: str) -> bool:
    """Return whether something was ever begun, however it ended."""
    return bool(_of(entries, {what}))


def last(entries: Iterable[LogEntry], what: str) -> Mapping[str, Any]:
    """Return the last entry of what is done to a turn once; empty where it never was, or failed."""
    found = _of(entries, {what})
    return found[-1] if found and found[-1].get("state") != FAILED else {}


def opinion(entries: Iterable[LogEntry], by: Asker) -> Mapping[str, Any]:
    """Return the last entry of what somebody thought of an answer; empty where they never said."""
    mine = act("", "", by).body["by"]
    found = [body for body in _of(entries, {"up", "down"}) if body.get("by") == mine]
    return found[-1] if found else {}


def _of(entries: Iterable[LogEntry], whats: Collection[str]) -> list[Mapping[str, Any]]:
    return [entry.body for entry in entries if entry.kind is EntryKind.FEEDBACK and entry.body.get("what") in whats]
