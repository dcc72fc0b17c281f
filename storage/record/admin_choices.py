"""What admins set for channels, and which answers they approved as examples; each change has its entry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from storage.database.engine import Database, decode_json, encode_json, utc_now
from storage.database.schema import entries, examples, overrides
from storage.record.audit_log import encode_entries, insert_entries
from storage.types import ApprovedExample, EntryKind, LogEntry


@dataclass(frozen=True)
class ChannelOverrides:
    """What admins set for channels, by names such as `slack:T1/C1`. Every method raises `StorageError`."""

    database: Database
    clock: Callable[[], datetime] = utc_now

    async def of(self, channel: str) -> Mapping[str, Any]:
        query = select(overrides.c.key, overrides.c.value).where(overrides.c.channel == channel)
        rows = await self.database.read(lambda connection: connection.execute(query).all())
        return {row.key: decode_json(row.value) for row in rows}

    async def set(self, channel: str, key: str, value: Any | None, *, by: str, was: Any) -> None:
        """Set a key for a channel, or remove it with None, and record who did and what was in effect before."""
        body = {"key": key, "was": was, "now": value, "by": by}
        rows = encode_entries([LogEntry(channel, EntryKind.SETTING, body)], self.clock())
        text = None if value is None else encode_json(value)

        def change(connection: Connection) -> None:
            connection.execute(delete(overrides).where(overrides.c.channel == channel, overrides.c.key == key))
            if text is not None:
                connection.execute(insert(overrides), {"channel": channel, "key": key, "value": text})
            insert_entries(connection, rows)

        await self.database.write(change)


@dataclass(frozen=True)
class ApprovedExamples:
    """The answers that admins approved as examples; changes are on record. Every method raises `StorageError`."""

    database: Database
    clock: Callable[[], datetime] = utc_now

    async def all(self) -> tuple[ApprovedExample, ...]:
        """Return all of them, the newest first, but those whose answer was taken back since."""
        query = select(examples).order_by(examples.c.at.desc(), examples.c.turn_id)
        edited = select(entries.c.turn_id, entries.c.body).join(examples, examples.c.turn_id == entries.c.turn_id)
        edited = edited.where(entries.c.kind == EntryKind.EDITED.value)

        def fetch(connection: Connection) -> tuple[ApprovedExample, ...]:
            edits = connection.execute(edited).all()
            gone = {row.turn_id for row in edits if decode_json(row.body).get("retracted")}
            rows = [row for row in connection.execute(query) if row.turn_id not in gone]
            return tuple(
                ApprovedExample(row.turn_id, row.by, decode_json(row.body), row.at, row.pinned) for row in rows
            )

        return await self.database.read(fetch)

    async def add(self, example: ApprovedExample, entry: LogEntry) -> bool:
        """Keep an example; return whether it was new. One that is kept stays as it was approved."""
        row = {"turn_id": example.turn_id, "by": example.by, "at": self.clock(), "pinned": example.pinned}
        row["body"] = encode_json(example.body)

        def change(connection: Connection) -> bool:
            known = select(examples.c.turn_id).where(examples.c.turn_id == example.turn_id)
            new = connection.execute(known).first() is None
            return new and bool(connection.execute(insert(examples), row).rowcount)

        return await self._change(change, entry)

    async def drop(self, turn_id: str, entry: LogEntry) -> bool:
        """Remove an example; return whether there was one."""
        gone = delete(examples).where(examples.c.turn_id == turn_id)
        return await self._change(lambda connection: bool(connection.execute(gone).rowcount), entry)

    async def pin(self, turn_id: str, entry: LogEntry, *, pinned: bool) -> bool:
        """Pin an example, or unpin it; return whether there is one that was not so before."""
        chosen = examples.c.turn_id == turn_id, examples.c.pinned != pinned
        changed = update(examples).where(*chosen).values(pinned=pinned)
        return await self._change(lambda connection: bool(connection.execute(changed).rowcount), entry)

    async def _change(self, change: Callable[[Connection], bool], entry: LogEntry) -> bool:
        rows = encode_entries([entry], self.clock())

        def record(connection: Connection) -> bool:
            changed = change(connection)
            if changed:
                insert_entries(connection, rows)
            return changed

        return await self.database.write(record)
