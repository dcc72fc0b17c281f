"""Tamper with a small record in every way, and count the changes that `footnote audit verify` misses.

Each byte of each column of each entry and checkpoint is flipped; entries are removed, swapped, replayed and forged; the
newest entries are removed and the history is forked. After each change the whole record is verified.
"""

import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from storage.database.engine import Database, open_database
from storage.record.audit_log import AuditLog
from storage.record.proof.checkpoints import Checkpoints
from storage.record.proof.record_check import RecordCheck, verify_record
from storage.record.proof.signed_notes import make_signing_key
from storage.types import EntryKind, LogEntry, hash_passage

KEY = make_signing_key("footnote/tampering")
TEXT = "It opened in 1911. It burned down in 1923."
COLUMNS = {"entries": ("turn_id", "kind", "at", "body", "salt", "commitment", "leaf"), "checkpoints": ("note",)}


def make_turn(turn_id: str) -> tuple[LogEntry, ...]:
    citation: dict[str, Any] = {
        "number": 1,
        "quote": "It opened in 1911.",
        "passage_text": TEXT,
        "passage_id": "p1",
        "title": "Hall",
    }
    citation |= {"passage_id": "p1", "title": "Hall", "section": "", "passage_hash": hash_passage("Hall", "", TEXT)}
    sentence = {"text": "It opened in 1911.", "citations": [1]}
    answer = "It opened in 1911. [1]"
    closed: dict[str, Any] = {"status": "answered", "system": "extractive", "text": answer}
    closed |= {"sentences": [sentence], "citations": [citation]}
    opened = {"question": "When did it open?", "asker": {"platform": "slack", "workspace": "T1", "user": "U1"}}
    return (
        LogEntry(turn_id, EntryKind.TURN_OPENED, opened),
        LogEntry(turn_id, EntryKind.STEP, {"stage": "search", "hits": [["p1", 1.0, "c", "k"]]}),
        LogEntry(turn_id, EntryKind.TURN_CLOSED, closed),
        LogEntry(turn_id, EntryKind.DELIVERED, {"outcome": "delivered", "text": f"{answer}\n\n[1] Hall"}),
    )


async def make_record(database: Database) -> str:
    """Fill a record, and return its last checkpoint as a witness would store it."""
    log, heads = AuditLog(database), Checkpoints(database)
    await log.append(*make_turn("a"), LogEntry("slack:T1/C1", EntryKind.SETTING, {"key": "system"}))
    await heads.make(KEY)
    await log.append(*make_turn("b"))
    return await heads.make(KEY)


@dataclass(frozen=True)
class Attempt:
    """One way to change the file despite the database's triggers."""

    kind: str
    change: Callable[[sqlite3.Connection], Any]
    against: bool = False  # whether only a checkpoint stored elsewhere reveals the change


def _flip(connection: sqlite3.Connection, table: str, column: str, row: int, place: int) -> None:
    value, kind = connection.execute(
        f"SELECT CAST({column} AS BLOB), typeof({column}) FROM {table} WHERE rowid = ?", (row,)
    ).fetchone()
    data = bytearray(value)
    data[place] ^= 1
    connection.execute(f"UPDATE {table} SET {column} = CAST(? AS {kind}) WHERE rowid = ?", (bytes(data), row))


def list_flips(connection: sqlite3.Connection, stride: int = 1) -> Iterator[Attempt]:
    """Yield a flip of each byte, or of each `stride`th, of each text and hash."""
    for table, columns in COLUMNS.items():
        for column in columns:
            query = f"SELECT rowid, length(CAST({column} AS BLOB)) FROM {table}"
            for row, size in connection.execute(query).fetchall():
                for place in range(0, size, stride):
                    yield Attempt(f"{table}.{column}", partial(_flip, table=table, column=column, row=row, place=place))


