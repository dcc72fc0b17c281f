"""The values that are stored, found, cited and logged, and the ids of passages.

All of them are frozen and have no behaviour. Values of a running turn (conversations, drafts, answers) are in
`pipeline.types`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

Span = tuple[int, int]  # start and end of a part of a text, in characters; the end is exclusive


class PassageKind(StrEnum):
    """The kind of a passage in its document. Prose is quoted by sentences, a table only by rows."""

    PROSE = "prose"
    TABLE = "table"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Document:
    """A source text in the manifest, identified by `(corpus, key)`; its passages have the text."""

    corpus: str
    key: str  # its name within its source, which edits do not change: a relative path, a page id
    title: str
    url: str = ""  # where a person can read it; empty if it has no address
    revision: str = ""
    date: datetime | None = None  # when its text was last changed, with a time zone; None if unknown
    language: str = ""  # ISO 639-1, empty when unknown
    fingerprint: str = ""
    """A hash of the source's bytes and of the code that reads them; while it is the same, it is not read again."""
    aliases: tuple[str, ...] = ()  # its other titles in the source; its first passage is found by them
    disambiguation: bool = False  # whether it only distinguishes pages that share its title


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of one document that can be searched, quoted and cited."""

    id: str
    corpus: str
    document: str  # the document's key
    section: str  # the path of headings above the text, joined by ` › `; empty above the first heading
    text: str
    position: int  # its place among its document's passages, counted from 0
    hash: str  # of title, section and text: everything that is indexed
    kind: PassageKind = PassageKind.PROSE


WEB_PREFIX = "web:"  # the name of a search engine's corpus is this prefix and the engine's name


def is_web_corpus(name: str) -> bool:
    """Return whether a corpus consists of a search engine's pages, which are stored only in the record of turns."""
    return name.startswith(WEB_PREFIX)


DocumentId = tuple[str, str]
"""A document by its corpus and key; an empty key means an unknown document of the corpus."""


QueryTime = Literal["recent"] | int | None


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A search text, and the time that the question is about. Storage ignores the time; re-ranking uses it."""

    text: str
    time: QueryTime = None
    unchecked: bool = False  # whether its text is an unchecked claim, which is not shown


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found, joined with its document."""

    passage: Passage
    document: Document
    score: float  # the fused score, comparable within one search only; higher is better
    dense: float = 0.0  # cosine between query and passage, up to about 1; of each embedder on the same scale
    lexical: float = 0.0  # BM25, 0 and up; 0 when the passage shares no term with the query
    trust: float = 0.0  # how well the embedder of its corpus knows the query's language, 0 to 1


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sentence, and the passage and span from which it was taken."""

    text: str
    passage: Passage
    document: Document
    span: Span


class Verdict(StrEnum):
    """The verdict on a claim, according to the evidence."""

    SUPPORTS = "SUPPORTS"
    REFUTES = "REFUTES"
    NOT_ENOUGH_INFO = "NOT ENOUGH INFO"


@dataclass(frozen=True, slots=True)
class Claim:
    """A self-contained statement that is true or false."""

    text: str
    origin: Literal["model", "retrieved", "user"]


@dataclass(frozen=True, slots=True)
class VerdictReason:
    """A reason for a verdict by rules, in a form that can be put into any language."""

    kind: str  # `verbatim`, `contradicted` and so on
    facts: tuple[str, ...] = ()  # the quotations that the kind names, in its order


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim with its verdict, evidence and reasons."""

    claim: Claim
    verdict: Verdict
    evidence: tuple[str, ...] = ()  # ids of the passages behind the verdict; empty if too little is known
    reasoning: str = ""
    looked_at: tuple[str, ...] = ()  # ids of other passages that the claim was compared with, nearest first
    because: tuple[VerdictReason, ...] = ()  # the same as `reasoning`, if rules decided; empty if a model did


