"""The keys that count when the record is verified, and the restores that they signed. Pure.

Anyone who can write to the database can record a key of their own. So a recorded key counts only if the key before it
endorsed it, and a restore excuses only checkpoints by its own key or by earlier ones.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from storage.record.proof.checkpoints import LeafTree, TreeHead, compare_head, format_restore, open_checkpoint
from storage.record.proof.signed_notes import NoteInvalid, PublicKey, open_note, read_endorsed, read_public_key


@dataclass(frozen=True, slots=True)
class _Restore:
    common: int  # the number of entries that the backup had
    lost: TreeHead  # the last known head of the lost entries; without root in entries of earlier versions
    rank: int  # of the key that signed it
    place: int  # the number of entries up to this one


@dataclass(slots=True)
class KeyChain:
    """The keys that count so far: the `pinned` ones (without them, the first recorded one), and those they endorsed."""

    pinned: tuple[PublicKey, ...] = ()
    recorded: list[PublicKey] = field(default_factory=list)
    restores: list[_Restore] = field(default_factory=list)
    fitting: list[tuple[int, int]] = field(default_factory=list)  # heads of the present tree: rank of the key, and size

    @property
    def keys(self) -> list[PublicKey]:
        return [*self.recorded, *self.pinned]

    def add(self, body: Mapping[str, Any]) -> None:
        """Add a recorded key. Raises `NoteInvalid` if it does not count."""
        key = read_public_key(str(body["key"]))
        if key in self.recorded:
            return
        if key not in self.pinned and (self.recorded or self.pinned):
            note, endorsed = str(body.get("endorsement")), None
            with suppress(NoteInvalid):
                open_note(note, self.recorded[-1:] or self.pinned)
                endorsed = read_endorsed(note)
            if key != endorsed:
                raise NoteInvalid(
                    "no key that counts endorsed it; if you noted this key, give `--key` for each noted key"
                )
        self.recorded.append(key)

    def add_restore(self, body: Mapping[str, Any], at: str, tree: LeafTree) -> None:
        """Add a restore, the last entry of the tree so far. Raises `NoteInvalid` if no key that counts signed it."""
        text, key = open_note(str(body["note"]), self.keys)
        common, before, place = int(body["common"]), int(body["before"]), len(tree.leaves)
        lost, signed = TreeHead(key.name, before, b"", at), f"{key.name}\nrestored\n{common}\n{before}\n"
        if "lost" in body:  # not in entries of earlier versions
            lost, _ = open_checkpoint(str(body["lost"]), self.keys)
            signed = format_restore(key.name, common, tree.root(common), lost) if 0 <= common < place else ""
        if text != signed or lost.size != before:
            raise NoteInvalid("its note is about another restore")
        self.restores.append(_Restore(common, lost, self._rank(key), place))

    def compare(self, note: str, tree: LeafTree) -> str:
        """Return the fault of a checkpoint; empty if it fits the tree."""
        if not (fault := compare_head(note, self.keys, tree)):
            head, key = open_checkpoint(note, self.keys)
            self.fitting.append((self._rank(key), head.size))
        return fault

    def excuses(self, note: str) -> bool:
        """Return whether the entries of a checkpoint were lost when a backup was restored.

        Its key or a later one must have signed the restore, and a fitting checkpoint that covers the restore: a forger
        can record a key only before the genuine ones.
        """
        with suppress(NoteInvalid):
            head, key = open_checkpoint(note, self.keys)
            rank = self._rank(key)
            covered = max((size for by, size in self.fitting if by >= rank), default=0)
            restores = (restore for restore in self.restores if restore.rank >= rank and restore.place <= covered)
            return any(restore.common < head.size and _precedes(head, restore.lost) for restore in restores)
        return False

    def _rank(self, key: PublicKey) -> int:
        return self.recorded.index(key) if key in self.recorded else -1


def _precedes(head: TreeHead, lost: TreeHead) -> bool:
    if lost.root and head.size == lost.size:
        return head.root == lost.root
    return head.size <= lost.size and head.at <= lost.at
