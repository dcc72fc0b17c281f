"""Hand-written fakes that replace models, folders and a full disk."""

import hashlib
import resource
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from ingest.types import Block, ChangedDocument, DeletedDocument, ListedItem, Listing, Page, Section, UnreadableDocument
from storage.indexes.embedding import Vectors


@dataclass
class WordEmbedder:
    """Embeds a text as the sum of a fixed vector for each of its words: texts that share words are similar."""

    name: str = "words@1"
    dimensions: int = 64
    calls: list[int] = field(default_factory=list)
    """The number of texts in each call."""

    def knows(self, text: str) -> float:
        return 1.0 if text else 0.0

    def embed(self, texts: Sequence[str], *, polite: bool = False) -> Vectors:
        del polite
        self.calls.append(len(texts))
        rows = [
            sum((_direction(word, self.dimensions) for word in text.lower().split()), start=_bias(self.dimensions))
            for text in texts
        ]
        stacked = np.stack(rows).astype(np.float32)
        return stacked / np.linalg.norm(stacked, axis=1, keepdims=True)


def _direction(word: str, dimensions: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.strip(".,?!").encode()).digest()[:8])
    return np.random.default_rng(seed).normal(size=dimensions)


def _bias(dimensions: int) -> np.ndarray:
    return np.full(dimensions, 1e-3)


@dataclass
class PageSource:
    """A source with the pages of a test: `{key: {section: text}}`; None is a page that cannot be read."""

    pages: Mapping[str, Mapping[str, str] | None]
    loaded: list[str] = field(default_factory=list)
    """The keys of the pages that were read, in order."""

    @property
    def reference(self) -> bool:
        return False

    def expected(self) -> int | None:
        return len(self.pages)

    def documents(self, known: Mapping[str, str], since: str = "") -> Listing:
        del known, since
        return Listing(self._found(key) for key in sorted(self.pages))

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        if address in self.pages:
            return self._found(address)
        return DeletedDocument(address) if address in known else None

    def stop(self) -> None:
        """Do nothing: no threads are running."""

    def _found(self, key: str) -> ChangedDocument:
        return ChangedDocument(
            key, hashlib.sha256(repr(self.pages[key]).encode()).hexdigest(), 1, lambda: self._load(key)
        )

    def _load(self, key: str) -> Page:
        self.loaded.append(key)
        sections = self.pages[key]
        if sections is None:
            raise UnreadableDocument("the test wants it so")
        title = sections.get("title", key)
        aliases = tuple(filter(None, [sections.get("aliases", "")]))
        rest = [(path, text) for path, text in sections.items() if path not in {"title", "aliases"}]
        read = tuple(Section((path,) if path else (), (Block(text),)) for path, text in rest)
        return Page(title, read, aliases=aliases)


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
