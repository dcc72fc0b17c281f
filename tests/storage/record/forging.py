"""A forger who can write to the database and has this code, but not the signing key.

The forger rewrites an answer with its quotation, passage and hashes, recomputes every leaf, and then tries to explain
why the record differs from the checkpoints that others stored.
"""

import json
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from storage.database.engine import open_database
from storage.record.audit_log import AuditLog
from storage.record.proof.checkpoints import Checkpoints, LeafTree, TreeHead, format_restore
from storage.record.proof.merkle_tree import commit_body, format_moment, hash_entry
from storage.record.proof.signed_notes import SigningKey, endorse_key, make_signing_key, sign_note
from storage.types import RECORD, EntryKind, hash_passage
from tests.storage.record.tampering import KEY, TEXT, make_record, make_turn, unguard
from tests.storage.stores import open_empty_database

SECOND = endorse_key(KEY, make_signing_key(KEY.name))
SETTING, FIRST_KEY, SECOND_KEY, RESTORED = 5, 6, 11, 16  # numbers of entries
FAR = "9999-01-01 00:00:00.000000"


@dataclass(frozen=True)
class Kept:
    """Checkpoints that others stored: by the first and second key, of lost entries, and of the whole record."""

    first: str
    second: str
    lost: str
    whole: str


async def make_restored_record(home: Path) -> Kept:
    """Make a record whose key was replaced once, and which was restored from a backup."""
    with open_empty_database(home) as database:
        first = await make_record(database)
        second = await Checkpoints(database).make(SECOND)
    shutil.copytree(home, home / "lost")
    with open_database("", home=home / "lost") as database:
        await AuditLog(database).append(*make_turn("lost"))
        lost = await Checkpoints(database).make(SECOND)
    with open_database("", home=home) as database:
        await AuditLog(database).append(*make_turn("c"))
        await Checkpoints(database).record_restore(SECOND, lost, why="the disk was lost", by="terminal")
        await AuditLog(database).append(*make_turn("d"))
        whole = await Checkpoints(database).make(SECOND)
    return Kept(first, second, lost, whole)


@dataclass
class Forger:
    connection: sqlite3.Connection
    kept: Kept
    key: SigningKey = field(default_factory=lambda: make_signing_key(KEY.name))

    def rewrite(self) -> None:
        """Change a date in every answer and question, with everything that is derived from it."""
        false = TEXT.replace("1911", "1912")
        hashes = hash_passage("Hall", "", TEXT), hash_passage("Hall", "", false)
        for seq, kind, body in self.connection.execute("SELECT seq, kind, body FROM entries").fetchall():
            self.replace(seq, kind, body.replace(*hashes).replace("1911", "1912"))
        for table in ("claims", "claim_passages"):
            columns = self.connection.execute(f"SELECT name FROM pragma_table_info('{table}') WHERE type = 'TEXT'")
            for (name,) in columns.fetchall():
                self.connection.execute(f"UPDATE {table} SET {name} = replace({name}, '1911', '1912')")
                self.connection.execute(f"UPDATE {table} SET {name} = replace({name}, ?, ?)", hashes)

    def replace(self, seq: int, kind: str, body: str, at: str = "", turn: str = "") -> None:
        """Replace an entry, and give it its leaf."""
        row = self.connection.execute("SELECT turn_id, at, salt FROM entries WHERE seq = ?", (seq,)).fetchone()
        turn, at, commitment = turn or row[0], at or row[1], commit_body(row[2], body.encode())
        leaf = hash_entry(seq, turn, kind, f"{at.replace(' ', 'T')}Z", commitment)
        columns = "turn_id = ?, kind = ?, at = ?, body = ?, commitment = ?, leaf = ?"
        values = (turn, kind, at, body, commitment, leaf, seq)
        self.connection.execute(f"UPDATE entries SET {columns} WHERE seq = ?", values)

    def put(self, kind: EntryKind, body: Mapping[str, Any], seq: int = 0, at: str = "") -> None:
        """Write an entry of the record in place of another one, or append it."""
        if not seq:
            now = format_moment(datetime.now(UTC)).replace("T", " ").rstrip("Z")
            seq = len(self.tree().leaves) + 1
            blank = (seq, RECORD, kind.value, now, "", bytes(16), b"", b"")
            columns = "seq, turn_id, kind, at, body, salt, commitment, leaf"
            self.connection.execute(f"INSERT INTO entries ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", blank)
        self.replace(seq, kind.value, json.dumps(body), at, RECORD)

    def tree(self) -> LeafTree:
        return LeafTree([row[0] for row in self.connection.execute("SELECT leaf FROM entries ORDER BY seq")])

    def read(self, seq: int) -> dict[str, Any]:
        (body,) = self.connection.execute("SELECT body FROM entries WHERE seq = ?", (seq,)).fetchone()
        return dict(json.loads(body))

    def forget_checkpoints(self) -> None:
        self.connection.execute("DELETE FROM checkpoints")

    def put_key(self, seq: int = 0, endorsement: str = "") -> None:
        body = {"key": str(self.key.public), "instead_of": str(KEY.public), "endorsement": endorsement}
        self.put(EntryKind.SIGNING_KEY, body, seq)

    def borrow_endorsement(self) -> None:
        """Record an own key with the endorsement of the second key."""
        self.put_key(SECOND_KEY, SECOND.endorsements[0])

    def endorse_itself(self) -> None:
        self.put_key(0, endorse_key(self.key, self.key).endorsements[0])

    def go_first(self) -> None:
        """Put an own key before the genuine one, and endorse that."""
        self.put_key(SETTING)
        endorsement = endorse_key(self.key, KEY).endorsements[0]
        self.put(EntryKind.SIGNING_KEY, {"key": str(KEY.public), "endorsement": endorsement}, FIRST_KEY)

    def restore_as_before(self, key: SigningKey | None = None) -> None:
        """Sign a restore in the form of earlier versions."""
        key = key or self.key
        body = {"common": 0, "before": 10**9, "note": sign_note(f"{key.name}\nrestored\n0\n{10**9}\n", key)}
        self.put(EntryKind.RESTORED, body, at=FAR)

    def restore(self, common: int = 0, lost: str = "", seq: int = 0) -> None:
        head = TreeHead(KEY.name, 10**9, bytes(32), "9999-01-01T00:00:00.000000Z")
        lost = lost or sign_note(head.format(), self.key)
        note = sign_note(format_restore(KEY.name, common, self.tree().root(common), head), self.key)
        self.put(EntryKind.RESTORED, {"common": common, "before": head.size, "lost": lost, "note": note}, seq, FAR)

    def replay(self, changed: Mapping[str, Any], at: str = FAR) -> None:
        """Record the genuine restore once more."""
        self.put(EntryKind.RESTORED, {**self.read(RESTORED), **changed}, at=at)

    def postpone(self) -> None:
        """Let the genuine restore seem later."""
        self.put(EntryKind.RESTORED, self.read(RESTORED), RESTORED, FAR)

    def sign(self) -> None:
        tree = self.tree()
        size = len(tree.leaves)
        note = sign_note(TreeHead(KEY.name, size, tree.root(size), "2026-01-01T00:00:00.000000Z").format(), self.key)
        self.connection.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?)", (size, note))

    def store_kept(self) -> None:
        for note in (self.kept.first, self.kept.lost, self.kept.whole):
            size = int(note.split("\n")[1])
            self.connection.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?)", (size, note))