@dataclass(frozen=True, slots=True)
class Citation:
    """A footnote: a stored passage as it was when it was cited. No part of it is written by a model."""

    number: int
    corpus: str
    document: str
    title: str
    section: str
    url: str
    revision: str
    date: datetime | None
    quote: str  # the supporting sentences of the passage, verbatim
    passage_id: str
    passage_text: str
    passage_hash: str


@dataclass(frozen=True, slots=True)
class Step:
    """One search or model call of a turn."""

    stage: str
    facts: Mapping[str, Any]
    milliseconds: float
    began: float = field(default=0.0, compare=False)  # milliseconds after the start of its turn


class EntryKind(StrEnum):
    """The kinds of entries of the audit log."""

    TURN_OPENED = "turn_opened"
    STEP = "step"
    TURN_CLOSED = "turn_closed"
    DELIVERED = "delivered"  # the posted text and its place, or why nothing was posted
    EDITED = "edited"  # a post was changed or retracted, with actor and reason
    FEEDBACK = "feedback"  # a user rated an answer, asked a person, or shared it
    RECHECK = "recheck"  # pages that an answer cites have changed: sentences that no longer hold, and who was notified
    SETTING = "setting"  # a command changed a channel's settings; the turn's id is the channel's
    READ = "read"  # a user read an answer on the pages; of lists of answers, under the turn's id `RECORD`
    # Of the record itself, under the turn's id `RECORD`:
    TREE_BEGUN = "tree_begun"  # entries that are older than the record's tree entered it
    SIGNING_KEY = "signing_key"  # checkpoints are signed by another key from here on
    ERASURE = "erasure"  # the words of entries were erased, with their numbers, actor and reason
    HOLD = "hold"  # entries must not be erased, or may be again
    RESTORED = "restored"  # the database was restored from a backup
    # Never written: an entry of unknown kind is read as this.
    UNREADABLE = "unreadable"


RECORD = "record"
"""The turn's id of entries about the record itself."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of the audit log. Its `seq` and `at` are set when it is appended."""

    turn_id: str
    kind: EntryKind
    body: Mapping[str, Any]
    seq: int = 0
    at: datetime | None = None
    erased: bool = False  # whether the body was erased and is therefore empty
    damaged: str = ""  # names its unreadable parts; the others are readable


@dataclass(frozen=True, slots=True)
class ApprovedExample:
    """An answer that an admin approved as a worked example for the model."""

    turn_id: str
    by: str  # who approved it, such as `slack:T1/U1`; `terminal` for the machine's owner
    body: Mapping[str, Any]  # its content as shown, as JSON
    at: datetime | None = None  # set when it is stored
    pinned: bool = False  # whether it is shown before all others for every question


KEPT_VECTORS = 100_000  # vectors of lazy corpora, about 3 kB each


class DenseMode(StrEnum):
    """How much of a corpus is embedded."""

    EAGER = "eager"  # all of it, when it is read
    LAZY = "lazy"  # passages that questions find by words
    OFF = "off"  # nothing: passages are found by words alone


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus without counts: what every turn needs to know."""

    name: str
    refreshed: datetime | None  # when a refresh was last completed; None if never
    reference: bool  # whether it is a work of reference, such as an encyclopedia
    generation: int = 0  # incremented by every change of its documents
    dense: DenseMode = DenseMode.EAGER


class RunState(StrEnum):
    """The state of a refresh run."""

    RUNNING = "running"
    DONE = "done"  # completed; single documents may have failed or been held back
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"  # its process died; the next run continues after its applied changes


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of a refresh run, counted in documents and passages."""

    state: RunState
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: int = 0  # documents that could not be read
    held_back: int = 0  # documents missing from the source, too many to remove without confirmation
    passages_added: int = 0
    passages_removed: int = 0
    fault: str = ""  # one line that says what to do; empty if there was no fault
    edition: str = ""  # the readable name of the source's version


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRun(RunOutcome):
    """One refresh of one corpus, running or ended."""

    id: int
    corpus: str
    begun: datetime
    seen: datetime  # its last sign of life
    ended: datetime | None  # None while it runs; the last sign of life of a lost run
    done: int  # documents handled so far
    total: int | None  # documents in all; None if unknown
    passages: int  # passages added so far
    doing: str  # what its source is doing, such as a download; empty while it only reads
    owner: str  # the process that runs it
    night: datetime | None  # the due time of its nightly refresh; None if started by hand


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """The size and state of one corpus."""

    name: str
    documents: int
    passages: int
    refreshed: datetime | None  # when a refresh was last completed; None if never
    failures: int = 0  # documents that the last refresh could not read
    edition: str = ""  # the readable name of its source's last version, such as the date of a dump
    last_run: RefreshRun | None = None  # the newest refresh, ended or not
    forgotten: int = 0  # forgotten documents, which refreshes skip
    dense: DenseMode = DenseMode.EAGER


