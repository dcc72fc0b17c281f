"""Bring one document up to date with its source, or remove documents at once."""

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

from ingest.page_cleanup import isolate_errors
from ingest.refresh.batch_reader import BatchReader, DocumentBatch, SourceReader, read_source
from ingest.refresh.document_plan import count_changes, plan_document
from ingest.refresh.refresh_run import LEASE_SECONDS, hold_lease
from ingest.types import (
    ChangedDocument,
    DeletedDocument,
    ListedItem,
    Listing,
    LiveSource,
    Page,
    RefreshRefused,
    RefreshReport,
    SingleReadUnsupported,
    UnreadableDocument,
)
from storage.clock import Clock, utc_now
from storage.database.document_versions import DocumentChange
from storage.passages import PassageStore
from storage.types import Lease

REMOVAL_BATCH = 256
WRITE_ATTEMPTS = 3


async def refresh_document(source: LiveSource, corpus: str, store: PassageStore, address: str) -> RefreshReport | None:
    """Bring the document with this address or key up to date, and return a report; None if the source lacks it.

    A document that was forgotten on purpose is restored, because the caller names it. If its source can only be read as
    a whole, the next refresh restores it.

    Raises:
        RefreshRefused: A running refresh keeps changing the same document.
        SingleReadUnsupported: The source can only be read as a whole.
        SourceUnavailable: The source cannot be read; it may also raise its own errors.
        StorageError: The store failed.
    """
    started = time.monotonic()
    async with read_source(source) as reader:
        known = await store.manifest.fingerprints(corpus)
        try:
            item = await reader.run(source.one, address, known)
        except SingleReadUnsupported as error:
            if address not in await store.manifest.forgotten(corpus):
                raise
            await store.manifest.remember(corpus, [address])
            await store.manifest.list_again(corpus)
            hint = "The document is no longer forgotten: `footnote ingest all` reads it."
            raise SingleReadUnsupported(str(error), hint=hint) from error
        if item is None:
            return None
        await store.manifest.remember(corpus, [item.key])
        await store.manifest.describe(corpus, reference=source.reference)
        report = await _apply_item(reader, item, corpus, store, known)
    return replace(report, seconds=time.monotonic() - started)


async def remove_documents(
    store: PassageStore, corpus: str, keys: Collection[str], lease: Lease | None = None
) -> list[DocumentChange]:
    """Remove those of these documents that exist. Return the changes. Raises `StorageError`."""
    changes = await _plan_removals(store, corpus, keys)
    if changes:
        await store.apply(changes, lease)
    return changes


async def _plan_removals(store: PassageStore, corpus: str, keys: Collection[str]) -> list[DocumentChange]:
    stored = await store.manifest.stored(corpus, keys)
    dropped = {key: tuple(passage.id for passage in version.passages) for key, version in sorted(stored.items())}
    return [DocumentChange(corpus, key, None, drop=ids) for key, ids in dropped.items()]


async def remove_corpus(
    store: PassageStore, corpus: str, *, clock: Clock = utc_now, lease_seconds: float = LEASE_SECONDS
) -> RefreshReport:
    """Remove a corpus: its documents and everything stored about it, except the history of its refreshes.

    Raises:
        RefreshRefused: Another process is refreshing it.
        StorageError: The store failed; call again to continue.
    """
    started, removed, passages = time.monotonic(), 0, 0
    async with hold_lease(store.leases, corpus, clock=clock, seconds=lease_seconds):
        keys = sorted(await store.manifest.fingerprints(corpus))
        for start in range(0, len(keys), REMOVAL_BATCH):
            counts = await store.remove(corpus, keys[start : start + REMOVAL_BATCH], erasing=True)
            removed, passages = removed + len(counts), passages + sum(counts.values())
        await store.manifest.drop(corpus)
    seconds = time.monotonic() - started
    return RefreshReport(corpus, removed=removed, passages_removed=passages, seconds=seconds)


async def forget_documents(store: PassageStore, corpus: str, keys: Collection[str]) -> RefreshReport:
    """Remove documents at once, and stop all refreshes, even a running one, from restoring them.

    When this returns, no search finds them. They leave the indexes as soon as no other task is writing to the indexes.

    Raises:
        StorageError: The store failed. The next refresh removes the documents that were recorded as forgotten.
    """
    await store.manifest.forget(corpus, keys)
    # Not by `apply`, which waits for other writers of the indexes.
    removed = await store.remove(corpus, keys, erasing=True)
    return replace(RefreshReport(corpus), removed=len(removed), passages_removed=sum(removed.values()))


async def _apply_item(
    reader: SourceReader, item: ListedItem, corpus: str, store: PassageStore, known: Mapping[str, str]
) -> RefreshReport:
    report = RefreshReport(corpus)
    if isinstance(item, DeletedDocument):
        return count_changes(report, await remove_documents(store, corpus, [item.key]), known)
    reader.begin(BatchReader(Listing(iter([item]), whole=False), known))
    batch = await reader.batch() or DocumentBatch()
    report = replace(report, unchanged=batch.unchanged, failures=tuple(batch.failures))
    for listed, page in batch.read:
        try:
            change = await _apply_document(reader, corpus, store, listed, page)
        except UnreadableDocument as error:
            return replace(report, failures=((listed.key, str(error)),))
        return count_changes(report, [change], known)
    return report


async def _apply_document(
    reader: SourceReader, corpus: str, store: PassageStore, listed: ChangedDocument, page: Page
) -> DocumentChange:
    for _ in range(WRITE_ATTEMPTS):
        stored = (await store.manifest.stored(corpus, [listed.key])).get(listed.key)
        change = await reader.run(isolate_errors, partial(plan_document, corpus, listed, page, stored))
        if not await store.apply([change]):
            return change
    hint = "Run the command again once the refresh has ended."
    raise RefreshRefused(f"“{listed.key}” of “{corpus}” is being changed by a refresh.", hint=hint)
