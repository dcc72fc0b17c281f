"""The dense index: one Chroma collection per corpus, embedded in the home or on a server.

It stores vectors and hashes, but no texts, which are in the database. Each collection is stamped with the embedder of
its vectors. A search asks only the collections in its scope, without filters. All calls block. An upsert blocks all
Python threads, so callers keep batches small.
"""

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from storage.database.document_versions import PassageRef
from storage.errors import StorageError
from storage.indexes.chroma_connection import ChromaLocation, close_chroma, connect_chroma, translate_chroma_errors
from storage.indexes.embedders import are_comparable, find_key
from storage.indexes.embedding import INDEX_SCHEMA, Vectors
from storage.types import Passage

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)
COLLECTION_PREFIX = "footnote-"
CONTENTS_PAGE = DELETE_BATCH = 300  # as many as Chroma Cloud returns or writes at a time
ATTEMPTS = 5  # while another thread deletes vectors, some percent of Chroma's reads fail


def _translating_errors(method: Callable[Concatenate["DenseIndex", P], T]) -> Callable[Concatenate["DenseIndex", P], T]:
    @wraps(method)
    def translated(index: "DenseIndex", /, *args: P.args, **kwargs: P.kwargs) -> T:
        from chromadb.errors import InternalError, NotFoundError

        try:
            for _ in range(ATTEMPTS - 1):
                try:
                    return method(index, *args, **kwargs)
                except NotFoundError:  # another process has made a collection again, under another number
                    index.forget_collections()
                except (InternalError, ValueError) as error:  # as for an id that is being deleted
                    log.debug("Chroma failed, retrying: %s", error)
            return method(index, *args, **kwargs)
        except BaseException:
            with translate_chroma_errors(index.place):
                raise

    return translated


