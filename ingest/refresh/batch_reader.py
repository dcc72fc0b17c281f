"""Read a source's listing batch by batch in a separate thread, which is one batch ahead of the caller.

Only changed documents are loaded. Batches stay small whatever the source: a document or text above the limits counts as
unreadable.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec, TypeVar

from ingest.page_cleanup import clean_text, isolate_errors, load_page, measure_length
from ingest.refresh.document_plan import KeySet, pack_document
from ingest.types import (
    ChangedDocument,
    DeletedDocument,
    DocumentSource,
    ListedItem,
    Listing,
    Page,
    Unreadable,
    UnreadableDocument,
)
from storage.database.document_versions import PackedDocument
from storage.database.worker_threads import ThreadPool

DUPLICATE_REASON = "appears more than once in its source; the first was read"

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BatchSize:
    """The size of a full batch. After a crash, the work of at most one batch is repeated."""

    documents: int
    characters: int


EMBEDDED = BatchSize(256, 300_000)
"""For documents whose passages are embedded: about 512 passages."""
PACKED = BatchSize(4_096, 4_000_000)
"""For documents that are only packed: some thousand passages."""
_PACKED_CHARACTERS = 500  # of a packed passage, on average


@dataclass
class DocumentBatch:
    """The next documents of a listing, read or packed."""

    size: BatchSize = EMBEDDED
    read: list[tuple[ChangedDocument, Page]] = field(default_factory=list)
    packed: list[PackedDocument] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    unchanged: int = 0
    looked_at: int = 0  # items of the listing, deleted and unwanted ones too
    characters: int = 0

    @property
    def full(self) -> bool:
        return self.looked_at >= self.size.documents or self.characters >= self.size.characters


class BatchReader:
    """Reads a listing once. Other threads may only call `stop`. `seen` and `gone` are complete after the last batch."""

    def __init__(
        self, listing: Listing, known: Mapping[str, str], *, unwanted: Collection[str] = (), pack_for: str = ""
    ) -> None:
        """Read a listing; `known` are the fingerprints of documents that were read before.

        The keys `unwanted` are skipped. If `pack_for` names a corpus, documents are packed for it.
        """
        self.listing = listing
        self.seen = KeySet()
        """Keys of all documents that the source has, readable or not."""
        self.gone: set[str] = set()
        """Keys of the documents that the source reports as deleted."""
        self.withheld: set[str] = set()
        """Keys of the deleted documents that may no longer be shown."""
        self._items = iter(listing.items)
        self._known = known
        self._unwanted = unwanted
        self._pack_for = pack_for
        self._later: dict[str, str] = {}
        """Fingerprints read so far, if only changes are listed."""
        self._next: ListedItem | None = None
        self._error: Exception | None = None
        self._stopped = threading.Event()

    def batch(self) -> DocumentBatch | None:
        """Read the next batch; None at the end.

        An error of the source is raised only by the next call, so that the documents read before it are not lost.
        """
        batch = DocumentBatch(PACKED if self._pack_for else EMBEDDED)
        keys: set[str] = set()
        while not batch.full and (item := self._item(batch)) is not None:
            if item.key in keys and not self.listing.whole:
                self._next = item  # a later change of one document belongs to a later batch
                break
            keys.add(item.key)
            batch.looked_at += 1
            self._take(item, batch)
        return batch if keys else None

    def stop(self) -> None:
        """Stop after the document that is being loaded. May be called from any thread."""
        self._stopped.set()

    def close(self) -> None:
        """Close whatever the listing keeps open."""
        if close := getattr(self._items, "close", None):
            close()

    def _item(self, batch: DocumentBatch) -> ListedItem | None:
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

    def _take(self, item: ListedItem, batch: DocumentBatch) -> None:
        if isinstance(item, DeletedDocument):
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
            batch.failures.append((item.key, DUPLICATE_REASON))
        elif isinstance(item, Unreadable):
            batch.failures.append((item.key, clean_text(item.reason)))
        elif self._later.get(item.key, self._known.get(item.key)) == item.fingerprint:
            batch.unchanged += 1
        else:
            self._load(item, batch)

    def _load(self, item: ChangedDocument, batch: DocumentBatch) -> None:
        try:
            if self._pack_for:
                packed = item.packed or isolate_errors(partial(_load_packed, self._pack_for, item))
                batch.packed.append(packed)
                batch.characters += packed.passages * _PACKED_CHARACTERS
            else:
                page = isolate_errors(partial(load_page, item))
                batch.read.append((item, page))
                batch.characters += measure_length(page)
        except UnreadableDocument as error:
            batch.failures.append((item.key, clean_text(str(error))))
            return
        if not self.listing.whole:
            self._later[item.key] = item.fingerprint


def _load_packed(corpus: str, item: ChangedDocument) -> PackedDocument:
    return pack_document(corpus, item, load_page(item))


@dataclass
class SourceReader:
    """Reads a source in a thread of its own."""

    source: DocumentSource
    _thread: ThreadPool
    _reader: BatchReader | None = None
    _ahead: asyncio.Task[DocumentBatch | None] | None = None
    _calls: tuple[asyncio.Task[object], ...] = ()
    """Running and waiting calls of the thread. They cannot be abandoned, so a cancelled caller waits in `end`."""

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in the source's thread."""
        return await asyncio.shield(self._start(function, *args, **kwargs))

    def begin(self, reader: BatchReader) -> None:
        """Start to read the first batch of a listing."""
        self._reader = reader
        self.start_next()

    def start_next(self) -> None:
        """Start to read the next batch while the caller continues."""
        assert self._reader is not None  # noqa: S101 - `begin` set it
        self._ahead = self._start(self._reader.batch)

    async def batch(self) -> DocumentBatch | None:
        """Wait for the batch that is being read; None at the end. Raises the source's errors."""
        assert self._ahead is not None  # noqa: S101 - `start_next` set it
        return await asyncio.shield(self._ahead)

    async def end(self) -> None:
        """Stop reading, wait for the thread, and close whatever the listing keeps open."""
        if self._reader is not None:
            self._reader.stop()
        running = [call for call in self._calls if not call.done()]
        if running:
            if stop := getattr(self.source, "stop", None):
                stop()
            await asyncio.wait(running)
        for call in self._calls:
            if not call.cancelled():
                call.exception()  # the waiter has it; without this, asyncio logs it as never retrieved
        if self._reader is not None:
            await self._thread.run(self._reader.close)

    def _start(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Task[T]:
        task = asyncio.create_task(self._thread.run(function, *args, **kwargs), name="reading")
        self._calls = (*(call for call in self._calls if not call.done()), task)
        return task


@asynccontextmanager
async def read_source(source: DocumentSource) -> AsyncIterator[SourceReader]:
    """Yield a reader of the source for the block. At its end, all reading is stopped."""
    with ThreadPool("ingest-read") as thread:
        reader = SourceReader(source, thread)
        try:
            yield reader
        finally:
            await _finish_reading(reader)


async def _finish_reading(reader: SourceReader) -> None:
    """End the thread without blocking the event loop, even if this wait is itself cancelled."""
    ending = asyncio.create_task(reader.end(), name="reading ends")
    cancelled = False
    while not ending.done():
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    ending.result()
