"""What sources hand to a refresh (documents and pages), and what a refresh reports."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Protocol

from storage.types import PassageKind


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a list item, a table row or a stretch of code, as plain text on one or more lines."""

    text: str
    kind: PassageKind = PassageKind.PROSE


@dataclass(frozen=True, slots=True)
class Section:
    """The text under one heading. `path` is the headings above it, outermost first, without the page's title."""

    path: tuple[str, ...]
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One source text, read: its metadata, and its sections in order."""

    title: str
    sections: tuple[Section, ...]
    url: str = ""
    revision: str = ""
    date: datetime | None = None
    language: str = ""
    aliases: tuple[str, ...] = ()
    """Other titles under which its source knows it."""
    disambiguation: bool = False
    """Whether it only tells apart what shares its title."""


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A document that a source has, not yet read: a fingerprint that the manifest knows need never be loaded."""

    key: str
    fingerprint: str
    size: int
    """Bytes, for the progress bar."""
    load: Callable[[], Page]
    """Reads it. Blocks. Raises `UnreadableDocument`."""


def list_unchanged(key: str, fingerprint: str) -> ChangedDocument:
    """Return it with the fingerprint that is known, by which nobody loads it."""
    return ChangedDocument(key, fingerprint, 0, partial(_refuse_load, key))


def _refuse_load(key: str) -> Page:
    raise UnreadableDocument(f"{key} was known and so was not read: run the same command again")


class UnreadableDocument(Exception):
    """One document could not be read. `str()` is a plain reason; the others are not concerned."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document that a source has and cannot even open."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class DeletedDocument:
    """A document that a source says it has no longer."""

    key: str
    withheld: bool = False
    """Whether it is there still, and may no longer be shown: it is removed at once, however many others are."""


ListedItem = ChangedDocument | Unreadable | DeletedDocument


def _no_mark() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a source has to say: documents, and whether these are all."""

    items: Iterator[ListedItem]
    whole: bool = True
    """Whether every document is listed, so that what is known and not listed is gone. Where it is false only changes
    are listed, and gone is only what is said to be."""
    mark: Callable[[], str] = _no_mark
    """Returns what to hand in as `since` next time, asked once the items have come to their end. Empty: list all."""
    edition: str = ""
    """What people call this state of the source, such as the date of a dump or a commit; empty where it has no name."""

    def __iter__(self) -> Iterator[ListedItem]:
        """Go through the items."""
        return self.items


class SourceUnavailable(Exception):
    """A source cannot be reached, or does not let us in. `str()` is one plain line; `hint` says what to do."""

    kind = "source_unavailable"

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class SingleReadUnsupported(SourceUnavailable):
    """A source's documents cannot be had one by one."""


class DocumentSource(Protocol):
    """Where documents come from. Its methods block, and are called in one thread."""

    @property
    def reference(self) -> bool:
        """Whether it is a work of reference, such as an encyclopedia, and not the team's own."""
        ...

    def expected(self) -> int | None:
        """How many documents there will be, for the progress bar; None when that is only known at the end."""
        ...

    def documents(self, known: Mapping[str, str], since: str = "") -> Listing:
        """List what there is now, in a stable order, or what has changed.

        Args:
            known: The fingerprints by key of what was read before, which will not be loaded again if they are the same.
            since: The mark of the last listing that was worked through to its end; empty to have all listed. A source
                that makes no marks lists all.

        Raises:
            SourceUnavailable: Or an error of its own with `kind` and `hint`; also while the items are gone through.
        """
        ...


class LiveSource(DocumentSource, Protocol):
    """One of which a single document can be had."""

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Return the document that stands at an address, or has it as its key; None if it is none of this source's.

        Raises:
            ReadAsWhole: Documents cannot be had one by one.
            SourceUnavailable: Or an error of its own.
        """
        ...

    def stop(self) -> None:
        """End soon what blocks, from another thread: it may raise `SourceUnavailable` then."""
        ...


class RefreshRefused(Exception):
    """The refresh would do harm, or has nothing to do it with. `str()` is one line; `hint` says what to do."""

    kind = "refresh_refused"

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """What a refresh added, changed, removed and could not read: documents, then passages."""

    corpus: str
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    passages_added: int = 0
    passages_removed: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0
    held_back: int = 0
    """Documents that the source lists no more, and that were too many to be removed unasked."""
    fault: str = ""
    """What a person should know of it, with what to do, in one line; empty where nothing is amiss."""
    edition: str = ""
    """What people call the state of the source that was read."""
    forgotten: int = 0
    """Documents that were forgotten on purpose, and were left out."""

    @property
    def failed(self) -> int:
        """How many documents could not be read."""
        return len(self.failures)


@dataclass(frozen=True, slots=True)
class RefreshProgress:
    """How far a refresh has come. `total` is None where the source cannot know before it has been read."""

    done: int
    total: int | None
    passages: int
    seconds: float
    doing: str = ""
    """What the source does that takes a while, in a few words: "downloads enwiki-….bz2, 3.1 of 21.0 GB"."""