Step = Callable[[Forger], object]

STEPS: dict[str, Step] = {
    "forget": Forger.forget_checkpoints,
    "own key": Forger.put_key,
    "own key first": Forger.go_first,
    "own key first, unendorsed": partial(Forger.put_key, seq=SETTING),
    "own key for the genuine one": partial(Forger.put_key, seq=FIRST_KEY),
    "own key for the second": partial(Forger.put_key, seq=SECOND_KEY),
    "borrowed endorsement": Forger.borrow_endorsement,
    "own endorsement": Forger.endorse_itself,
    "old restore": Forger.restore_as_before,
    "restore": Forger.restore,
    "restore before the keys": partial(Forger.restore, seq=SETTING),
    "restore of a genuine head": lambda forger: forger.restore(4, forger.kept.whole),
    "replay": partial(Forger.replay, changed={}),
    "replay of more": partial(Forger.replay, changed={"before": 10**9, "common": 0}),
    "replay of fewer": partial(Forger.replay, changed={"common": 0}),
    "replay without its head": lambda forger: forger.replay({"lost": forger.kept.whole}),
    "postpone": Forger.postpone,
    "sign": Forger.sign,
    "store genuine heads": Forger.store_kept,
}

RECIPES = (
    ("forget", "own key", "old restore", "sign"),
    ("forget", "own key", "restore", "sign"),
    ("forget", "own key first", "old restore", "sign"),
    ("forget", "own key first", "restore", "sign"),
    ("forget", "own key first, unendorsed", "old restore", "sign"),
    ("forget", "own key for the genuine one", "old restore", "sign"),
    ("forget", "own key for the second", "restore", "sign"),
    ("forget", "borrowed endorsement", "old restore", "sign"),
    ("forget", "own endorsement", "restore of a genuine head", "sign"),
    ("forget", "own key first", "restore before the keys", "sign"),
    ("forget", "replay"),
    ("forget", "replay of more"),
    ("forget", "own key first", "replay", "postpone", "sign"),
    ("forget", "postpone"),
    ("forget",),
)


def forge(home: Path, kept: Kept, steps: tuple[str, ...]) -> None:
    unguard(home)
    with closing(sqlite3.connect(home / "footnote.db")) as connection, connection:
        forger = Forger(connection, kept)
        forger.rewrite()
        for step in steps:
            STEPS[step](forger)
