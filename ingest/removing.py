"""Removes documents that a source has no longer. What is to be forgotten on purpose is `ingest.single`'s."""

from collections.abc import Collection, Iterator

from storage.passages import PassageStore
from storage.refresh_types import Lease
from storage.types import DocumentChange

PART = 256
"""So many documents are removed at once."""


async def remove(
    store: PassageStore, corpus: str, keys: Collection[str], lease: Lease | None = None
) -> list[DocumentChange]:
    """Remove those of these documents that there are, and return what was changed. Raises `StorageError`."""
    stored = await store.manifest.stored(corpus, keys)
    changes = [removal(corpus, key, [passage.id for passage in stored[key][1]]) for key in sorted(stored)]
    if changes:
        await store.apply(changes, lease)
    return changes


def removal(corpus: str, key: str, passages: Collection[str]) -> DocumentChange:
    """Return the change that removes a document with these passages; pure."""
    return DocumentChange(corpus, key, None, drop=tuple(passages))


def parts(keys: Collection[str]) -> Iterator[list[str]]:
    """Cut keys into parts that are removed at once."""
    ordered = list(keys)
    return (ordered[start : start + PART] for start in range(0, len(ordered), PART))
