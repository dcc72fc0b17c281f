"""The values that are kept: what is stored, found, cited and logged, and the ids of passages.

All of them are frozen and without behaviour. Values that are only thought (conversations, drafts, answers) live in
`pipeline.types`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

Span = tuple[int, int]
"""Start and end of a stretch of a passage's text, in characters, end exclusive."""


class PassageKind(StrEnum):
    """What a passage was in its document; prose can be quoted as a sentence, a table row only as a row."""

    PROSE = "prose"
    TABLE = "table"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Document:
    """One source text as the manifest knows it. `(corpus, key)` names it; its text lives in its passages."""

    corpus: str
    key: str
    """Its name within its source, stable over edits: a path relative to the folder, a page id."""
    title: str
    url: str = ""
    """Where a person can read it; empty when its source has no address."""
    revision: str = ""
    date: datetime | None = None
    """When its text was last changed, with a time zone; None when nobody knows."""
    language: str = ""
    """ISO 639-1, empty when unknown."""
    fingerprint: str = ""
    """A hash of the source's bytes and of the code that reads them; equal fingerprints are not read again."""
    aliases: tuple[str, ...] = ()
    """Other titles under which its source knows it; its first passage is found by them."""
    disambiguation: bool = False
    """Whether it only tells apart what shares its title."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of one document that can be searched, quoted and cited."""

    id: str
    corpus: str
    document: str
    """The document's key."""
    section: str
    """The path of headings above the text, joined by ` › `; empty above the first heading."""
    text: str
    position: int
    """Its place among its document's passages, counted from 0."""
    hash: str
    """Of title, section and text, that is of all that the indexes see."""
    kind: PassageKind = PassageKind.PROSE


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What is looked for, and of what time. Storage ignores the time; re-ranking reads it."""

    text: str
    time: Literal["recent"] | int | None = None
    unchecked: bool = False
    """Whether its text is a claim that nobody has checked yet: nobody is shown what is looked for."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found, joined with its document."""

    passage: Passage
    document: Document
    score: float
    """The fused score, comparable within one search only; higher is better."""
    dense: float = 0.0
    """Cosine between query and passage, -1 to 1; comparable across searches by one embedder."""
    lexical: float = 0.0
    """BM25, 0 and up; 0 when the passage shares no term with the query."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sentence kept, and the passage and span it stands in."""

    text: str
    passage: Passage
    document: Document
    span: Span


class Verdict(StrEnum):
    """What the evidence says of a claim."""

    SUPPORTS = "SUPPORTS"
    REFUTES = "REFUTES"
    NOT_ENOUGH_INFO = "NOT ENOUGH INFO"


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement that is true or false by itself."""

    text: str
    origin: Literal["model", "retrieved", "user"]


@dataclass(frozen=True, slots=True)
class VerdictReason:
    """A part of why a rule came to a verdict, which can be said in any language."""

    kind: str
    """What it is, such as `verbatim` or `contradicted`."""
    facts: tuple[str, ...] = ()
    """What was quoted, in the order in which the kind names it."""


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim with its verdict, what that stands on, and why."""

    claim: Claim
    verdict: Verdict
    evidence: tuple[str, ...] = ()
    """The ids of the passages that the verdict stands on: none where too little is known."""
    reasoning: str = ""
    looked_at: tuple[str, ...] = ()
    """The ids of the other passages that it was held against, nearest first."""
    because: tuple[VerdictReason, ...] = ()
    """The same as `reasoning`, where rules decided; empty where a model did."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A footnote: a stored passage as it was when it was cited. Nothing in it comes from a model."""

    number: int
    corpus: str
    document: str
    title: str
    section: str
    url: str
    revision: str
    date: datetime | None
    quote: str
    """The sentence or sentences of the passage that support, verbatim."""
    passage_id: str
    passage_text: str
    passage_hash: str


@dataclass(frozen=True, slots=True)
class Step:
    """One search or model call of a turn, as it happened."""

    stage: str
    facts: Mapping[str, Any]
    milliseconds: float


class EntryKind(StrEnum):
    """The facts that the record holds. Entries are only ever inserted."""

    TURN_OPENED = "turn_opened"
    STEP = "step"
    TURN_CLOSED = "turn_closed"
    DELIVERED = "delivered"
    """What was posted where, word for word, or why not."""
    EDITED = "edited"
    """What was posted was changed or taken back afterwards, by whom and why."""
    FEEDBACK = "feedback"
    """What somebody thought of an answer, or that a person was asked, or that it was shared."""
    SETTING = "setting"
    """A channel's settings were changed by command; the turn's id is the channel's."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One fact of the record. `seq` and `at` are given by the log when it is appended."""

    turn_id: str
    kind: EntryKind
    body: Mapping[str, Any]
    seq: int = 0
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus as every turn needs it, without counting anything."""

    name: str
    refreshed: datetime | None
    """When a refresh last ran to its end; None when none has."""
    reference: bool
    """Whether it is a work of reference, such as an encyclopedia, and not the team's own."""
    generation: int = 0
    """Raised with every change of what is listed of it."""


