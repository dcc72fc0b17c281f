"""What sources hand to a refresh (documents and pages), and what a refresh reports."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Literal, Protocol, TypeVar

from storage.types import PackedDocument, PassageKind

Site = Literal["", "jekyll", "hugo", "mkdocs", "docusaurus"]
"""The generator of the site that files are published on; empty: they are published by their path."""
EMPTY: Mapping[str, str] = MappingProxyType({})


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
    """A document that was read: its metadata, and its sections in order."""

    title: str
    sections: tuple[Section, ...]
    url: str = ""
    revision: str = ""
    date: datetime | None = None
    language: str = ""
    aliases: tuple[str, ...] = ()  # other titles under which its source knows it
    disambiguation: bool = False  # whether it is a disambiguation page


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Make a page of bytes that are here already: in any process, as it can be pickled."""

    work: Callable[[], Page]
    harmless: bool = False  # whether it need not be done in a sandbox
    slow: bool = False  # whether it may take as long as text recognition does


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A document of a source, not yet read; it is loaded only if its fingerprint is new to the manifest."""

    key: str
    fingerprint: str
    size: int  # bytes, for the progress bar
    load: Callable[[], Page]  # reads it. Blocks. Raises `UnreadableDocument`
    packed: PackedDocument | None = None  # in place of what it would load, where its source was asked to pack
    fetch: Callable[[], ReadTask] | None = None
    """Fetches its bytes, so that another process can read them; None where only `load` can. Blocks, raises as it."""


def list_unchanged(key: str, fingerprint: str) -> ChangedDocument:
    """List a document with its known fingerprint, so that it is not loaded."""
    return ChangedDocument(key, fingerprint, 0, partial(refuse_load, key))


def refuse_load(key: str) -> Page:
    raise UnreadableDocument(f"{key} was known, or packed already, and so is not read: run the same command again")


class UnreadableDocument(Exception):
    """One document could not be read. `str()` is a plain reason; others are not affected."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document that a source has and cannot open."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or folder of a source that its rules leave out."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class DeletedDocument:
    """A document that a source no longer has."""

    key: str
    withheld: bool = False
    """Whether it still exists and may no longer be shown: it is removed at once, however many others are."""


ListedItem = ChangedDocument | Unreadable | DeletedDocument


def _no_mark() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Listing:
    """The documents of a source, or those that changed."""

    items: Iterator[ListedItem]
    whole: bool = True
    """Whether all documents are listed, so that a missing one is gone; else only changes and deletions are."""
    mark: Callable[[], str] = _no_mark
    """Return what to pass as `since` next time, once all items were taken. Empty: list all."""
    edition: str = ""  # people's name for this state of the source, such as the date of a dump or a commit

    def __iter__(self) -> Iterator[ListedItem]:
        return self.items


class SourceUnavailable(Exception):
    """A source cannot be reached, or refuses us. `str()` is one plain line; `hint` says what to do."""

    kind = "source_unavailable"

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class SingleReadUnsupported(SourceUnavailable):
    """A source's documents cannot be read one by one."""


S = TypeVar("S")
R = TypeVar("R")


EngineName = Literal["local", "ray"]


class Engine(Protocol):
    """Processes, perhaps of other machines: they have this code, and none of this machine's files."""

    @property
    def doing(self) -> str:
        """Return what keeps it busy besides the work, in a few words."""
        ...

    def check(self) -> None:
        """Raise an error with `kind` and `hint` where it cannot be used at all; starts nothing."""
        ...

    def map(self, work: Callable[[S], R], items: Iterable[S | list[R]]) -> Iterator[R]:
        """Yield the results of `work`, a function of a module, in the items' order; items are taken a little ahead.

        What stands in a list among the items is a result already. Raises what `work` raises, and an error with `kind`
        and `hint` where the processes fail.
        """
        ...

    def stop(self) -> None:
        """Interrupt what is under way, from another thread."""
        ...


class DocumentSource(Protocol):
    """Where documents come from. Its methods block, and are called in one thread."""

    @property
    def reference(self) -> bool:
        """Return whether it is a work of reference, such as an encyclopedia, and not the team's own."""
        ...

    def expected(self) -> int | None:
        """Return how many documents there will be, for the progress bar; None when that is only known at the end."""
        ...

    def documents(self, known: Mapping[str, str], since: str = "") -> Listing:
        """List all documents in a stable order, or those that changed.

        Args:
            known: Fingerprints by key of what was read before.
            since: The mark of the last complete listing; empty to list all.

        Raises:
            SourceUnavailable: Or an error of its own with `kind` and `hint`; also while the items are taken.
        """
        ...


class LiveSource(DocumentSource, Protocol):
    """A source that can read a single document."""

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Return the document at an address, or with that key; None if it is none of this source's.

        Raises:
            SingleReadUnsupported: Documents cannot be read one by one.
            SourceUnavailable: Or an error of its own.
        """
        ...

    def stop(self) -> None:
        """Interrupt a blocking call, from another thread: it may raise `SourceUnavailable`."""
        ...


class PackingSource(DocumentSource, Protocol):
    """A source that can pack its documents while it reads them, in processes of its own."""

    def pack_for(self, corpus: str) -> None:
        """Pack what is listed from now on as documents of this corpus."""
        ...


class RefreshRefused(Exception):
    """A refresh would do harm, or cannot start. `str()` is one line; `hint` says what to do."""

    kind = "refresh_refused"

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """The result of a refresh, in documents and passages."""

    corpus: str
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    passages_added: int = 0
    passages_removed: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0
    held_back: int = 0  # documents that the source no longer lists, too many to be removed without confirmation
    fault: str = ""  # what a person should know and do, in one line; empty where nothing is wrong
    edition: str = ""  # people's name for the state of the source that was read
    forgotten: int = 0  # documents that were forgotten on purpose, and left out
    left_out: tuple[tuple[str, int], ...] = ()  # how many files and folders are no documents, by what they are

    @property
    def failed(self) -> int:
        return len(self.failures)


@dataclass(frozen=True, slots=True)
class RefreshProgress:
    """The progress of a refresh. `total` is None where the source cannot know it before it has been read."""

    done: int
    total: int | None
    passages: int
    seconds: float
    doing: str = ""  # what keeps the source busy, in a few words: "downloads enwiki-….bz2, 3.1 of 21.0 GB"
