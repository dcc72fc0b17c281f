"""What sources hand to a refresh: documents found, and pages read."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from storage.types import Kind


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a list item, a table row or a stretch of code, as plain text on one or more lines."""

    text: str
    kind: Kind = Kind.PROSE


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


class UnreadableDocument(Exception):
    """One document could not be read. `str()` is a plain reason; the others are not concerned."""


@dataclass(frozen=True, slots=True)
class Found:
    """A document that a source has, not yet read: a fingerprint that the manifest knows need never be loaded."""

    key: str
    fingerprint: str
    size: int
    """Bytes, for the progress bar."""
    load: Callable[[], Page]
    """Reads it. Blocks. Raises `UnreadableDocument`."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document that a source has and cannot even open."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Gone:
    """A document that a source says it has no longer."""

    key: str
    withheld: bool = False
    """Whether it is there still, and may no longer be shown: it is removed at once, however many others are."""


Item = Found | Unreadable | Gone


def _no_mark() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a source has to say: documents, and whether these are all."""

    items: Iterator[Item]
    whole: bool = True
    """Whether every document is listed, so that what is known and not listed is gone. Where it is false only changes
    are listed, and gone is only what is said to be."""
    mark: Callable[[], str] = _no_mark
    """Returns what to hand in as `since` next time, asked once the items have come to their end. Empty: list all."""
    edition: str = ""
    """What people call this state of the source, such as the date of a dump or a commit; empty where it has no name."""

    def __iter__(self) -> Iterator[Item]:
        """Go through the items."""
        return self.items


class SourceUnavailable(Exception):
    """A source cannot be reached, or does not let us in. `str()` is one plain line; `hint` says what to do."""

    kind = "source_unavailable"

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class ReadAsWhole(SourceUnavailable):
    """A source's documents cannot be had one by one."""


class Source(Protocol):
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


class LiveSource(Source, Protocol):
    """One of which a single document can be had."""

    def one(self, address: str, known: Mapping[str, str]) -> Item | None:
        """Return the document that stands at an address, or has it as its key; None if it is none of this source's.

        Raises:
            ReadAsWhole: Documents cannot be had one by one.
            SourceUnavailable: Or an error of its own.
        """
        ...

    def stop(self) -> None:
        """End soon what blocks, from another thread: it may raise `SourceUnavailable` then."""
        ...
