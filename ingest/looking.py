"""Reads on in a source's listing, a batch at a time, and loads only what has changed. It blocks.

Whatever a source lists or a document holds, a batch stays small: documents and texts beyond the limits are failures.
"""

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from ingest import cleaning
from ingest.types import Found, Gone, Item, Listing, Page, Unreadable, UnreadableDocument

BATCH_DOCUMENTS = 256
BATCH_CHARACTERS = 300_000
"""After so many a batch is written, about 512 passages; a crash repeats at most so much work."""
LARGEST = 512 << 20
"""Bytes of a document that is loaded at all."""
LONGEST = 10_000_000
"""Characters of a document's text, about 15,000 passages."""

TWICE = "stands in its source more than once: the first was taken"

_Made = TypeVar("_Made")


@dataclass
class Batch:
    """What one look into the source brought."""

    read: list[tuple[Found, Page]] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    unchanged: int = 0
    looked_at: int = 0
    """How many documents these are, and those that are gone or unwanted."""
    characters: int = 0

    @property
    def full(self) -> bool:
        """Whether it is time to write what was read."""
        return self.looked_at >= BATCH_DOCUMENTS or self.characters >= BATCH_CHARACTERS


class Looking:
    """One way through a listing. All but `stop` is called in one thread; `seen` and `gone` are complete at the end."""

    def __init__(self, listing: Listing, known: Mapping[str, str], *, unwanted: Collection[str] = ()) -> None:
        """`known` are fingerprints by key; of what is `unwanted`, nothing is loaded."""
        self.listing = listing
        self.seen: set[str] = set()
        """The keys of all that the source has, readable or not."""
        self.gone: set[str] = set()
        """The keys of what it says it has no longer."""
        self.withheld: set[str] = set()
        """Those of them that it says may no longer be shown."""
        self._items = iter(listing.items)
        self._known = known
        self._unwanted = unwanted
        self._later: dict[str, str] = {}
        """Where only changes are listed: fingerprints that were read in the course of this."""
        self._next: Item | None = None
        self._error: Exception | None = None
        self._stopped = threading.Event()

    def batch(self) -> Batch | None:
        """Read on until there is a batch; None at the end.

        What the source raises on the way is raised by the next call, so that what was read before is kept.
        """
        batch = Batch()
        keys: set[str] = set()
        while not batch.full and (item := self._item(batch)) is not None:
            if item.key in keys and not self.listing.whole:
                self._next = item  # what happened to a document later is done later
                break
            keys.add(item.key)
            batch.looked_at += 1
            self._take(item, batch)
        return batch if keys else None

    def stop(self) -> None:
        """End the batch that is being read with the document that is being loaded; from any thread."""
        self._stopped.set()

    def close(self) -> None:
        """Let go what the listing has open."""
        close = getattr(self._items, "close", None)
        if close is not None:
            close()

    def _item(self, batch: Batch) -> Item | None:
        if self._stopped.is_set():
            return None
        if self._next is not None:
            item, self._next = self._next, None
            return item
        if self._error is not None:
            raise self._error
        try:
            return next(self._items, None)
        except Exception as error:
            if not batch.looked_at:
                raise
            self._error = error
            return None

    def _take(self, item: Item, batch: Batch) -> None:
        if isinstance(item, Gone):
            self.seen.discard(item.key)
            self.gone.add(item.key)
            if item.withheld:
                self.withheld.add(item.key)
            return
        again = item.key in self.seen and self.listing.whole
        self.seen.add(item.key)
        self.gone.discard(item.key)
        self.withheld.discard(item.key)
        if item.key in self._unwanted:
            return
        if again:
            batch.failures.append((item.key, TWICE))
        elif isinstance(item, Unreadable):
            batch.failures.append((item.key, cleaning.text(item.reason)))
        elif self._later.get(item.key, self._known.get(item.key)) == item.fingerprint:
            batch.unchanged += 1
        else:
            self._load(item, batch)

    def _load(self, item: Found, batch: Batch) -> None:
        try:
            page = alone(partial(_page, item))
        except UnreadableDocument as error:
            batch.failures.append((item.key, cleaning.text(str(error))))
            return
        if not self.listing.whole:
            self._later[item.key] = item.fingerprint
        batch.read.append((item, page))
        batch.characters += _length(page)


def alone(work: Callable[[], _Made]) -> _Made:
    """Do the work of one document: whatever goes wrong over it must not stop the others.

    Raises:
        UnreadableDocument: Whatever it was, but for what concerns the whole process.
    """
    try:
        return work()
    except (UnreadableDocument, MemoryError):
        raise
    except Exception as error:  # The libraries below may raise anything over an odd file
        raise UnreadableDocument(cleaning.reason(error)) from error


def _page(found: Found) -> Page:
    if found.size > LARGEST:
        raise UnreadableDocument(f"is larger than {LARGEST >> 20} MB")
    return cleaning.cleaned(not_too_long(found.load()))


def not_too_long(page: Page) -> Page:
    """Return the page. Raises `UnreadableDocument` if it says more than is taken in of a document."""
    if _length(page) > LONGEST:
        raise UnreadableDocument(f"holds more than {LONGEST:,} characters of text: split it into several documents")
    return page


def _length(page: Page) -> int:
    return sum(len(block.text) for section in page.sections for block in section.blocks)