class RunState(StrEnum):
    """How far a run has come, or what became of it."""

    RUNNING = "running"
    DONE = "done"
    """It came to its end; single documents may have failed, or been held back."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"
    """Its process ended without a word; the next run goes on from what it had applied."""


@dataclass(frozen=True, slots=True)
class RefreshRun:
    """One refresh of one corpus, as it is told afterwards, or while it goes on."""

    id: int
    corpus: str
    begun: datetime
    seen: datetime
    """When it last gave a sign of life."""
    ended: datetime | None
    """None while it runs; of one that was lost, its last sign of life."""
    state: RunState
    added: int
    changed: int
    unchanged: int
    removed: int
    failed: int
    held_back: int
    passages_added: int
    passages_removed: int
    done: int
    """Documents looked at so far."""
    total: int | None
    """Documents that there will be; None where nobody knows."""
    passages: int
    """Passages added so far."""
    doing: str
    """What its source does that takes a while, such as to download; empty where it only reads."""
    fault: str
    edition: str
    owner: str
    """The process that runs it, or did."""
    night: datetime | None
    """The night that it belongs to; None where somebody asked for it."""


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """What is indexed of one corpus."""

    name: str
    documents: int
    passages: int
    refreshed: datetime | None
    """When a refresh last ran to its end; None when none has."""
    failures: int = 0
    """How many documents the last refresh could not read."""
    edition: str = ""
    """What people call the state of its source that was read last, such as the date of a dump."""
    last_run: RefreshRun | None = None
    """The newest refresh, whatever became of it; None where none is on record."""
    forgotten: int = 0
    """How many documents were removed on purpose, and are left out by refreshes."""


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """What becomes of one document: its new row and passages, or, with `document` None, its removal."""

    corpus: str
    key: str
    document: Document | None
    add: tuple[Passage, ...] = ()
    """Passages to be written and indexed: new ones, and those whose title or section changed under the same id."""
    keep: tuple[Passage, ...] = ()
    """Passages that stand already and need no indexing; their positions are brought up to date."""
    drop: tuple[str, ...] = field(default=())
    """Ids of passages that are no longer part of it."""


@dataclass(frozen=True, slots=True)
class NewQuestion:
    """A question as a platform hands it in. Places and people are named with their platform: `slack:T1/C1`."""

    key: str
    """Unique over all that is ever taken, and made of the platform's own ids."""
    channel: str
    conversation: str
    user: str
    message: str
    """The id of the message that asks; empty for commands."""
    body: Mapping[str, Any]
    """All else that is needed to answer it, as JSON has it; its words stand under `text`."""
    handle: str = field(default="", repr=False)
    """A secret of the platform's, such as an interaction's token; forgotten when the question is done."""


@dataclass(frozen=True, slots=True)
class QueuedQuestion:
    """A question as the queue has it; its first fields are `NewQuestion`'s."""

    ticket: int
    """Its number, higher than that of any question taken before."""
    key: str
    channel: str
    conversation: str
    user: str
    message: str
    body: Mapping[str, Any]
    handle: str = field(repr=False)
    state: str
    """`waiting`, `running` or `done`."""
    outcome: str
    """How it was done with; empty until then."""
    taken_at: datetime
    turn_id: str
    """The turn of the log that answers it, or did; empty before there is one."""
    sending: bool
    """Whether a first post was begun, so that it may stand there although `posted` is empty."""
    posted: tuple[str, ...]
    """The ids of the messages that show its answer, in order."""
    owner: str
    """The process that runs it; empty when none does."""
    lease_until: datetime | None
    """Until when it is that process's own; a lapsed one may be taken over."""


@dataclass(frozen=True, slots=True)
class SpendingTotal:
    """What turns took of the model."""

    turns: int = 0
    tokens: int = 0
    """Of prompts and replies together."""
    cost: float = 0.0
    """In the currency of the settings' prices; turns whose cost is not known count nothing."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run came to: documents, then passages."""

    state: RunState
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: int = 0
    """Documents that could not be read."""
    held_back: int = 0
    """Documents that the source lists no more, and that were too many to be removed unasked."""
    passages_added: int = 0
    passages_removed: int = 0
    fault: str = ""
    """One plain line, with what to do; empty where nothing went wrong."""
    edition: str = ""
    """What people call the state of the source that was read."""


@dataclass(frozen=True, slots=True)
class Lease:
    """What only one process may do at a time, and the one that does it."""

    name: str
    owner: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a source was worked through, and which source that was."""

    mark: str = ""
    """What the source wants to hear as `since`; empty: nothing."""
    of: str = ""
    """A digest of the source's settings: the mark of another source means nothing."""
    edition: str = ""
    """What people call the state that was read last, such as the date of a dump."""


@dataclass(frozen=True, slots=True)
class DocumentRef:
    """A document as somebody may look for it."""

    corpus: str
    key: str
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class NightRecord:
    """A night, and what it came to."""

    due: datetime
    begun: datetime
    ended: datetime | None
    """None while it is under way, or where its process ended without a word."""
    owner: str
    outcome: str
    """A word: what became of it; empty until it has ended."""
    lines: tuple[str, ...]
    """What is told of it, a line a corpus."""


ID_LENGTH = 32
"""Hexadecimal digits kept: 128 bits, so that two of a billion passages meet by chance once in 10^20 times."""


def make_passage_id(corpus: str, key: str, section: str, text: str, ordinal: int) -> str:
    """Name a passage: 32 hexadecimal digits. `ordinal` counts from 0 the equal (section, text) of one document."""
    return _digest_parts(corpus, key, section, text, str(ordinal))


def hash_passage(title: str, section: str, text: str) -> str:
    """Hash what the indexes and a reader see of a passage: 32 hexadecimal digits."""
    return _digest_parts(title, section, text)


def _digest_parts(*parts: str) -> str:
    # A lone surrogate (from a file name that is not UTF-8) must not stop an ingest.
    joined = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:ID_LENGTH]
