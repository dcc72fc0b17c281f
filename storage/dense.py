"""The dense index: one Chroma collection a corpus, embedded in `home` or on a server.

It holds vectors and hashes, no text: the text of record is in the database. Scope is which collections are asked,
never a filter over one. All calls block; an upsert holds the interpreter, so callers keep batches small.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from storage.chroma import Place, connect, failing
from storage.embedding.types import Vectors
from storage.indexing import INDEX_SCHEMA

P = ParamSpec("P")
T = TypeVar("T")

PREFIX = "footnote-"
PAGE = 5_000
LIMIT = 5_000


def _plainly(
    method: Callable[Concatenate["DenseIndex", P], T],
) -> Callable[Concatenate["DenseIndex", P], T]:
    """Let a method fail with a `StorageError` that says what to do, whatever Chroma raises."""

    @wraps(method)
    def told(index: "DenseIndex", /, *args: P.args, **kwargs: P.kwargs) -> T:
        with failing(index.place):
            return method(index, *args, **kwargs)

    return told


class DenseIndex:
    """Vectors by passage id, a collection for each corpus. Every method raises `StorageError`, as `connect` says."""

    def __init__(self, place: Place, *, embedder: str) -> None:
        """Open the index in a folder or on a server; `embedder` names who makes its vectors."""
        self.place = place
        self._client = connect(place)
        self._stamp = {"embedder": embedder, "schema": INDEX_SCHEMA}
        self._collections: dict[str, Any] = {}

    @_plainly
    def upsert(self, corpus: str, ids: Sequence[str], hashes: Sequence[str], vectors: Vectors) -> None:
        """Write vectors, unit length, one row an id."""
        metadatas = [{"hash": value} for value in hashes]
        self._collection(corpus).upsert(ids=list(ids), embeddings=vectors, metadatas=metadatas)

    @_plainly
    def delete(self, corpus: str, ids: Sequence[str]) -> None:
        """Remove vectors. Unknown ids are no error."""
        collection = self._collection(corpus)
        for start in range(0, len(ids), LIMIT):
            collection.delete(ids=list(ids[start : start + LIMIT]))

    @_plainly
    def search(self, corpus: str, vector: Vectors, k: int) -> dict[str, float]:
        """Return the cosine of the `k` nearest passages of a corpus by id."""
        collection = self._collection(corpus)
        found = collection.query(query_embeddings=vector.reshape(1, -1), n_results=k, include=["distances"])
        return {key: 1.0 - distance for key, distance in zip(found["ids"][0], found["distances"][0], strict=True)}

    @_plainly
    def vectors(self, corpus: str, ids: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors of those ids that are there."""
        if not ids:
            return {}
        found = self._collection(corpus).get(ids=list(ids), include=["embeddings"])
        return {
            key: np.asarray(row, dtype=np.float32) for key, row in zip(found["ids"], found["embeddings"], strict=True)
        }

    @_plainly
    def contents(self, corpus: str) -> dict[str, str]:
        """Return the hash of every passage in the index of one corpus by id."""
        return dict(self._pages(corpus))

    @_plainly
    def count(self, corpus: str) -> int:
        """Return how many passages the index holds of one corpus."""
        return int(self._collection(corpus).count())

    @_plainly
    def stale(self, corpus: str, expected: int) -> str:
        """Return why the index of a corpus does not serve `expected` passages; empty when it does."""
        if corpus not in self.corpora():
            return f"The dense index of “{corpus}” is missing." if expected else ""
        stamp = self._collection(corpus).metadata or {}
        if any(stamp.get(key) != value for key, value in self._stamp.items()):
            return f"The dense index of “{corpus}” was made with another embedding function or version."
        if (count := self.count(corpus)) < expected:
            return f"The dense index of “{corpus}” holds {count:,} of {expected:,} passages."
        return ""

    @_plainly
    def corpora(self) -> tuple[str, ...]:
        """Return the corpora that have a collection."""
        names = (collection.name for collection in self._client.list_collections())
        return tuple(sorted(name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)))

    @_plainly
    def remove(self, corpus: str) -> None:
        """Remove a corpus's collection, if there is one."""
        self._collections.pop(corpus, None)
        if corpus in self.corpora():
            self._client.delete_collection(PREFIX + corpus)

    def close(self) -> None:
        """Let the folder go."""
        self._collections.clear()
        close = getattr(self._client, "close", None)
        if close is not None:
            close()

    def _collection(self, corpus: str) -> Any:
        if corpus not in self._collections:
            self._collections[corpus] = self._client.get_or_create_collection(
                PREFIX + corpus,
                embedding_function=None,
                metadata=self._stamp,
                configuration={"hnsw": {"space": "cosine"}},
            )
        return self._collections[corpus]

    def _pages(self, corpus: str) -> Iterator[tuple[str, str]]:
        collection, start = self._collection(corpus), 0
        while (page := collection.get(limit=PAGE, offset=start, include=["metadatas"]))["ids"]:
            yield from zip(page["ids"], (str(metadata["hash"]) for metadata in page["metadatas"]), strict=True)
            start += PAGE
