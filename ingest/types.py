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


class Source(Protocol):
    """Where documents come from."""

    @property
    def reference(self) -> bool:
        """Whether it is a work of reference, such as an encyclopedia, and not the team's own."""
        ...

    def documents(self, known: Mapping[str, str]) -> Iterator[Found | Unreadable]:
        """Every document there is now, in a stable order. Blocks. What is not listed is gone.

        `known` are the fingerprints by key that will not be loaded, for a source that works ahead of being asked.
        """
        ...

    def expected(self) -> int | None:
        """How many documents there will be, for the progress bar; None when that is only known at the end. Blocks."""
        ...
