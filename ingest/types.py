"""Documents and pages, as sources pass them to a refresh, and the report of a refresh."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Literal, Protocol, TypeVar

from storage.database.document_versions import PackedDocument
from storage.types import PassageKind

Site = Literal["", "jekyll", "hugo", "mkdocs", "docusaurus"]
"""The site generator that publishes the files; empty if they are published under their path."""
EMPTY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, list, table row or piece of code, as plain text of one or more lines."""

    text: str
    kind: PassageKind = PassageKind.PROSE


@dataclass(frozen=True, slots=True)
class Section:
    """The text under one heading. `path` are the headings that it is under, highest first, without the page's title."""

    path: tuple[str, ...]
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A document after it is read: its metadata, and its sections in order."""

    title: str
    sections: tuple[Section, ...]
    url: str = ""
    revision: str = ""
    date: datetime | None = None
    language: str = ""
    aliases: tuple[str, ...] = ()  # its other titles in its source
    disambiguation: bool = False  # whether it is a disambiguation page


@dataclass(frozen=True, slots=True)
class ReadTask:
    """A function that makes a page from bytes that are already fetched. It can be pickled for another process."""

    work: Callable[[], Page]
    harmless: bool = False  # whether it needs no sandbox
    slow: bool = False  # whether it may include text recognition


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A document of a source that is not read yet. It is loaded only if the manifest does not have its fingerprint."""

    key: str
    fingerprint: str
    size: int  # bytes, for the progress bar
    load: Callable[[], Page]  # reads it. Blocks. Raises `UnreadableDocument`
    packed: PackedDocument | None = None  # replaces `load`, if its source was asked to pack
    fetch: Callable[[], ReadTask] | None = None
    """Fetch its bytes, for another process to read; None if only `load` can. Blocks; raises like `load`."""


def list_unchanged(key: str, fingerprint: str) -> ChangedDocument:
    """List a document with its known fingerprint, so that it is never loaded."""
    return ChangedDocument(key, fingerprint, 0, partial(refuse_load, key))


def refuse_load(key: str) -> Page:
    raise UnreadableDocument(f"{key} is already known or packed, so it is not read: run the same command again")


class UnreadableDocument(Exception):
    """One document cannot be read; other documents are not affected. `str()` is a reason for users."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document that a source lists but cannot open."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or folder that is skipped by the rules of its source."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class DeletedDocument:
    """A document that a source no longer has."""

    key: str
    withheld: bool = False
    """Whether it still exists but may no longer be shown; then it is removed at once, however many others are."""


ListedItem = ChangedDocument | Unreadable | DeletedDocument


@dataclass(frozen=True, slots=True)
class Listing:
    """All documents of a source, or only those that changed."""

    items: Iterator[ListedItem]
    whole: bool = True
    """Whether all documents are listed, so that a missing one was deleted; else only changes and deletions are."""
    mark: Callable[[], str] = str
    """Return the `since` of the next listing, once all items were taken; empty to list all."""
    edition: str = ""  # readable name of this state of the source, such as a dump's date or a commit

    def __iter__(self) -> Iterator[ListedItem]:
        return self.items


class SourceUnavailable(Exception):
    """A source cannot be reached, or refuses access. `str()` is one plain line; `hint` says what to do."""

    kind = "source_unavailable"

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


STOPPED_HINT = "Run the same command again to continue."


class ReadingStopped(SourceUnavailable):
    """Reading was interrupted by `stop`."""

    def __init__(self, source: str = "") -> None:
        super().__init__(f"Reading {source} was stopped." if source else "Reading was stopped.", hint=STOPPED_HINT)


def describe_os_error(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


class SingleReadUnsupported(SourceUnavailable):
    """The documents of this source cannot be read one by one."""


S = TypeVar("S")
R = TypeVar("R")


EngineName = Literal["local", "ray"]


class Engine(Protocol):
    """Worker processes, possibly on other machines. They have this code, but none of this machine's files."""

    @property
    def doing(self) -> str:
        """Return in a few words what the engine does besides `map`'s work, such as starting; empty if nothing."""
        ...

    def check(self) -> None:
        """Raise an error with `kind` and `hint` if the engine cannot be used. This starts nothing."""
        ...

    def map(self, work: Callable[[S], R], items: Iterable[S | list[R]]) -> Iterator[R]:
        """Yield the results of `work`, a function of a module, in the order of the items, slightly ahead of the caller.

        An item that is a list contains finished results. Raises the errors of `work`, and an error with `kind` and
        `hint` if a process fails.
        """
        ...

    def stop(self) -> None:
        """Interrupt running work. Called from another thread."""
        ...


class DocumentSource(Protocol):
    """A source of documents. Its methods block, and are all called in one thread.

    A source may also have a method `pack_for(corpus)`: then its own processes can pack the documents that it lists.
    """

    @property
    def reference(self) -> bool:
        """Return whether this is a work of reference, such as an encyclopedia, and not the team's own documents."""
        ...

    def expected(self) -> int | None:
        """Return how many documents the source will list, for the progress bar; None if unknown."""
        ...

    def documents(self, known: Mapping[str, str], since: str = "") -> Listing:
        """List all documents in a stable order, or only those that changed.

        Args:
            known: Fingerprints of the documents that were read before, by key.
            since: The mark of the last complete listing; empty to list everything.

        Raises:
            SourceUnavailable: The source cannot be read. Subclasses may be raised, too, and also during iteration.
        """
        ...


class LiveSource(DocumentSource, Protocol):
    """A source that can read a single document."""

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Return the current document with this address or key; None if the source does not have it.

        Raises:
            SingleReadUnsupported: Documents of this source cannot be read one by one.
            SourceUnavailable: The source cannot be read.
        """
        ...

    def stop(self) -> None:
        """Interrupt a call that blocks, which may then raise `SourceUnavailable`. Called from another thread."""
        ...


class RefreshRefused(Exception):
    """A refresh cannot start, or would do harm. `str()` is one line; `hint` says what to do."""

    kind = "refresh_refused"

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """The result of a refresh, counted in documents and passages."""

    corpus: str
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    passages_added: int = 0
    passages_removed: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0
    held_back: int = 0  # documents missing from the source, too many to remove without confirmation
    fault: str = ""  # one line for the admin: problem and remedy; empty if none
    edition: str = ""  # readable name of the state of the source
    forgotten: int = 0  # documents that were forgotten on purpose, and skipped
    left_out: tuple[tuple[str, int], ...] = ()  # number of files and folders that are not documents, by reason

    @property
    def failed(self) -> int:
        return len(self.failures)


@dataclass(frozen=True, slots=True)
class RefreshProgress:
    """The progress of a refresh. `total` is None if it is unknown until the end."""

    done: int
    total: int | None
    passages: int
    seconds: float
    doing: str = ""  # what else the source is doing: "downloads enwiki-….bz2, 3.1 of 21.0 GB"
