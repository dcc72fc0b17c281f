"""Let an engine's processes read, split and embed the documents of a source, slightly ahead of the refresh.

They return pages and vectors, or packed documents, so the refresh itself stays the same. Texts that they did not embed
are embedded in this process. A paid embedding service is called only from here, because its key stays in this process.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import NamedTuple

from ingest.chunking import split_page
from ingest.page_cleanup import LARGEST_DOCUMENT, clean_page, isolate_errors, limit_length, load_page
from ingest.refresh.document_plan import pack_document
from ingest.sandbox import OCR_LIMITS, Sandbox
from ingest.types import (
    ChangedDocument,
    Engine,
    ListedItem,
    Listing,
    LiveSource,
    Page,
    ReadTask,
    UnreadableDocument,
    refuse_load,
)
from storage.database.document_versions import PackedDocument
from storage.errors import EmbeddingUnavailable
from storage.indexes.embedding import Embedder, RememberingEmbedder, Vectors, embedded_text
from storage.passages import PassageStore
from storage.types import Document

BLOCK_BYTES = 1 << 19  # bytes of documents after which a block is full
BLOCK_DOCUMENTS = 64


class WorkerEmbedder(NamedTuple):
    """An embedder that every process can open, and its unique name."""

    name: str
    open: Callable[[], Embedder]  # a function of a module


class _Block(NamedTuple):
    """Documents that one process reads in one call."""

    documents: list[ChangedDocument]
    corpus: str  # the corpus to pack them for; empty to return pages
    embedder: WorkerEmbedder | None


_ReadDocument = Page | PackedDocument | str
"""The outcome of a document: its page, or the reason why it cannot be read."""


class _ReadBlock(NamedTuple):
    listed: list[ListedItem]  # items that need no reading; the other fields are empty then
    read: list[_ReadDocument] = []  # noqa: RUF012 - never changed
    texts: list[str] = []  # noqa: RUF012 - the same
    vectors: Vectors | None = None


def read_block(block: _Block) -> _ReadBlock:
    """Read documents, and pack or embed them. An unreadable document becomes its error message."""
    read, texts = list[_ReadDocument](), list[str]()
    for listed in block.documents:
        try:
            made = isolate_errors(partial(_read_document, listed, block.corpus))
            cut = list[str]()
            if block.embedder and isinstance(made, Page):
                cut = isolate_errors(partial(_list_texts, made, block.embedder.name))
        except UnreadableDocument as error:
            read.append(str(error))
        else:
            read.append(made)
            texts += cut
    vectors = _embed(block.embedder, texts) if block.embedder and texts else None
    return _ReadBlock([], read, texts, vectors)


def _read_document(listed: ChangedDocument, corpus: str) -> Page | PackedDocument:
    if corpus:
        return pack_document(corpus, listed, load_page(listed))
    return limit_length(listed.load())


def _list_texts(page: Page, embedder: str) -> list[str]:
    """Return the texts of a page that the embedder of this name gets, split exactly as the refresh splits them."""
    cut = clean_page(page)
    document = Document("", "", cut.title)
    return [embedded_text(embedder, document, passage) for passage in split_page("", "", cut)]


def _embed(worker_embedder: WorkerEmbedder, texts: list[str]) -> Vectors:
    embedder = _opened.get(worker_embedder.name) or worker_embedder.open()
    if embedder.name != worker_embedder.name:
        hint = "Install the same version of Footnote on every machine of the cluster."
        raise EmbeddingUnavailable(f"A worker embeds with {embedder.name}, not with {worker_embedder.name}.", hint=hint)
    _opened[worker_embedder.name] = embedder
    return embedder.embed(texts)


_opened: dict[str, Embedder] = {}  # of this process


def _read_in_sandbox(task: ReadTask) -> Page:
    return _sandbox(slow=task.slow).run(task)


@cache
def _sandbox(*, slow: bool) -> Sandbox:
    """Return the sandbox of this process. It ends when the process ends."""
    return Sandbox(OCR_LIMITS if slow else None).__enter__()


def distribute(
    source: LiveSource, store: PassageStore, engine: Engine, embedder: Embedder, opener: Callable[[], Embedder] | None
) -> tuple[LiveSource, PassageStore]:
    """Return a source that an engine reads, and the store for its corpus, which has this embedder.

    If `opener` opens the embedder, the engine embeds.
    """
    if opener is None:
        return DistributedSource(source, engine), store
    remembering = RememberingEmbedder(embedder)
    far = DistributedSource(source, engine, WorkerEmbedder(embedder.name, opener), remembering.remember)
    return far, replace(store, embedder=remembering)


def _forget(texts: list[str], vectors: Vectors) -> None:
    """Do nothing: stands in for the store's `remember` if the engine does not embed."""


