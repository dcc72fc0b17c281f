"""Verify the whole record: each entry against its leaf, the leaves against the checkpoints, each turn against itself.

The tables that are derived from the entries are compared with them.

Rows are read as bytes. So an unreadable row is only a finding, and all other rows are still verified.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any

from sqlalchemy import Connection, text

from storage.database.engine import Database
from storage.record.entry_rows import (
    StoredRows,
    collect_hits,
    derive_claims,
    derive_feedback,
    derive_passages,
    fetch_stored,
    is_derived,
    list_strays,
)  # fmt: skip
from storage.record.proof.checkpoints import LeafTree
from storage.record.proof.index_check import check_turns
from storage.record.proof.key_chain import KeyChain
from storage.record.proof.merkle_tree import HASH_BYTES, SALT_BYTES, commit_body, hash_entry
from storage.record.proof.signed_notes import NoteInvalid, PublicKey
from storage.record.proof.verification import AuditFinding, check_assembled, check_delivered, strip_marks, verify_turn
from storage.record.turn_index import derive_documents
from storage.types import RECORD, DocumentId, EntryKind, LogEntry

_PAGE = 500
_RAW_ROWS = {
    "sqlite": """SELECT seq, typeof(turn_id) || typeof(kind) || typeof(at) || typeof(body) || typeof(salt)
        || typeof(commitment) || typeof(leaf) = 'texttexttexttextblobblobblob', CAST(turn_id AS BLOB),
        CAST(kind AS BLOB), CAST(at AS BLOB), CAST(body AS BLOB), CAST(salt AS BLOB), CAST(commitment AS BLOB),
        CAST(leaf AS BLOB) FROM entries WHERE seq > :after ORDER BY seq LIMIT :page""",
    "postgresql": """SELECT seq, true, convert_to(turn_id, 'UTF8'), convert_to(kind, 'UTF8'),
        convert_to(to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'), 'UTF8'), convert_to(body, 'UTF8'),
        salt, commitment, leaf FROM entries WHERE seq > :after ORDER BY seq LIMIT :page""",
}
_RAW_NOTES = {
    "sqlite": "SELECT size, CAST(note AS BLOB) FROM checkpoints ORDER BY size",
    "postgresql": "SELECT size, convert_to(note, 'UTF8') FROM checkpoints ORDER BY size",
}
_LAST_GIVEN = "SELECT seq FROM sqlite_sequence WHERE name = 'entries'"
_CLOCKS_DIFFER = 60.0  # seconds by which clocks of several machines may differ
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}", re.ASCII)


@dataclass(frozen=True, slots=True)
class RecordCheck:
    """The number of verified entries, and the findings of a verification."""

    entries: int = 0
    answers: int = 0
    sentences: int = 0
    citations: int = 0
    erased: int = 0  # entries whose texts were erased, as recorded
    checkpoints: int = 0
    covered: int = 0  # entries that the last checkpoint covers
    root: bytes = b""  # the root of the tree
    findings: tuple[AuditFinding, ...] = ()
    notices: tuple[AuditFinding, ...] = ()
    """Oddities that are not faults: times that run backwards, as after a clock was set back."""
    events: tuple[AuditFinding, ...] = ()
    """Entries that change what the others prove: new keys and restores, then erasures and holds."""


_NOTE = re.compile(r"(?:[^\n\u2014][^\n]*\n)+\n(?:\u2014 [^\n]*\n)+")


def split_heads(text: str) -> list[str]:
    """Split the text of a file with checkpoints, one after the other. Raises `ValueError` for any other content."""
    if not text.strip() or _NOTE.sub("", text).strip():
        raise ValueError("it contains something that is not a checkpoint" if text.strip() else "it is empty")
    return [match[0] for match in _NOTE.finditer(text)]


async def verify_record(
    database: Database, against: Sequence[str] = (), pinned: Sequence[PublicKey] = ()
) -> RecordCheck:
    """Verify the whole record, whatever it contains. Raises `StorageError` if it cannot be read."""
    checker, after = _RecordChecker(KeyChain(tuple(pinned))), -(2**63)
    while page := await database.read(partial(_fetch_page, after=after)):
        rows, checker.stored, faults = page
        checker.findings += faults
        for row in rows:
            checker.check_row(row)
        after = rows[-1].seq
    notes, last_given = await database.read(_fetch_notes)
    checker.strays = await database.read(list_strays)
    return checker.conclude(notes, last_given, against)


@dataclass(frozen=True, slots=True)
class _RawRow:
    seq: int
    typed: bool  # whether each column has the right type, text or bytes
    turn_id: bytes
    kind: bytes
    at: bytes
    body: bytes
    salt: bytes
    commitment: bytes
    leaf: bytes


def _fetch_page(connection: Connection, after: int) -> tuple[list[_RawRow], StoredRows, list[AuditFinding]] | None:
    """Return the next entries, rows of other tables derived from them, and faults of turns; None at the end."""
    query = text(_RAW_ROWS[connection.dialect.name])
    found = connection.execute(query, {"after": after, "page": _PAGE})
    rows = [_RawRow(row[0], bool(row[1]), *(bytes(part or b"") for part in row[2:])) for row in found]
    closed = [row.turn_id.decode("utf-8", "backslashreplace") for row in rows if row.kind == b"turn_closed"]
    acts = [row.seq for row in rows if row.kind == b"feedback"]
    faults = check_turns(connection, [row.seq for row in rows if row.kind == b"turn_opened"])
    return (rows, fetch_stored(connection, closed, acts), faults) if rows else None


def _fetch_notes(connection: Connection) -> tuple[list[tuple[Any, bytes]], int]:
    notes = [(size, bytes(note or b"")) for size, note in connection.execute(text(_RAW_NOTES[connection.dialect.name]))]
    sqlite = connection.dialect.name == "sqlite"
    return notes, int(connection.execute(text(_LAST_GIVEN)).scalar() or 0) if sqlite else 0


@dataclass(slots=True)
class _TurnState:
    """The state of a turn, as far as its entries have been read."""

    opened: bool = False
    closed: bool = False
    erased: bool = False  # whether any of its entries was erased
    found: set[str] = field(default_factory=set)  # ids of found passages, until the turn is closed
    number: int = 0  # of the entry that opened it
    pages: dict[str, DocumentId] = field(default_factory=dict)  # of these passages
    checks: bool = False  # whether it is a fact-check, whose text is a verdict
    said: str = ""  # the text of its answer, until that was delivered


@dataclass(slots=True)
class _RecordChecker:
    """Gets the entries in order, and returns the findings at the end."""

    chain: KeyChain
    leaves: list[bytes] = field(default_factory=list)
    findings: list[AuditFinding] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("answers", "sentences", "citations"), 0))
    last: int = 0
    turns: dict[str, _TurnState] = field(default_factory=dict)
    blank: set[int] = field(default_factory=set)
    erased: list[tuple[int, int]] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    known_gaps: list[tuple[int, int]] = field(default_factory=list)
    events: dict[EntryKind, list[AuditFinding]] = field(default_factory=lambda: {kind: [] for kind in _EVENTS})
    latest: str = ""  # the latest time so far
    notices: list[AuditFinding] = field(default_factory=list)
    stored: StoredRows = field(default_factory=dict)  # rows of other tables that were derived from these entries
    strays: Sequence[str] = ()  # findings about rows that no entry has

    def check_row(self, row: _RawRow) -> None:
        turn_id = row.turn_id.decode("utf-8", "backslashreplace")
        self.findings += [AuditFinding(turn_id, f"entry {row.seq}: {what}") for what in self._check_row(row, turn_id)]
        self.last = row.seq

    def _check_row(self, row: _RawRow, turn_id: str) -> Iterator[str]:
        if row.seq != self.last + 1:
            self.gaps.append((self.last + 1, row.seq - 1))
        kind, at = (part.decode("utf-8", "backslashreplace") for part in (row.kind, row.at))
        moment = f"{at.replace(' ', 'T')}Z"
        leaf = hash_entry(row.seq, turn_id, kind, moment, row.commitment)
        self.leaves.append(leaf)
        self._watch_clock(row.seq, turn_id, moment)
        if not row.typed or len(row.commitment) != HASH_BYTES or not _MOMENT.fullmatch(at):
            yield "a column does not hold what it should"
        if leaf != row.leaf:
            yield "it does not have the leaf that was recorded: its number, turn, kind or moment was changed"
        if row.body and (len(row.salt) != SALT_BYTES or commit_body(row.salt, row.body) != row.commitment):
            yield "its body is not the one that was recorded"
        if row.salt and not row.body:
            yield "its body is gone, and its salt is not"
        if not row.body:
            self.blank.add(row.seq)
        if kind not in _KINDS:
            yield f"{kind!r} is not a kind of entry"
        else:
            yield from self._check_body(row, turn_id, EntryKind(kind), moment)

    def _watch_clock(self, seq: int, turn_id: str, moment: str) -> None:
        if moment < self.latest and _seconds_between(moment, self.latest) > _CLOCKS_DIFFER:
            self.notices.append(AuditFinding(turn_id, f"entry {seq}: its moment is before that of the entry before it"))
        self.latest = moment

    def _check_body(self, row: _RawRow, turn_id: str, kind: EntryKind, at: str) -> Iterator[str]:
        try:
            body = dict(json.loads(row.body or b"{}").items())
            if kind in _OF_NO_TURN or turn_id == RECORD:
                self._note_event(kind, row.seq, body, at)
                self._note_record_entry(kind, body, at)
            else:
                yield from self._check_order(kind, turn_id, body, erased=not row.body)
                yield from self._compare(kind, self.turns[turn_id], body, row.seq, at)
        except NoteInvalid as error:
            yield f"it does not count: {error}"
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
            yield "its body is not as any version wrote it"

    def _check_order(self, kind: EntryKind, turn_id: str, body: Mapping[str, Any], *, erased: bool) -> Iterator[str]:
        """Yield the ways in which an entry contradicts the earlier entries of its turn."""
        turn = self.turns.setdefault(turn_id, _TurnState())
        turn.erased = turn.erased or erased
        if kind is EntryKind.TURN_OPENED:
            if turn.opened:
                yield "its turn was opened before"
            turn.opened, turn.checks = True, body.get("task") == "check"
            return
        if not turn.opened:
            yield "its turn was not opened before"
        if kind is EntryKind.STEP:
            turn.found |= {str(hit[0]) for hit in body.get("hits") or ()}
        elif kind is EntryKind.TURN_CLOSED:
            if turn.closed:
                yield "its turn was closed before"
            turn.closed = True
            yield from self._check_closing(turn, turn_id, body)
        elif kind is EntryKind.DELIVERED and body.get("text"):
            yield from check_delivered(turn.said, body)
            turn.said = ""

    def _compare(self, kind: EntryKind, turn: _TurnState, body: Mapping[str, Any], seq: int, at: str) -> Iterator[str]:
        """Yield the tables whose rows are not those that are derived from an entry."""
        derived: dict[tuple[str, int], Iterable[Mapping[str, Any]]] = {}
        if kind is EntryKind.TURN_OPENED:
            turn.number = turn.number or seq
        elif kind is EntryKind.STEP:
            turn.pages |= collect_hits([body])
        elif kind is EntryKind.TURN_CLOSED and turn.number:
            derived["claims", turn.number] = derive_claims(turn.number, body)
            derived["claim_passages", turn.number] = derive_passages(turn.number, body, turn.pages)
            if body:  # rows of erased turns are kept
                derived["turn_documents", turn.number] = (row for row, _ in derive_documents(turn.number, body))
        elif kind is EntryKind.FEEDBACK:
            derived["feedback", seq] = [derive_feedback(turn.number, seq, at, body)] if turn.number and body else []
        for key, rows in derived.items():
            if not is_derived(self.stored.get(key, ()), rows):
                yield f"rows of the table {key[0]} were changed, added or removed"
        turn.pages = {} if turn.closed else turn.pages

    def _check_closing(self, turn: _TurnState, turn_id: str, body: Mapping[str, Any]) -> Iterator[str]:
        self.counts["answers"] += 1
        for name in ("sentences", "citations"):
            self.counts[name] += len(body.get(name) or ())
        if not turn.erased:
            yield from (finding.what for finding in verify_turn([LogEntry(turn_id, EntryKind.TURN_CLOSED, body)]))
            for citation in body.get("citations") or ():
                if citation.get("passage_id") not in turn.found:
                    yield f"citation {citation.get('number')} is of a passage that its turn did not find"
            if not turn.checks:
                yield from check_assembled(body)
                turn.said = strip_marks(str(body.get("text", ""))) if body.get("sentences") else ""
        turn.found = set()

    def _note_record_entry(self, kind: EntryKind, body: Mapping[str, Any], at: str) -> None:
        if kind is EntryKind.ERASURE:
            self.erased += [(int(first), int(last)) for first, last in body.get("erased", ())]
        elif kind is EntryKind.TREE_BEGUN:
            self.known_gaps += [(int(first), int(last)) for first, last in body.get("gaps", ())]
        elif kind is EntryKind.SIGNING_KEY:
            self.chain.add(body)
        elif kind is EntryKind.RESTORED:
            self.chain.add_restore(body, at, LeafTree(self.leaves))

    def _note_event(self, kind: EntryKind, seq: int, body: Mapping[str, Any], at: str) -> None:
        if kind in _EVENTS:
            values = ", ".join(f"{name} {body[name]}" for name in _EVENTS[kind] if name in body)
            self.events[kind].append(AuditFinding(RECORD, f"entry {seq}, {at}: {kind.value} ({values})"))

    def conclude(self, notes: Sequence[tuple[Any, bytes]], last_given: int, against: Sequence[str]) -> RecordCheck:
        tree = LeafTree(self.leaves)
        about = [*self._check_numbers(last_given), *self._check_erasures(), *self.strays]
        covered = 0
        for size, raw in notes:
            note = raw.decode("utf-8", "backslashreplace")
            fault = self.chain.compare(note, tree)
            if not fault and note.split("\n")[1] != str(size):
                fault = "it is stored under the size of another checkpoint"
            covered = covered if fault or not isinstance(size, int) else max(covered, size)
            about += [f"checkpoint {size}: {fault}"] if fault else []
        faults = [(note, self.chain.compare(note, tree)) for note in against]
        for note, fault in faults:
            if fault and not self.chain.excuses(note):
                about.append(f"the checkpoint that was kept elsewhere: {fault}")
        findings = (*self.findings, *(AuditFinding(RECORD, what) for what in about))
        size = len(self.leaves)
        return RecordCheck(
            entries=size,
            answers=self.counts["answers"],
            sentences=self.counts["sentences"],
            citations=self.counts["citations"],
            erased=len(self.blank),
            checkpoints=len(notes),
            covered=covered,
            root=tree.root(size),
            findings=findings,
            notices=tuple(self.notices),
            events=tuple(chain.from_iterable(self.events.values())),
        )

    def _check_numbers(self, last_given: int) -> Iterator[str]:
        for gap in self.gaps:
            if gap not in self.known_gaps:
                yield f"{_name_range(*gap)} missing"
        if last_given > self.last:
            yield f"{_name_range(self.last + 1, last_given)} missing"

    def _check_erasures(self) -> Iterator[str]:
        named = {number for first, last in self.erased for number in range(first, min(last, self.last) + 1)}
        yield from (f"entry {number} was blanked, and no erasure names it" for number in sorted(self.blank - named))
        yield from (f"entry {number} was erased, but still has its text" for number in sorted(named - self.blank))


_KINDS = frozenset(EntryKind) - {EntryKind.UNREADABLE}
_EVENTS: dict[EntryKind, tuple[str, ...]] = {  # and the parts of their bodies to show
    EntryKind.SIGNING_KEY: ("key",),
    EntryKind.RESTORED: ("common", "before", "why"),
    EntryKind.ERASURE: ("what", "erased", "by", "why"),
    EntryKind.HOLD: ("what", "on", "by", "why"),
}
_OF_NO_TURN = frozenset(
    {
        EntryKind.SETTING,
        EntryKind.TREE_BEGUN,
        EntryKind.SIGNING_KEY,
        EntryKind.ERASURE,
        EntryKind.HOLD,
        EntryKind.RESTORED,
    }
)


def _seconds_between(earlier: str, later: str) -> float:
    try:
        return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
    except (ValueError, TypeError):  # an invalid time is a finding elsewhere
        return 0.0


def _name_range(first: int, last: int) -> str:
    return f"entry {first} is" if first == last else f"entries {first} to {last} are"
