"""Record who may read what, and the channel of each name, with the time of each change.

Each change is one log entry under `SCOPE_ID`, written before it takes effect, whether the settings changed while a
server ran or between two starts.
"""

from collections.abc import Mapping
from typing import Any

from storage.database.engine import to_json_value
from storage.record.audit_log import AuditLog
from storage.types import EntryKind, LogEntry

SCOPE_ID = "settings"  # instead of a turn's id: `footnote audit show settings`
_NAMES = "name."  # prefix of the keys of resolved names


class ScopeRecord:
    """The last recorded scope, that is, who may read what. Every method raises `StorageError`."""

    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit

    async def load_names(self) -> dict[str, str]:
        """Return the recorded channel of each name that the settings still use."""
        last = await self._load()
        return {key.removeprefix(_NAMES): str(value) for key, value in last.items() if key.startswith(_NAMES) and value}

    async def keep(self, scope: Mapping[str, Any], names: Mapping[str, str], *, by: str) -> None:
        """Record how the scope and the channels of names differ from the last record; `by` is who changed them."""
        last = await self._load()
        current = {**scope, **{f"{_NAMES}{name}": channel for name, channel in names.items()}}
        now = {**dict.fromkeys(last), **{key: to_json_value(value) for key, value in current.items()}}
        changed = [key for key, value in now.items() if last.get(key) != value and (key in last or value)]
        bodies = ({"key": key, "was": last.get(key), "now": now[key], "by": by} for key in changed)
        if entries := [LogEntry(SCOPE_ID, EntryKind.SETTING, body) for body in bodies]:
            await self._audit.append(*entries)

    async def _load(self) -> dict[str, Any]:
        bodies = (entry.body for entry in await self._audit.turn(SCOPE_ID))
        return {str(body["key"]): body.get("now") for body in bodies if "key" in body}
