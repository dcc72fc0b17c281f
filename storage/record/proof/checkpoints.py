"""Sign and store the heads of the record's tree, so that any change to earlier entries is detected.

A checkpoint (c2sp.org/tlog-checkpoint) has the size and the root of the tree, and the time when it was made. A copy of
it stored elsewhere later shows whether the record still begins with the same entries.
"""

import base64
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, func, insert, select

from storage.clock import Clock, utc_now
from storage.database.engine import Database, decode_json
from storage.database.schema import checkpoints, entries
from storage.errors import StorageError
from storage.record.audit_log import encode_entries, insert_entries, lock_record
from storage.record.proof.merkle_tree import Node, compute_root, format_moment, hash_children
from storage.record.proof.signed_notes import NoteInvalid, PublicKey, SigningKey, open_note, read_public_key, sign_note
from storage.types import RECORD, EntryKind, LogEntry


@dataclass(frozen=True, slots=True)
class TreeHead:
    """A state of a tree: its size, root and time. `origin` is the name of the record, and of its signing keys."""

    origin: str
    size: int
    root: bytes
    at: str  # the time of the head, in UTC

    def format(self) -> str:
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\nat {self.at}\n"


_HEAD = re.compile(
    r"(?P<origin>[^\n]+)\n(?P<size>0|[1-9]\d{0,18})\n(?P<root>[A-Za-z0-9+/]{43}=)\n"
    r"at (?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)\n",
    re.ASCII,
)


def parse_head(text: str) -> TreeHead:
    """Parse the text of a checkpoint. Raises `NoteInvalid`."""
    match = _HEAD.fullmatch(text)
    if not match:
        raise NoteInvalid("it is not a checkpoint")
    head = TreeHead(match["origin"], int(match["size"]), base64.b64decode(match["root"]), match["at"])
    if head.format() != text:
        raise NoteInvalid("its base64 is not canonical")
    return head


def read_head_moment(note: str) -> datetime | None:
    """Return when a checkpoint was made, without checking its signature; None if it has no time."""
    match = re.search(r"^at (\S+)$", note, re.MULTILINE)
    with suppress(ValueError):
        return datetime.fromisoformat(match[1]) if match else None
    return None


def open_checkpoint(note: str, keys: Sequence[PublicKey]) -> tuple[TreeHead, PublicKey]:
    """Return the tree head in a checkpoint, and the key that signed it.

    Raises `NoteInvalid` unless one of these keys has signed it, and belongs to the record that it names.
    """
    text, key = open_note(note, keys)
    head = parse_head(text)
    if head.origin != key.name:
        raise NoteInvalid("it is signed for another record")
    return head, key


_FLAT_LEVEL = 8  # subtrees of up to 256 leaves are hashed each time; larger ones are cached


@dataclass(frozen=True, slots=True)
class LeafTree:
    """The hashes of the complete subtrees over the record's leaves, computed on demand."""

    leaves: Sequence[bytes]
    _nodes: dict[Node, bytes] = field(default_factory=dict, repr=False)

    def read(self, node: Node) -> bytes:
        level, place = node
        if node in self._nodes:
            return self._nodes[node]
        if level > _FLAT_LEVEL:
            parent = hash_children(self.read((level - 1, 2 * place)), self.read((level - 1, 2 * place + 1)))
        else:
            hashes = self.leaves[place << level : (place + 1) << level]
            while len(hashes) > 1:
                hashes = [hash_children(*pair) for pair in zip(hashes[::2], hashes[1::2], strict=True)]
            (parent,) = hashes
        if level >= _FLAT_LEVEL:
            self._nodes[node] = parent
        return parent

    def root(self, size: int) -> bytes:
        return compute_root(size, self.read)


def read_leaves(connection: Connection) -> list[bytes]:
    """Return the leaves of all entries, in their order."""
    return [bytes(leaf) for leaf in connection.execute(select(entries.c.leaf).order_by(entries.c.seq)).scalars()]


