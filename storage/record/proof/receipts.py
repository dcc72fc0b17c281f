"""Receipts of single answers and exports of the whole record: entries with proofs, in self-contained files.

`docs/verify_receipt.py` checks both without importing Footnote. Both are hashed byte by byte, so a line has exactly one
form.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, func, select

from storage.database.engine import Database
from storage.database.schema import checkpoints, entries
from storage.record.proof.checkpoints import (
    Checkpoints,
    LeafTree,
    RecordBroken,
    open_checkpoint,
    read_keys,
    read_leaves,
)
from storage.record.proof.merkle_tree import format_moment, prove_inclusion
from storage.record.proof.signed_notes import NoteInvalid, SigningKey
from storage.types import EntryKind

RECEIPT_FORM = "footnote-receipt/1"


@dataclass(frozen=True, slots=True)
class RecordPosition:
    """An answer's position in the record, and a checkpoint that covers it."""

    number: int  # the number of the entry that closes its turn
    size: int = 0  # the entries that the checkpoint covers; 0 if none covers the answer yet
    root: str = ""  # in hexadecimal


async def find_position(database: Database, turn_id: str) -> RecordPosition | None:
    """Return an answer's position, with a checkpoint by a recorded key; None if no checkpoint covers it.

    Raises `StorageError`.
    """
    return await database.read(lambda connection: _find_position(connection, turn_id))


def _find_position(connection: Connection, turn_id: str) -> RecordPosition | None:
    closing = entries.c.turn_id == turn_id, entries.c.kind == EntryKind.TURN_CLOSED.value
    seq = connection.execute(select(func.min(entries.c.seq)).where(*closing)).scalar()
    if seq is None:
        return None
    # An entry's number is at least the count of entries up to it: they are counted only if no checkpoint is so large.
    note = _find_covering(connection, seq) or _find_covering(connection, _count_from_end(connection, seq))
    try:
        head = open_checkpoint(note, read_keys(connection))[0] if note else None
    except NoteInvalid:
        head = None
    return RecordPosition(seq, head.size, head.root.hex()) if head else RecordPosition(seq)


def _find_covering(connection: Connection, size: int) -> str | None:
    covering = select(checkpoints.c.note).where(checkpoints.c.size >= size).order_by(checkpoints.c.size).limit(1)
    return connection.execute(covering).scalar()


def _count_from_end(connection: Connection, seq: int) -> int:
    """Return how many entries there are up to the number `seq`: all entries, minus the few after it."""
    after = select(func.count()).select_from(entries).where(entries.c.seq > seq)
    whole = connection.execute(select(func.count()).select_from(entries)).scalar_one()
    return int(whole - connection.execute(after).scalar_one())


async def make_receipt(database: Database, turn_id: str, key: SigningKey) -> str:
    """Return the receipt of a turn's current entries. If the last checkpoint does not cover them, sign a new one first.

    Raises `StorageError`, including `RecordBroken`, and `LookupError` for an unknown turn.
    """
    last = await database.read(lambda connection: _find_last(connection, turn_id))
    if last is None:
        raise LookupError(turn_id)
    if await database.read(_read_covered) < last:
        await Checkpoints(database).make(key)
    return await database.read(lambda connection: _build(connection, turn_id))


def _find_last(connection: Connection, turn_id: str) -> int | None:
    """Return how many entries a checkpoint must cover to include the whole turn; None for an unknown turn."""
    last = connection.execute(select(func.max(entries.c.seq)).where(entries.c.turn_id == turn_id)).scalar()
    return None if last is None else _count_to(connection, last)


def _count_to(connection: Connection, seq: int) -> int:
    return int(connection.execute(select(func.count()).select_from(entries).where(entries.c.seq <= seq)).scalar_one())


def _read_covered(connection: Connection) -> int:
    return int(connection.execute(select(func.coalesce(func.max(checkpoints.c.size), 0))).scalar_one())


def _build(connection: Connection, turn_id: str) -> str:
    note = connection.execute(select(checkpoints.c.note).order_by(checkpoints.c.size.desc()).limit(1)).scalar_one()
    head, signer = open_checkpoint(note, read_keys(connection))
    tree = LeafTree(read_leaves(connection))
    rows = connection.execute(select(entries).where(entries.c.turn_id == turn_id).order_by(entries.c.seq)).all()
    shown = [_prove_entry(row, _count_to(connection, row.seq) - 1, head.size, tree) for row in rows]
    return format_receipt(
        {"form": RECEIPT_FORM, "answer": turn_id, "key": str(signer), "checkpoint": note, "entries": shown}
    )


def _prove_entry(row: Row[*tuple[Any, ...]], place: int, size: int, tree: LeafTree) -> dict[str, Any]:
    proof = [digest.hex() for digest in prove_inclusion(place, size, tree.read).hashes]
    return {**show_entry(row), "place": place, "proof": proof}


def show_entry(row: Row[*tuple[Any, ...]]) -> dict[str, Any]:
    """Return an entry with everything from which its leaf is computed."""
    return {
        "seq": row.seq,
        "turn": row.turn_id,
        "kind": row.kind,
        "at": format_moment(row.at),
        "body": row.body,
        "salt": row.salt.hex(),
        "commitment": row.commitment.hex(),
    }


def format_receipt(receipt: Any) -> str:
    """Format a receipt in its only valid form."""
    return json.dumps(receipt, indent=1, sort_keys=True) + "\n"


EXPORT_FORM = "footnote-export/1"
_PAGE = 500

Write = Callable[[str], object]


async def export_record(database: Database, key: SigningKey, write: Write) -> None:
    """Write the current record, one line per entry, and sign it. `write` is called in a thread.

    Raises `StorageError`, including `RecordBroken`. Then the output lacks its last line, and proves nothing.
    """
    checkpoints = Checkpoints(database)
    await checkpoints.make(key)  # refuses a record that does not fit its last checkpoint before anything is written
    await database.read(lambda connection: _export(connection, checkpoints, key, write))


def _export(connection: Connection, checkpoints: Checkpoints, key: SigningKey, write: Write) -> None:
    """Write and sign the rows of a single query, so that entries appended or erased meanwhile do not matter."""
    query, leaves = select(entries).order_by(entries.c.seq).execution_options(yield_per=_PAGE), list[bytes]()
    try:
        for row in connection.execute(query):
            line = format_line(show_entry(row))
            leaves.append(bytes(row.leaf))
            write(line)
    except (ValueError, TypeError, AttributeError) as error:
        hint = "`footnote audit verify` shows what was changed."
        raise RecordBroken(
            f"The entries of the record after number {len(leaves)} cannot be read.", hint=hint
        ) from error
    note = checkpoints.sign(connection, key, leaves)
    write(format_line({"form": EXPORT_FORM, "key": str(key.public), "checkpoint": note}))


def format_line(line: dict[str, Any]) -> str:
    """Format a line of the export in its only valid form, in ASCII."""
    return json.dumps(line, sort_keys=True) + "\n"