@dataclass
class DistributedSource:
    """A source whose changed documents an engine reads."""

    source: LiveSource
    engine: Engine
    embedder: WorkerEmbedder | None = None
    remember: Callable[[list[str], Vectors], None] = _forget  # called with the texts and vectors embedded elsewhere
    block_documents: int = BLOCK_DOCUMENTS
    _corpus: str = field(default="", init=False)

    @property
    def reference(self) -> bool:
        return self.source.reference

    @property
    def doing(self) -> str:
        """Return in a few words what the engine or the source is doing; empty if neither says."""
        return self.engine.doing or str(getattr(self.source, "doing", ""))

    def expected(self) -> int | None:
        return self.source.expected()

    def pack_for(self, corpus: str) -> None:
        """Pack documents for this corpus instead of embedding them."""
        self._corpus, self.embedder = corpus, None
        if pack_for := getattr(self.source, "pack_for", None):
            pack_for(corpus)

    def documents(self, known: Mapping[str, str], since: str = "") -> Listing:
        self.engine.check()
        listing = self.source.documents(known, since)
        return replace(listing, items=self._read_ahead(listing.items, known))

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        return self.source.one(address, known)

    def stop(self) -> None:
        self.engine.stop()
        self.source.stop()

    def _read_ahead(self, items: Iterator[ListedItem], known: Mapping[str, str]) -> Iterator[ListedItem]:
        """Yield the items in order. Changed documents come with the pages that the engine has read."""
        waiting = deque[list[ListedItem]]()

        def list_work() -> Iterator[_Block | list[_ReadBlock]]:
            for listed, fetched in self._fetch_blocks(items, known):
                if fetched:
                    waiting.append(listed)
                    yield _Block(fetched, self._corpus, self.embedder)
                else:  # without changed documents, the engine is not started
                    yield [_ReadBlock(listed)]

        try:
            for block in self.engine.map(read_block, list_work()):
                if block.vectors is not None:
                    self.remember(block.texts, block.vectors)
                read = iter(block.read)
                for item in block.listed or waiting.popleft():
                    if isinstance(item, ChangedDocument) and item.load is _refuse_unread:
                        yield _fill_in(item, next(read))
                    else:
                        yield item
        finally:
            if close := getattr(items, "close", None):
                close()

    def _fetch_blocks(
        self, items: Iterator[ListedItem], known: Mapping[str, str]
    ) -> Iterator[tuple[list[ListedItem], list[ChangedDocument]]]:
        """Yield the items in blocks, each with the documents in it that the engine has to read."""
        listed, fetched, size = list[ListedItem](), list[ChangedDocument](), 0
        for item in items:
            if isinstance(item, ChangedDocument) and not item.packed and known.get(item.key) != item.fingerprint:
                item, size = _fetch(item, fetched), size + item.size  # noqa: PLW2901 - its placeholder
            listed.append(item)
            if size >= BLOCK_BYTES or len(listed) >= self.block_documents:
                yield listed, fetched
                listed, fetched, size = [], [], 0
        if listed:
            yield listed, fetched


def _fetch(item: ChangedDocument, fetched: list[ChangedDocument]) -> ChangedDocument:
    """Add a document to `fetched` for the engine, and return a placeholder. One that is too large stays unchanged."""
    if item.size > LARGEST_DOCUMENT:
        return item
    try:
        # A document that only this process can load is only split and embedded by the engine.
        load = partial(_read_in_sandbox, isolate_errors(item.fetch)) if item.fetch else partial(_unwrap, _load(item))
    except UnreadableDocument as error:
        return replace(item, load=partial(_unwrap, str(error)))
    fetched.append(replace(item, load=load, fetch=None))
    return replace(item, load=_refuse_unread)


def _load(item: ChangedDocument) -> Page:
    return isolate_errors(item.load)


def _fill_in(item: ChangedDocument, read: _ReadDocument) -> ChangedDocument:
    if isinstance(read, PackedDocument):
        return replace(item, load=partial(refuse_load, item.key), packed=read)
    return replace(item, load=partial(_unwrap, read))


def _unwrap(page: Page | str) -> Page:
    if isinstance(page, str):
        raise UnreadableDocument(page)
    return page


def _refuse_unread() -> Page:
    raise UnreadableDocument("was not read: run the same command again")
