"""The whole record as lines that prove themselves: each entry as it is stored, then the head of the tree, signed.

`docs/verify_receipt.py` computes the tree anew from the lines. Each byte counts: a line has one form alone.
"""

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, select

from storage.database.engine import Database
from storage.database.schema import entries
from storage.record.proof.checkpoints import Checkpoints, RecordBroken
from storage.record.proof.receipts import show_entry
from storage.record.proof.signed_notes import SigningKey

EXPORT_FORM = "footnote-export/1"
_PAGE = 500

Write = Callable[[str], object]


async def export_record(database: Database, key: SigningKey, write: Write) -> None:
    """Write the record as it is now, a line for each entry, and sign it; `write` is called in a thread.

    Raises `StorageError`, `RecordBroken` among them; what was written then lacks its last line, and proves nothing.
    """
    checkpoints = Checkpoints(database)
    await checkpoints.make(key)  # nothing is written of a record that does not fit its last checkpoint
    await database.read(lambda connection: _export(connection, checkpoints, key, write))


def _export(connection: Connection, checkpoints: Checkpoints, key: SigningKey, write: Write) -> None:
    """Write and sign what one query sees, whatever is appended or erased meanwhile."""
    query, leaves = select(entries).order_by(entries.c.seq).execution_options(yield_per=_PAGE), list[bytes]()
    try:
        for row in connection.execute(query):
            line = format_line(show_entry(row))
            leaves.append(bytes(row.leaf))
            write(line)
    except (ValueError, TypeError, AttributeError) as error:
        hint = "`footnote audit verify` tells what was changed."
        raise RecordBroken(f"What follows entry {len(leaves)} of the record cannot be read.", hint=hint) from error
    note = checkpoints.sign(connection, key, leaves)
    write(format_line({"form": EXPORT_FORM, "key": str(key.public), "checkpoint": note}))


def format_line(line: dict[str, Any]) -> str:
    """Write a line in its one form, in ASCII."""
    return json.dumps(line, sort_keys=True) + "\n"
