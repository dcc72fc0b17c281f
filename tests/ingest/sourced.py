"""Scripted sources: listings of all documents or of changes, which may fail, repeat and wait."""

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ingest.types import (
    Block,
    ChangedDocument,
    DeletedDocument,
    ListedItem,
    Listing,
    Page,
    Section,
    SingleReadUnsupported,
    SourceUnavailable,
    UnreadableDocument,
)


def found(key: str, text: str = "", *, fingerprint: str = "", size: int = 1) -> ChangedDocument:
    """Make a changed document with one passage; without text, an unreadable one."""

    def load() -> Page:
        if not text:
            raise UnreadableDocument("the test wants it so")
        return Page(key, (Section((), (Block(text),)),), url=f"https://x.example/{key}")

    return ChangedDocument(key, fingerprint or hashlib.sha256(text.encode()).hexdigest(), size, load)


def pages(*keys: str, said: str = "says") -> list[ListedItem]:
    """Make a document for each key."""
    return [found(key, f"Page {key} {said} {key}.") for key in keys]


DOWN = SourceUnavailable("The wiki does not answer.", hint="Look whether it runs.")


@dataclass
class Scripted:
    """Lists the scripted items; an exception among them is raised, a function called, when its turn comes."""

    items: Sequence[ListedItem | Exception | Callable[[], None]]
    whole: bool = True
    marked: str = ""
    edition: str = ""
    singly: Mapping[str, ListedItem] = field(default_factory=dict)
    asked: list[tuple[Mapping[str, str], str]] = field(default_factory=list)
    """What `documents` was called with."""
    asked_one: list[str] = field(default_factory=list)
    alone: bool = True
    """Whether documents can be read one by one."""
    stopped: threading.Event = field(default_factory=threading.Event)
    reference = False

    def expected(self) -> int | None:
        """Return None: unknown."""
        return None

    def documents(self, known: Mapping[str, str], since: str = "") -> Listing:
        """List the scripted items."""
        self.asked.append((dict(known), since))
        return Listing(self._played(), self.whole, lambda: self.marked, self.edition)

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Return the scripted item with the address as its key."""
        del known
        self.asked_one.append(address)
        if not self.alone:
            raise SingleReadUnsupported(f"{address} cannot be read alone.", hint="Read all.")
        return self.singly.get(address)

    def stop(self) -> None:
        """Note the call."""
        self.stopped.set()

    def _played(self) -> Iterator[ListedItem]:
        for item in self.items:
            if isinstance(item, Exception):
                raise item
            if isinstance(item, (ChangedDocument, DeletedDocument)) or not callable(item):
                yield item
            else:
                item()
