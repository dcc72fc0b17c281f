"""The values by which documents are read from and written to the database: versions and changes."""

from dataclasses import dataclass
from datetime import datetime

from storage.types import Document, Passage


@dataclass(frozen=True, slots=True)
class DocumentOutline:
    """A document without its text."""

    number: int
    key: str
    title: str
    revision: str
    date: datetime | None
    aliases: int
    passages: int
    disambiguation: bool


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version of a document, with its passages in order."""

    number: int  # of the change that made this version, higher than any before
    document: Document
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class PackedDocument:
    """A document ready to be stored, as made by worker processes."""

    document: Document
    passages: int  # the number of its passages
    body: bytes  # see `storage.database.bodies`
    terms: tuple[str, ...]  # the index terms of each passage, joined by spaces


@dataclass(frozen=True, slots=True)
class PassageRef:
    """A passage by its document and its id."""

    corpus: str
    document: str
    id: str


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A change of one document: its new version, or its removal if `document` is None."""

    corpus: str
    key: str
    document: Document | None
    passages: tuple[Passage, ...] = ()  # all of the new version, in order
    add: tuple[Passage, ...] = ()  # those that are new, or have a new title or section under the same id
    drop: tuple[str, ...] = ()  # ids of passages that it no longer has
    over: int | None = None  # the number of the version that it replaces, 0 for none; None for any


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A change of one document: a new version with its packed passages, or its removal if `document` is None."""

    corpus: str
    key: str
    document: Document | None
    passages: int = 0
    body: bytes = b""
    over: int | None = None  # as in `DocumentChange`