@dataclass(frozen=True)
class Checkpoints:
    """The stored checkpoints and recorded keys. Every method raises `StorageError`."""

    database: Database
    clock: Clock = utc_now

    async def make(self, key: SigningKey) -> str:
        """Sign the current head of the record. If there is a stored checkpoint of the same size, return that instead.

        A new key is recorded first, so that the checkpoint covers it. Raises `RecordBroken`, and signs nothing, if the
        record does not begin with the entries of the last checkpoint.
        """
        await self.database.write(lambda connection: self._record_key(connection, key))
        note, size = await self.database.read(lambda connection: self._sign(connection, key))
        return await self.database.write(lambda connection: _store(connection, size, note))

    async def latest(self) -> str | None:
        query = select(checkpoints.c.note).order_by(checkpoints.c.size.desc()).limit(1)
        return await self.database.read(lambda connection: connection.execute(query).scalar())

    async def record_restore(self, key: SigningKey, lost: str, *, why: str, by: str) -> str:
        """Record that a backup was restored, and sign the new head.

        `lost` is a checkpoint of the entries that were lost. From then on, verification knows that such checkpoints
        cover lost entries. Raises `NoteInvalid`, and as `make` does.
        """
        await self.database.write(lambda connection: self._record_key(connection, key))
        await self.database.write(lambda connection: self._record_restore(connection, key, lost, why, by))
        return await self.make(key)

    def _record_restore(self, connection: Connection, key: SigningKey, lost: str, why: str, by: str) -> None:
        lock_record(connection)
        (head, _), leaves = open_checkpoint(lost, read_keys(connection)), read_leaves(connection)
        common = connection.execute(select(func.coalesce(func.max(checkpoints.c.size), 0))).scalar_one()
        if common > len(leaves):
            raise RecordBroken(f"A checkpoint covers {common:,} entries, and there are {len(leaves):,}.", hint=_HINT)
        note = sign_note(format_restore(key.name, common, LeafTree(leaves).root(common), head), key)
        body = {"common": common, "before": head.size, "lost": lost, "why": why, "by": by, "note": note}
        insert_entries(connection, encode_entries([LogEntry(RECORD, EntryKind.RESTORED, body)], self.clock()))

    def sign(self, connection: Connection, key: SigningKey, leaves: Sequence[bytes]) -> str:
        """Return a signed head of these leaves, but do not store it. Raises `RecordBroken`."""
        tree, size = LeafTree(leaves), len(leaves)
        last = connection.execute(select(checkpoints.c.note).order_by(checkpoints.c.size.desc()).limit(1)).scalar()
        if last is not None and (fault := compare_head(last, read_keys(connection), tree)):
            raise RecordBroken(f"The record does not fit its last checkpoint: {fault}.", hint=_HINT)
        head = TreeHead(key.name, size, tree.root(size), format_moment(self.clock()))
        return sign_note(head.format(), key)

    def _sign(self, connection: Connection, key: SigningKey) -> tuple[str, int]:
        leaves = read_leaves(connection)
        return self.sign(connection, key, leaves), len(leaves)

    def _record_key(self, connection: Connection, key: SigningKey) -> None:
        lock_record(connection)
        known = read_keys(connection)
        if key.public in known:
            return
        for public, note in key.list_endorsed():
            if public not in known:  # a restored backup may lack several
                body = {"key": str(public), "instead_of": str(known[-1]) if known else "", "endorsement": note}
                entry = LogEntry(RECORD, EntryKind.SIGNING_KEY, body)
                insert_entries(connection, encode_entries([entry], self.clock()))
                known.append(public)


_HINT = "`footnote audit verify` shows what was changed; `footnote audit restored` records a backup."


def format_restore(origin: str, common: int, root: bytes, lost: TreeHead) -> str:
    """Format the text to sign after a restore: the head that the backup had, and the head that was lost."""
    common_root, lost_root = (base64.b64encode(digest).decode() for digest in (root, lost.root))
    return f"{origin}\nrestored\n{common}\n{common_root}\n{lost.size}\n{lost_root}\n"


def compare_head(note: str, keys: Sequence[PublicKey], tree: LeafTree) -> str:
    """Return the reason if a checkpoint is invalid or does not fit the tree; empty if it does."""
    try:
        head, _ = open_checkpoint(note, keys)
    except NoteInvalid as error:
        return str(error)
    if head.size > len(tree.leaves):
        return f"it covers {head.size:,} entries, and there are {len(tree.leaves):,}"
    if tree.root(head.size) != head.root:
        return f"the first {head.size:,} entries are not those that it covers"
    return ""


def _store(connection: Connection, size: int, note: str) -> str:
    lock_record(connection)
    note_text = connection.execute(select(checkpoints.c.note).where(checkpoints.c.size == size)).scalar()
    if note_text is None:
        connection.execute(insert(checkpoints), {"size": size, "note": note})
    return note_text or note


def read_keys(connection: Connection) -> list[PublicKey]:
    """Return the recorded public keys, oldest first. Verification decides which count."""
    query = select(entries.c.body).where(entries.c.kind == EntryKind.SIGNING_KEY.value).order_by(entries.c.seq)
    keys = []
    for body in connection.execute(query).scalars():
        try:
            keys.append(read_public_key(str(decode_json(body)["key"])))
        except (ValueError, LookupError, TypeError):
            continue
    return keys


class RecordBroken(StorageError):
    """The record does not match its checkpoints."""

    kind = "record_broken"
