"""The nouns of refreshing: runs, nights, the mark that a source left. Frozen values, as those in `storage.types`."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


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
class Run:
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
class Lease:
    """What only one process may do at a time, and the one that does it."""

    name: str
    owner: str


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a source was worked through, and which source that was."""

    mark: str = ""
    """What the source wants to hear as `since`; empty: nothing."""
    of: str = ""
    """A digest of the source's settings: the mark of another source means nothing."""
    edition: str = ""
    """What people call the state that was read last, such as the date of a dump."""


@dataclass(frozen=True, slots=True)
class Listed:
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