@dataclass(frozen=True, slots=True)
class NewQuestion:
    """A question as a platform submits it. Ids of places and people begin with the platform: `slack:T1/C1`."""

    key: str  # the idempotency key, made from the platform's ids
    channel: str
    conversation: str
    user: str
    message: str  # the id of the message that asks; empty for commands
    body: Mapping[str, Any]  # everything else needed to answer it, as JSON; its text is under `text`
    handle: str = field(default="", repr=False)
    """A secret of the platform, such as an interaction's token; forgotten when the question is done."""
    sending: bool = False  # whether its answer may be posted already


@dataclass(frozen=True, slots=True)
class QueuedQuestion:
    """A question in the queue: the fields of `NewQuestion`, and its progress."""

    ticket: int  # its number, higher than any before
    key: str
    channel: str
    conversation: str
    user: str
    message: str
    body: Mapping[str, Any]
    handle: str = field(repr=False)
    state: str  # `waiting`, `running` or `done`
    outcome: str  # how it ended; empty before
    taken_at: datetime
    turn_id: str  # the turn that answers it; empty before it is known
    sending: bool  # whether a first post was begun, which may exist although `posted` is empty
    posted: tuple[str, ...]  # the ids of the messages that show its answer, in order
    owner: str  # the process that runs it; empty if none does
    lease_until: datetime | None  # when its lease lapses and another process may take over


@dataclass(frozen=True, slots=True)
class SpendingTotal:
    """The summed cost of some turns."""

    turns: int = 0
    tokens: int = 0  # of prompts and replies together
    cost: float = 0.0  # in the currency of the settings' prices; unknown costs count as 0


@dataclass(frozen=True, slots=True)
class Lease:
    """The exclusive right to do something, and its owner."""

    name: str
    owner: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a source was read, and the settings of that source."""

    mark: str = ""  # passed to the source as `since`; empty lists everything
    digest: str = ""  # hash of the source's settings: the mark of another source is void
    edition: str = ""  # the readable name of the last version that was read, such as the date of a dump


@dataclass(frozen=True, slots=True)
class DocumentRef:
    """The names of a document: corpus, key, title and address."""

    corpus: str
    key: str
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class NightRecord:
    """One nightly refresh."""

    due: datetime
    begun: datetime
    ended: datetime | None  # None while it runs, or if its process died
    owner: str
    outcome: str  # one word; empty until it has ended
    lines: tuple[str, ...]  # its report, one line per corpus


ID_LENGTH = 32
"""Hexadecimal digits of an id: 128 bits, so that two of a billion passages collide with a chance of 10^-20."""


def make_passage_id(corpus: str, key: str, section: str, text: str, ordinal: int) -> str:
    """Return a passage's id. `ordinal` is how many earlier passages of the document have the same section and text."""
    return _digest_parts(corpus, key, section, text, str(ordinal))


def hash_passage(title: str, section: str, text: str) -> str:
    """Hash the title, section and text of a passage."""
    return _digest_parts(title, section, text)


def _digest_parts(*parts: str) -> str:
    # A lone surrogate (from a file name that is not UTF-8) must not stop an ingest.
    joined = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:ID_LENGTH]