def list_moves(last: int) -> Iterator[Attempt]:
    """Yield the changes of whole entries of a record of `last` entries."""
    copied = "turn_id, kind, at, body, salt, commitment, leaf"
    for seq in range(1, last + 1):
        yield _run("entry removed", f"DELETE FROM entries WHERE seq = {seq}")
        yield _run("entry replayed", f"INSERT INTO entries SELECT {last + 1}, {copied} FROM entries WHERE seq = {seq}")
        yield _run("entry renumbered", f"UPDATE entries SET seq = {last + seq} WHERE seq = {seq}")
        yield _run("entry blanked", f"UPDATE entries SET body = '', salt = x'' WHERE seq = {seq}")
        yield Attempt("entry forged with its leaf", partial(_forge, seq=seq))
        yield _run("tail cut", _cut(seq), against=True)
        yield _run("tail cut, counter too", f"{_cut(seq)}; DELETE FROM sqlite_sequence", against=True)
        if seq < last:
            yield Attempt("entries swapped", partial(_swap, one=seq, other=seq + 1))
    yield _run("checkpoint of another size", "UPDATE checkpoints SET size = size + 1")
    yield Attempt("fork", partial(_fork, keep=4), against=True)
    yield Attempt("fork from the start", partial(_fork, keep=0), against=True)


def _cut(seq: int) -> str:
    return f"DELETE FROM entries WHERE seq >= {seq}; DELETE FROM checkpoints WHERE size >= {seq}"


def _run(kind: str, script: str, *, against: bool = False) -> Attempt:
    return Attempt(kind, lambda connection: connection.executescript(script), against)


def _swap(connection: sqlite3.Connection, one: int, other: int) -> None:
    for was, now in ((one, -1), (other, one), (-1, other)):
        connection.execute("UPDATE entries SET seq = ? WHERE seq = ?", (now, was))


def _forge(connection: sqlite3.Connection, seq: int) -> None:
    """Change an entry, and give it a matching leaf."""
    from storage.record.proof.merkle_tree import commit_body, hash_entry

    turn_id, kind, at, salt = connection.execute(
        "SELECT turn_id, kind, at, salt FROM entries WHERE seq = ?", (seq,)
    ).fetchone()
    body = '{"forged":true}'
    commitment = commit_body(salt, body.encode())
    leaf = hash_entry(seq, turn_id, kind, f"{at.replace(' ', 'T')}Z", commitment)
    forged = (body, commitment, leaf, seq)
    connection.execute("UPDATE entries SET body = ?, commitment = ?, leaf = ? WHERE seq = ?", forged)


def _fork(connection: sqlite3.Connection, keep: int) -> None:
    """Forge every entry after the first `keep`, and remove the later checkpoints."""
    last = connection.execute("SELECT max(seq) FROM entries").fetchone()[0]
    for seq in range(keep + 1, last + 1):
        _forge(connection, seq)
    connection.execute("DELETE FROM checkpoints WHERE size > ?", (keep,))


@contextmanager
def open_tampered(home: Path, attempt: Attempt) -> Iterator[Database]:
    """Open a copy of a record after an attempt."""
    with tempfile.TemporaryDirectory(dir=home) as folder:
        file = Path(shutil.copy(home / "footnote.db", folder))
        with closing(sqlite3.connect(file)) as connection, connection:
            attempt.change(connection)
        with open_database("", home=Path(folder)) as database:
            yield database


def unguard(home: Path) -> None:
    """Drop the triggers of a record, as anyone who may write its file can."""
    with closing(sqlite3.connect(home / "footnote.db")) as connection, connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("PRAGMA journal_mode = DELETE")


async def check_attempt(home: Path, attempt: Attempt, kept: str) -> RecordCheck:
    """Return the result with the fewest findings, with and without a pinned key."""
    with open_tampered(home, attempt) as database:
        checks = [
            await verify_record(database, [kept] if attempt.against else [], pinned) for pinned in ((), [KEY.public])
        ]
    return min(checks, key=lambda checked: len(checked.findings))


async def count_missed(home: Path, stride: int = 1, most: int = 1_000_000) -> tuple[Counter[str], list[Attempt]]:
    """Make a record, try at most the last `most` attempts of each kind, and return their counts and the missed ones."""
    with open_database("", home=home) as database:
        checkpoint = await make_record(database)
        whole = await verify_record(database, [checkpoint])
    if whole.findings:
        raise AssertionError(whole.findings)
    unguard(home)
    with closing(sqlite3.connect(home / "footnote.db")) as connection:
        possible = [*list_flips(connection, stride), *list_moves(whole.entries)]
    kinds = dict.fromkeys(attempt.kind for attempt in possible)
    attempts = [attempt for kind in kinds for attempt in [each for each in possible if each.kind == kind][-most:]]
    missed = [attempt for attempt in attempts if not (await check_attempt(home, attempt, checkpoint)).findings]
    return Counter(attempt.kind for attempt in attempts), missed