class DenseIndex:
    """Vectors by passage id, in one collection for each corpus. Every method raises as `connect_chroma` does."""

    def __init__(self, place: ChromaLocation, *, embedder: str) -> None:
        """Open the index in a folder or on a server; `embedder` is the name of the model of corpora without another."""
        self.place = place
        self._client = connect_chroma(place)
        self._embedder = embedder
        self._collections: dict[str, Any] = {}

    @_translating_errors
    def upsert(self, passages: Sequence[Passage], vectors: Vectors) -> None:
        """Write vectors, each of length 1, for passages of one corpus."""
        write_vectors(self._collection(passages[0].corpus), passages, vectors)

    @_translating_errors
    def delete(self, corpus: str, ids: Sequence[str]) -> None:
        """Remove vectors. Unknown ids are ignored."""
        collection = self._collection(corpus)
        for start in range(0, len(ids), DELETE_BATCH):
            collection.delete(ids=list(ids[start : start + DELETE_BATCH]))

    @_translating_errors
    def embedder(self, corpus: str) -> str:
        """Return the name of the model that makes a corpus's vectors."""
        if corpus not in self._collections:
            if not (found := self._find(COLLECTION_PREFIX + corpus)):
                return self._embedder
            self._collections[corpus] = found
        return _read_embedder(self._collections[corpus])

    @_translating_errors
    def choose(self, corpus: str, embedder: str) -> bool:
        """Let a model make a corpus's vectors; return whether it was another, whose vectors are removed."""
        if are_comparable(self.embedder(corpus), embedder):
            return False
        self.remove(corpus)
        self._collections[corpus] = self._make_collection(COLLECTION_PREFIX + corpus, embedder)
        return True

    @_translating_errors
    def search(self, corpus: str, vector: Vectors, k: int, embedder: str) -> dict[PassageRef, float]:
        """Return the cosines of the `k` nearest passages of a corpus and a vector made by `embedder`.

        Nothing is returned if the corpus's vectors are of another model, as after a rebuild by another process.
        """
        collection, include = self._collection(corpus), ["distances", "metadatas"]
        if not are_comparable(_read_embedder(collection), embedder):
            return {}
        result = collection.query(query_embeddings=vector.reshape(1, -1), n_results=k, include=include)
        rows = zip(result["ids"][0], result["metadatas"][0], result["distances"][0], strict=True)
        # A passage that is deleted during the search has no metadata.
        return {PassageRef(corpus, str(of["document"]), key): 1.0 - distance for key, of, distance in rows if of}

    @_translating_errors
    def vectors(self, corpus: str, ids: Sequence[str]) -> dict[str, Vectors]:
        if not ids:
            return {}
        rows = self._collection(corpus).get(ids=list(ids), include=["embeddings"])
        return {
            key: np.asarray(row, dtype=np.float32) for key, row in zip(rows["ids"], rows["embeddings"], strict=True)
        }

    @_translating_errors
    def fitting(self, passages: Sequence[Passage]) -> dict[str, Vectors]:
        """Return, by id, the vectors of those passages of one corpus whose text is still the one that was embedded."""
        return read_fitting(self._collection(passages[0].corpus), passages)

    @_translating_errors
    def contents(self, corpus: str) -> dict[str, str]:
        """Return the hashes of all passages in the index of one corpus, by id."""
        return dict(self._pages(corpus))

    @_translating_errors
    def held(self, corpus: str, document: str) -> dict[str, str]:
        """Return the hashes of all indexed passages of a document, by id."""
        rows = self._collection(corpus).get(where={"document": document}, include=["metadatas"])
        return {key: str(of["hash"]) for key, of in zip(rows["ids"], rows["metadatas"], strict=True)}

    @_translating_errors
    def count(self, corpus: str) -> int:
        return int(self._collection(corpus).count())

    @_translating_errors
    def stale(self, corpus: str, expected: int) -> str:
        """Return the reason if the index of a corpus cannot serve `expected` passages; empty if it can."""
        if corpus not in self.corpora():
            return f"The dense index of “{corpus}” is missing." if expected else ""
        collection = self._collection(corpus)
        made_by, schema = _read_embedder(collection), (collection.metadata or {}).get("schema")
        known = find_key(made_by) or are_comparable(made_by, self._embedder)
        if not known or schema != INDEX_SCHEMA:
            return f"The dense index of “{corpus}” was made with another embedding function or version."
        if (count := self.count(corpus)) < expected:
            return f"The dense index of “{corpus}” holds {count:,} of {expected:,} passages."
        return ""

    @_translating_errors
    def drop_foreign(self, corpus: str) -> None:
        """Remove the index of a corpus if it was made by another embedder or version."""
        if self.stale(corpus, 0):
            self.remove(corpus)

    @_translating_errors
    def corpora(self) -> tuple[str, ...]:
        names = (collection.name for collection in self._client.list_collections())
        ours = (name for name in names if name.startswith(COLLECTION_PREFIX))
        return tuple(sorted(name.removeprefix(COLLECTION_PREFIX) for name in ours))

    @_translating_errors
    def total(self) -> int:
        """Return the number of passages of all corpora, whichever embedder made their vectors."""
        collections = self._client.list_collections()
        return sum(
            int(collection.count()) for collection in collections if collection.name.startswith(COLLECTION_PREFIX)
        )

    @_translating_errors
    def remove(self, corpus: str) -> None:
        self._collections.pop(corpus, None)
        if corpus in self.corpora():
            self._client.delete_collection(COLLECTION_PREFIX + corpus)

    def forget_collections(self) -> None:
        self._collections.clear()

    def close(self) -> None:
        self.forget_collections()
        close_chroma(self._client)

    def _collection(self, corpus: str) -> Any:
        if corpus not in self._collections:
            self._collections[corpus] = self._make_collection(COLLECTION_PREFIX + corpus, self._embedder)
        return self._collections[corpus]

    def _find(self, name: str) -> Any:
        """Return the collection of this name; None if there is none."""
        return next((one for one in self._client.list_collections() if one.name == name), None)

    def _pages(self, corpus: str) -> Iterator[tuple[str, str]]:
        collection, start = self._collection(corpus), 0
        while (page := collection.get(limit=CONTENTS_PAGE, offset=start, include=["metadatas"]))["ids"]:
            yield from zip(page["ids"], (str(metadata["hash"]) for metadata in page["metadatas"]), strict=True)
            start += CONTENTS_PAGE

    @_translating_errors
    def rebuild(self, corpus: str, embedder: str) -> "DenseRebuild":
        """Start to rebuild the index of a corpus next to the current one, or continue an interrupted rebuild."""
        old = self._find(COLLECTION_PREFIX + corpus)
        reusable = old if old and are_comparable(_read_embedder(old), embedder) else None
        name = REBUILD_PREFIX + COLLECTION_PREFIX + corpus
        begun = self._find(name)
        if begun and begun.metadata != _stamp(embedder):
            self._client.delete_collection(name)
        return DenseRebuild(self, corpus, reusable, self._make_collection(name, embedder))

    def _make_collection(self, name: str, embedder: str) -> Any:
        configuration = {"hnsw": {"space": "cosine"}}
        return self._client.get_or_create_collection(
            name, embedding_function=None, metadata=_stamp(embedder), configuration=configuration
        )


