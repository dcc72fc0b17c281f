"""Store admins' channel settings and approved examples; each change has its log entry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from storage.clock import Clock, utc_now
from storage.database.engine import Database, decode_json, encode_json
from storage.database.schema import entries, examples, overrides
from storage.record.audit_log import encode_entries, insert_entries, lock_record
from storage.record.entry_rows import read_body
from storage.types import ApprovedExample, EntryKind, LogEntry


@dataclass(frozen=True)
class ChannelOverrides:
    """Channel settings made by admins, for channels such as `slack:T1/C1`. Every method raises `StorageError`."""

    database: Database
    clock: Clock = utc_now

    async def of(self, channel: str) -> Mapping[str, Any]:
        query = select(overrides.c.key, overrides.c.value).where(overrides.c.channel == channel)
        rows = await self.database.read_kept(query, [overrides], channel)
        return {row.key: decode_json(row.value) for row in rows}

    async def set(self, channel: str, key: str, value: Any | None, *, by: str, was: Any) -> None:
        """Set a key of a channel, or remove it if the value is None. The log gets the admin and the previous value."""
        body = {"key": key, "was": was, "now": value, "by": by}
        rows = encode_entries([LogEntry(channel, EntryKind.SETTING, body)], self.clock())
        text = None if value is None else encode_json(value)

        def change(connection: Connection) -> None:
            lock_record(connection)
            connection.execute(delete(overrides).where(overrides.c.channel == channel, overrides.c.key == key))
            if text is not None:
                connection.execute(insert(overrides), {"channel": channel, "key": key, "value": text})
            insert_entries(connection, rows)

        await self.database.write(change)


_ANSWER = "pinned_answer"  # key in the body of an example: the answer that is pinned to its turn's question


@dataclass(frozen=True)
class ApprovedExamples:
    """The answers that admins approved or pinned; each change is logged. Every method raises `StorageError`."""

    database: Database
    clock: Clock = utc_now

    async def all(self) -> tuple[ApprovedExample, ...]:
        """Return all examples, newest first, except those whose answer was retracted."""
        rows = await self._read()
        split = ((row, {key: value for key, value in row.body.items() if key != _ANSWER}) for row in rows)
        return tuple(replace(one, body=body) for one, body in split if body or one.body == body)

    async def answers(self) -> tuple[ApprovedExample, ...]:
        """Return the pinned answers, newest first, except those that were retracted."""
        pinned = [row for row in await self._read() if _ANSWER in row.body]
        return tuple(replace(row, body=row.body[_ANSWER]) for row in pinned)

    async def _read(self) -> tuple[ApprovedExample, ...]:
        if not await self.database.read_kept(select(examples.c.turn_id).limit(1), [examples]):
            return ()
        query = select(examples).order_by(examples.c.at.desc(), examples.c.turn_id)
        edited = select(entries.c.turn_id, entries.c.body).join(examples, examples.c.turn_id == entries.c.turn_id)
        edited = edited.where(entries.c.kind == EntryKind.EDITED.value)

        def fetch(connection: Connection) -> tuple[ApprovedExample, ...]:
            edits = connection.execute(edited).all()
            gone = {row.turn_id for row in edits if read_body(row.body).get("retracted")}
            rows = [row for row in connection.execute(query) if row.turn_id not in gone]
            return tuple(
                ApprovedExample(row.turn_id, row.by, decode_json(row.body), row.at, row.pinned) for row in rows
            )

        return await self.database.read(fetch)

    async def add(self, example: ApprovedExample, entry: LogEntry) -> bool:
        """Store an example, and return whether it was new. An existing example stays as it was approved."""

        def change(connection: Connection) -> bool:
            body = _read_body(connection, example.turn_id)
            new = body is None or body.keys() == {_ANSWER}
            if new:
                self._keep(connection, replace(example, body={**(body or {}), **example.body}))
            return new

        return await self._change(change, entry)

    async def drop(self, turn_id: str, entry: LogEntry) -> bool:
        """Remove an example; return whether there was one."""

        def change(connection: Connection) -> bool:
            body = _read_body(connection, turn_id)
            left = {key: value for key, value in (body or {}).items() if key == _ANSWER}
            self._replace(connection, turn_id, left)
            return body is not None and (left != body or not body)

        return await self._change(change, entry)

    async def pin(self, turn_id: str, entry: LogEntry, *, pinned: bool) -> bool:
        """Pin an example, or unpin it; return whether that changed anything."""
        chosen = examples.c.turn_id == turn_id, examples.c.pinned != pinned
        changed = update(examples).where(*chosen).values(pinned=pinned)
        return await self._change(lambda connection: bool(connection.execute(changed).rowcount), entry)

    async def pin_answer(self, answer: ApprovedExample, entry: LogEntry) -> None:
        """Pin an answer to the question of its turn, in place of any answer that is pinned to it."""

        def change(connection: Connection) -> bool:
            body = {**(_read_body(connection, answer.turn_id) or {}), _ANSWER: answer.body}
            if not self._replace(connection, answer.turn_id, body):
                self._keep(connection, replace(answer, body=body))
            return True

        await self._change(change, entry)

    async def drop_answer(self, turn_id: str, entry: LogEntry) -> bool:
        """Unpin an answer; return whether it was pinned."""

        def change(connection: Connection) -> bool:
            body = _read_body(connection, turn_id) or {}
            left = {key: value for key, value in body.items() if key != _ANSWER}
            if left != body:
                self._replace(connection, turn_id, left)
            return left != body

        return await self._change(change, entry)

    def _keep(self, connection: Connection, example: ApprovedExample) -> None:
        connection.execute(delete(examples).where(examples.c.turn_id == example.turn_id))
        row = {"turn_id": example.turn_id, "by": example.by, "at": self.clock(), "pinned": example.pinned}
        connection.execute(insert(examples), row | {"body": encode_json(example.body)})

    def _replace(self, connection: Connection, turn_id: str, body: Mapping[str, Any]) -> bool:
        """Replace the body of a row, or remove the row if the body is empty; return whether there was one."""
        same_turn = examples.c.turn_id == turn_id
        change = (
            update(examples).where(same_turn).values(body=encode_json(body))
            if body
            else delete(examples).where(same_turn)
        )
        return bool(connection.execute(change).rowcount)

    async def _change(self, change: Callable[[Connection], bool], entry: LogEntry) -> bool:
        rows = encode_entries([entry], self.clock())

        def record(connection: Connection) -> bool:
            lock_record(connection)
            changed = change(connection)
            if changed:
                insert_entries(connection, rows)
            return changed

        return await self.database.write(record)


def _read_body(connection: Connection, turn_id: str) -> dict[str, Any] | None:
    """Return the stored body of a turn; None if it is neither an example nor pinned."""
    body = connection.execute(select(examples.c.body).where(examples.c.turn_id == turn_id)).scalar()
    return dict(decode_json(body)) if body else None
