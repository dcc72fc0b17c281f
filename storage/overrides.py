"""What admins set for a channel by command, over what the settings file says. Each change is put on record."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from storage.audit import add_rows, rows_of
from storage.database import Database
from storage.schema import overrides
from storage.storable import decoded, encoded
from storage.types import EntryKind, LogEntry


class ChannelOverrides:
    """Keeps them by the channel's name, such as `slack:T1/C1`. Every method raises `StorageError`."""

    def __init__(self, database: Database, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._clock = clock

    async def of(self, channel: str) -> Mapping[str, Any]:
        """Return what is set for a channel, by key; empty where nothing is."""
        query = select(overrides.c.key, overrides.c.value).where(overrides.c.channel == channel)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return {row.key: decoded(row.value) for row in rows}

    async def set(self, channel: str, key: str, value: Any | None, *, by: str, was: Any) -> None:
        """Set a key for a channel, or with None remove it, and put on record who did and what was in effect before.

        Raises:
            TypeError, ValueError: JSON has no place for a value.
        """
        body = {"key": key, "was": was, "now": value, "by": by}
        rows = rows_of([LogEntry(channel, EntryKind.SETTING, body)], self._clock())
        text = None if value is None else encoded(value)

        def change(connection: Connection) -> None:
            connection.execute(delete(overrides).where(overrides.c.channel == channel, overrides.c.key == key))
            if text is not None:
                connection.execute(insert(overrides), {"channel": channel, "key": key, "value": text})
            add_rows(connection, rows)

        await self._database.write(change)