def _stamp(embedder: str) -> dict[str, str | int]:
    return {"embedder": embedder, "schema": INDEX_SCHEMA}


def _read_embedder(collection: Any) -> str:
    return str((collection.metadata or {}).get("embedder"))


def open_dense_index(place: ChromaLocation, embedder: str, *, rebuilding: bool = False) -> DenseIndex:
    """Open the index. With `rebuilding`, an unusable folder is replaced. Raises as `connect_chroma` does."""
    try:
        return DenseIndex(place, embedder=embedder)
    except StorageError:
        if not (rebuilding and isinstance(place, Path)):
            raise
    shutil.rmtree(place, ignore_errors=True)
    return DenseIndex(place, embedder=embedder)


REBUILD_PREFIX = "rebuilt-"


class DenseRebuild:
    """A new index of one corpus that is being built; `switch` puts it in the place of the old one."""

    def __init__(self, index: DenseIndex, corpus: str, old: Any, new: Any) -> None:
        self._index, self._corpus, self._old, self._new = index, corpus, old, new

    def adopt(self, passages: Sequence[Passage]) -> set[str]:
        """Copy the vectors of unchanged passages from the old index; return the ids of the other passages."""
        with translate_chroma_errors(self._index.place):
            missing = {passage.id: passage for passage in passages}
            for key in self._new.get(ids=list(missing), include=[])["ids"] if missing else ():
                missing.pop(key)
            if missing and self._old is not None:
                self._adopt_old(missing)
            return set(missing)

    def _adopt_old(self, missing: dict[str, Passage]) -> None:
        if fitting := read_fitting(self._old, list(missing.values())):
            self.upsert([missing.pop(key) for key in fitting], np.stack(list(fitting.values())))

    def upsert(self, passages: Sequence[Passage], vectors: Vectors) -> None:
        with translate_chroma_errors(self._index.place):
            write_vectors(self._new, passages, vectors)

    def switch(self) -> None:
        with translate_chroma_errors(self._index.place):
            self._index.remove(self._corpus)
            self._new.modify(name=COLLECTION_PREFIX + self._corpus)


def read_fitting(collection: Any, passages: Sequence[Passage]) -> dict[str, Vectors]:
    of = {passage.id: passage for passage in passages}
    result = collection.get(ids=list(of), include=["embeddings", "metadatas"])
    rows = zip(result["ids"], result["embeddings"], result["metadatas"], strict=True)
    return {
        key: np.asarray(vector, dtype=np.float32)
        for key, vector, about in rows
        if about and about.get("hash") == of[key].hash
    }


def write_vectors(collection: Any, passages: Sequence[Passage], vectors: Vectors) -> None:
    metadatas = [{"hash": passage.hash, "document": passage.document} for passage in passages]
    collection.upsert(ids=[passage.id for passage in passages], embeddings=vectors, metadatas=metadatas)
