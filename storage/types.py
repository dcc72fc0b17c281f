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
    """A search, and of what time. Storage ignores the time; re-ranking reads it."""

    text: str
    time: Literal["recent"] | int | None = None
    unchecked: bool = False
    """Whether its text is a claim that nobody has checked yet, so that it is shown to nobody."""


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
    """A sentence, and the passage and span it was taken from."""

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
    """A reason for a rule's verdict, which can be put into any language."""

    kind: str
    """Such as `verbatim` or `contradicted`."""
    facts: tuple[str, ...] = ()
    """The quotations that the kind names, in its order."""


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim with its verdict, evidence and reasons."""

    claim: Claim
    verdict: Verdict
    evidence: tuple[str, ...] = ()
    """Ids of the passages that the verdict rests on; none where too little is known."""
    reasoning: str = ""
    looked_at: tuple[str, ...] = ()
    """Ids of the other passages that it was compared with, nearest first."""
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
    """One search or model call of a turn."""

    stage: str
    facts: Mapping[str, Any]
    milliseconds: float


class EntryKind(StrEnum):
    """The kinds of entries of the audit log."""

    TURN_OPENED = "turn_opened"
    STEP = "step"
    TURN_CLOSED = "turn_closed"
    DELIVERED = "delivered"
    """What was posted where, word for word, or why nothing was."""
    EDITED = "edited"
    """A post was changed or retracted, by whom and why."""
    FEEDBACK = "feedback"
    """Somebody rated an answer, asked a person, or shared it."""
    SETTING = "setting"
    """A command changed a channel's settings; the turn's id is the channel's."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of the audit log, which sets `seq` and `at` when it is appended."""

    turn_id: str
    kind: EntryKind
    body: Mapping[str, Any]
    seq: int = 0
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus without counts, as every turn needs it."""

    name: str
    refreshed: datetime | None
    """When a refresh last ran to its end; None when none has."""
    reference: bool
    """Whether it is a work of reference, such as an encyclopedia, and not the team's own."""
    generation: int = 0
    """Raised with every change of what is listed."""


class RunState(StrEnum):
    """The state of a run."""

    RUNNING = "running"
    DONE = "done"
    """It ran to its end; single documents may have failed or been held back."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"
    """Its process died; the next run goes on from what it had applied."""


@dataclass(frozen=True, slots=True)
class RefreshRun:
    """One refresh of one corpus, running or ended."""

    id: int
    corpus: str
    begun: datetime
    seen: datetime
    """Its last sign of life."""
    ended: datetime | None
    """None while it runs; the last sign of life of a lost one."""
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
    """Documents in all; None where nobody knows."""
    passages: int
    """Passages added so far."""
    doing: str
    """What keeps its source busy, such as a download; empty while it only reads."""
    fault: str
    edition: str
    owner: str
    """The process that runs it."""
    night: datetime | None
    """The night that it belongs to; None where somebody started it."""


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """What is indexed of one corpus."""

    name: str
    documents: int
    passages: int
    refreshed: datetime | None
    """When a refresh last ran to its end; None when none has."""
    failures: int = 0
    """Documents that the last refresh could not read."""
    edition: str = ""
    """People's name for the state of its source that was read last, such as the date of a dump."""
    last_run: RefreshRun | None = None
    """The newest refresh, ended or not."""
    forgotten: int = 0
    """Documents that were removed on purpose, and that refreshes leave out."""


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A change of one document: its new row and passages, or, with `document` None, its removal."""

    corpus: str
    key: str
    document: Document | None
    add: tuple[Passage, ...] = ()
    """Passages to write and index: new ones, and those whose title or section changed under the same id."""
    keep: tuple[Passage, ...] = ()
    """Passages that need no indexing; their positions are updated."""
    drop: tuple[str, ...] = field(default=())
    """Ids of passages to remove."""


@dataclass(frozen=True, slots=True)
class NewQuestion:
    """A question as a platform submits it. Ids of places and people contain their platform: `slack:T1/C1`."""

    key: str
    """The idempotency key, made of the platform's own ids."""
    channel: str
    conversation: str
    user: str
    message: str
    """The id of the message that asks; empty for commands."""
    body: Mapping[str, Any]
    """All else that is needed to answer it, as JSON; its words stand under `text`."""
    handle: str = field(default="", repr=False)
    """A secret of the platform, such as an interaction's token; forgotten when the question is done."""


@dataclass(frozen=True, slots=True)
class QueuedQuestion:
    """A question in the queue; its first fields are those of `NewQuestion`."""

    ticket: int
    """Its number, higher than any before."""
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
    """How it ended; empty until then."""
    taken_at: datetime
    turn_id: str
    """The turn of the log that answers it; empty before there is one."""
    sending: bool
    """Whether a first post was begun, and so may exist although `posted` is empty."""
    posted: tuple[str, ...]
    """The ids of the messages that show its answer, in order."""
    owner: str
    """The process that runs it; empty for none."""
    lease_until: datetime | None
    """When its lease lapses, after which another process may take it over."""


@dataclass(frozen=True, slots=True)
class SpendingTotal:
    """What turns cost."""

    turns: int = 0
    tokens: int = 0
    """Of prompts and replies together."""
    cost: float = 0.0
    """In the currency of the settings' prices; unknown costs count as nothing."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of a run, in documents and passages."""

    state: RunState
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: int = 0
    """Documents that could not be read."""
    held_back: int = 0
    """Documents that the source no longer lists, too many to be removed without confirmation."""
    passages_added: int = 0
    passages_removed: int = 0
    fault: str = ""
    """One plain line that says what to do; empty where nothing went wrong."""
    edition: str = ""
    """People's name for the state of the source that was read."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to do what only one process may do at a time, and its owner."""

    name: str
    owner: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a source was read, and which source."""

    mark: str = ""
    """What the source is given as `since`; empty lists all."""
    of: str = ""
    """A digest of the source's settings: the mark of another source is void."""
    edition: str = ""
    """People's name for the state that was read last, such as the date of a dump."""


@dataclass(frozen=True, slots=True)
class DocumentRef:
    """The names of a document."""

    corpus: str
    key: str
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class NightRecord:
    """One night's refreshes."""

    due: datetime
    begun: datetime
    ended: datetime | None
    """None while it is running, or where its process died."""
    owner: str
    outcome: str
    """One word; empty until it has ended."""
    lines: tuple[str, ...]
    """Its report, a line a corpus."""


ID_LENGTH = 32
"""Hexadecimal digits kept: 128 bits, so that two of a billion passages meet by chance once in 10^20 times."""


def make_passage_id(corpus: str, key: str, section: str, text: str, ordinal: int) -> str:
    """Make a passage's id; `ordinal` counts from 0 the equal (section, text) of one document."""
    return _digest_parts(corpus, key, section, text, str(ordinal))


def hash_passage(title: str, section: str, text: str) -> str:
    """Hash what the indexes and a reader see of a passage."""
    return _digest_parts(title, section, text)


def _digest_parts(*parts: str) -> str:
    # A lone surrogate (from a file name that is not UTF-8) must not stop an ingest.
    joined = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:ID_LENGTH]
