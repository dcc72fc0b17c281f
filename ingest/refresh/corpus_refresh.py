"""Bring a corpus up to date with its source.

Changes are planned by pure functions, then applied. A document whose fingerprint is unchanged is not read. Of a changed
document, only new passages are indexed. An interrupted refresh needs no repair: the next one continues.
"""

import time
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from ingest.page_cleanup import isolate_errors
from ingest.readers.file_formats import READER_VERSION
from ingest.refresh.batch_reader import BatchReader, DocumentBatch, SourceReader, read_source
from ingest.refresh.document_plan import (
    compare_packed,
    count_changes,
    count_left_out,
    count_packed,
    find_missing,
    is_removal_suspicious,
    plan_document,
)
from ingest.refresh.document_refresh import REMOVAL_BATCH, remove_documents
from ingest.refresh.refresh_run import (
    LEASE_SECONDS,
    RunRecord,
    describe_activity,
    hold_lease,
    poll_progress,
    record_run,
)
from ingest.types import (
    DocumentSource,
    ListedItem,
    Listing,
    RefreshProgress,
    RefreshRefused,
    RefreshReport,
    SingleReadUnsupported,
    UnreadableDocument,
)
from ingest.wikitext.wikitext_parser import WIKITEXT_VERSION
from storage.clock import Clock, utc_now
from storage.database.document_versions import DocumentChange, StoredVersion
from storage.passages import PassageStore
from storage.types import Checkpoint, DenseMode, Lease

MOST_REMOVED = 0.2  # the share of a corpus that is removed without confirmation when its source no longer lists it


@dataclass
class _RunState:
    corpus: str
    store: PassageStore
    record: RunRecord
    lease: Lease
    known: Mapping[str, str]
    unwanted: Collection[str]
    report_progress: Callable[[RefreshProgress], None]
    mode: DenseMode  # when passages are embedded in this run
    catches_up: bool = False  # whether a corpus becomes eager, and is searched lazily until all of it is embedded
    done: int = 0
    arrived: "array[int]" = field(default_factory=lambda: array("q"))
    """Hashes of the fingerprints of documents that are new in a known corpus."""
    total: int | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def report(self) -> RefreshReport:
        return self.record.report

    @property
    def packs(self) -> bool:
        """Whether documents are packed and stored without being embedded."""
        return self.mode is not DenseMode.EAGER

    def update_report(self, **changes: Any) -> None:
        self.record.report = replace(self.record.report, **changes)

    async def notify(self, doing: str = "") -> None:
        step = RefreshProgress(
            self.done, self.total, self.report.passages_added, time.monotonic() - self.started, doing
        )
        self.report_progress(step)
        await self.record.progress(step)

    async def notify_embedded(self, passages: int) -> None:
        await self.notify(f"embeds passages that had no vectors: {passages:,}")


async def refresh_corpus(
    source: DocumentSource,
    corpus: str,
    store: PassageStore,
    *,
    progress: Callable[[RefreshProgress], None],
    dense: DenseMode | None = None,
    most_removed: float = MOST_REMOVED,
    confirm_removal: bool = False,
    restore: bool = False,
    source_digest: str = "",
    night: datetime | None = None,
    clock: Clock = utc_now,
    lease_seconds: float = LEASE_SECONDS,
) -> RefreshReport:
    """Bring `corpus` up to date with `source`, and return a report.

    Reading runs one batch ahead of embedding, in a thread of its own. A document that cannot be read keeps its last
    version. A document that the source no longer has is removed, unless suspiciously many are missing. Applied changes
    stay, even if the refresh is cancelled.

    Args:
        source: Where the documents come from.
        corpus: The corpus to refresh.
        store: Where the corpus is stored.
        progress: Called with the progress.
        dense: Whether passages are embedded now, lazily, or not at all. None: in the corpus's mode; for a new one, now.
        most_removed: The share of the corpus, 0 to 1, that may be removed unconfirmed. A few documents always may.
        confirm_removal: Whether a person has confirmed that more may be removed.
        restore: Whether documents that were forgotten on purpose are read again.
        source_digest: A digest of the source's settings. If it changes, all documents are listed again.
        night: When this run was due, for the history, if it is part of a nightly refresh; else None.
        clock: Returns the present time, with a time zone.
        lease_seconds: Seconds after which another process may refresh the corpus if this one is killed.

    Raises:
        RefreshRefused: The source has no documents, or another process is refreshing the corpus.
        SourceUnavailable: The source cannot be read; it may also raise its own errors. Nothing is removed.
        LeaseLost: This process was suspended for so long that another has taken over.
        StorageError: The store failed; changes that were applied before stay.
    """
    async with (
        hold_lease(store.leases, corpus, clock=clock, seconds=lease_seconds) as lease,
        record_run(store.runs, RefreshReport(corpus), lease.owner, night, clock) as record,
        read_source(source) as reader,
    ):
        run = await _start_run(corpus, store, record, lease, progress, dense)
        last = await store.manifest.checkpoint(corpus)
        digest = f"{source_digest}/{READER_VERSION}/{WIKITEXT_VERSION}"
        listing = await _list_documents(run, reader, last.mark if last.digest == digest else "")
        await _prepare_corpus(run, reader.source, restore=restore)
        batches = await _read_all(run, reader, listing)
        run.update_report(left_out=count_left_out(source))
        if not listing.whole:
            await _retry_unread(run, reader, batches)
            named = (batches.seen, batches.gone, run.unwanted)
            unnamed = sum(not any(key in keys for keys in named) for key in run.known)
            run.update_report(unchanged=run.report.unchanged + unnamed)
        await _remove_missing(run, batches, most_removed=1.0 if confirm_removal else most_removed)
        checkpoint = Checkpoint(await reader.run(listing.mark), digest, listing.edition)
        if run.report.held_back:  # they must be listed again
            checkpoint = replace(last, edition=listing.edition)
        await store.manifest.finish(corpus, clock(), await _collect_failures(run, batches), checkpoint)
        if run.catches_up:
            await store.embed_missing(corpus, run.notify_embedded)
            await store.manifest.describe(corpus, reference=source.reference, dense=DenseMode.EAGER)
        run.total = run.done
        await run.notify()
        run.update_report(seconds=time.monotonic() - run.started)
    return record.report


async def _start_run(
    corpus: str,
    store: PassageStore,
    record: RunRecord,
    lease: Lease,
    report_progress: Callable[[RefreshProgress], None],
    dense: DenseMode | None,
) -> _RunState:
    """Finish an interrupted refresh, read the known fingerprints and the forgotten keys, and choose the mode."""
    await store.recover()
    known, unwanted = await store.manifest.fingerprints(corpus), await store.manifest.forgotten(corpus)
    modes = {entry.name: entry.dense for entry in await store.manifest.catalogue()}
    before = modes.get(corpus, DenseMode.EAGER)
    catches_up = dense is DenseMode.EAGER and bool(known) and before is not DenseMode.EAGER
    mode = before if catches_up else dense or before
    run = _RunState(corpus, store, record, lease, known, unwanted, report_progress, mode, catches_up)
    run.update_report(forgotten=len(unwanted))
    await _remove_keys(run, [key for key in known if key in unwanted])
    return run


async def _list_documents(run: _RunState, reader: SourceReader, since: str) -> Listing:
    """Return the source's listing: of all documents, or of changes since a mark."""
    source = reader.source
    if run.packs and (pack_for := getattr(source, "pack_for", None)):
        await reader.run(pack_for, run.corpus)
    run.total = await reader.run(source.expected)
    async with poll_progress(source, lambda: run.notify(describe_activity(source))):
        listing = await reader.run(source.documents, run.known, since)
    if run.total is None:  # a source that downloads before it lists can count only now
        run.total = await reader.run(source.expected)
    run.update_report(edition=listing.edition)
    return listing


async def _prepare_corpus(run: _RunState, source: DocumentSource, *, restore: bool) -> None:
    """Store the corpus's mode, drop vectors that the mode excludes, and with `restore`, admit forgotten documents."""
    manifest = run.store.manifest
    await manifest.describe(run.corpus, reference=source.reference, dense=run.mode)
    if run.mode is DenseMode.OFF:
        await run.store.drop_vectors(run.corpus)
    if restore:
        await manifest.remember(run.corpus, run.unwanted)
        run.unwanted = ()
        run.update_report(forgotten=0)


async def _read_all(run: _RunState, reader: SourceReader, listing: Listing) -> BatchReader:
    """Read the listing batch by batch, and apply the changes of each batch."""
    batches = BatchReader(listing, run.known, unwanted=run.unwanted, pack_for=run.corpus if run.packs else "")
    reader.begin(batches)
    while batch := await reader.batch():
        # Planned before reading continues: two busy threads would keep the interpreter from all others for longer.
        planned = await _plan_batch(run, batch, reader)
        compared = await _compare_packed(run, batch, reader)
        reader.start_next()
        await _apply_batch(run, batch, planned, compared)
        await run.notify()
    return batches


_BatchPlan = tuple[list[DocumentChange], list[tuple[str, str]]]
"""The changes, and the key and reason of each document that could not be planned."""


async def _plan_batch(run: _RunState, batch: DocumentBatch, reader: SourceReader) -> _BatchPlan:
    if not batch.read:
        return [], []
    stored = await run.store.manifest.stored(run.corpus, [listed.key for listed, _ in batch.read])
    return await reader.run(_plan_documents, run.corpus, batch, stored)


async def _compare_packed(run: _RunState, batch: DocumentBatch, reader: SourceReader) -> tuple[int, int]:
    """Return how many stored passages of the packed documents stay the same, and how many are dropped."""
    changed = [key for packed in batch.packed if (key := packed.document.key) in run.known]
    if not changed:
        return 0, 0
    return await reader.run(compare_packed, batch.packed, await run.store.manifest.stored(run.corpus, changed))


def _plan_documents(corpus: str, batch: DocumentBatch, stored: Mapping[str, StoredVersion]) -> _BatchPlan:
    changes: list[DocumentChange] = []
    failures: list[tuple[str, str]] = []
    for listed, page in batch.read:
        try:
            changes.append(isolate_errors(partial(plan_document, corpus, listed, page, stored.get(listed.key))))
        except UnreadableDocument as error:
            failures.append((listed.key, str(error)))
    return changes, failures


async def _apply_batch(run: _RunState, batch: DocumentBatch, planned: _BatchPlan, compared: tuple[int, int]) -> None:
    changes, failures = planned
    conflicts = {key for _, key in await run.store.apply(changes, run.lease)} if changes else set[str]()
    if batch.packed:
        conflicts |= {key for _, key in await run.store.store_packed(run.corpus, batch.packed, run.lease)}
    applied = [change for change in changes if change.key not in conflicts]
    packed = [entry for entry in batch.packed if entry.document.key not in conflicts]
    if run.known:
        listed = [(document.key, document.fingerprint) for document, _ in batch.read]
        listed += [(entry.document.key, entry.document.fingerprint) for entry in batch.packed]
        run.arrived.extend(hash(fingerprint) for key, fingerprint in listed if key not in run.known)
    run.done += batch.looked_at
    counted = count_packed(count_changes(run.report, applied, run.known), packed, run.known, compared)
    run.record.report = replace(
        counted,
        unchanged=counted.unchanged + batch.unchanged + len(conflicts),
        failures=(*counted.failures, *batch.failures, *failures),
    )


async def _retry_unread(run: _RunState, reader: SourceReader, batches: BatchReader) -> None:
    """Read documents again that failed before or whose change was not finished. A listing of changes may omit them."""
    read_one = getattr(reader.source, "one", None)
    failed = dict(await run.store.manifest.failures(run.corpus))
    unfinished = {key for key, fingerprint in run.known.items() if not fingerprint}
    pending = sorted((failed.keys() | unfinished) - batches.seen - batches.gone - set(run.unwanted))
    if read_one is None or not pending:
        return

    def items() -> Iterator[ListedItem]:
        with suppress(SingleReadUnsupported):  # then its next complete listing has them
            yield from (item for key in pending if (item := read_one(key, run.known)) is not None)

    again = await _read_all(run, reader, Listing(items(), whole=False))
    batches.seen |= again.seen
    batches.gone |= again.gone
    batches.withheld |= again.withheld


async def _remove_missing(run: _RunState, batches: BatchReader, *, most_removed: float) -> None:
    """Remove missing documents, unless suspiciously many; those that may no longer be read are always removed."""
    whole = batches.listing.whole
    withheld = batches.withheld & run.known.keys()
    await _remove_keys(run, sorted(withheld))
    if whole and not batches.seen and most_removed < 1.0:
        unchanged = f" The {len(run.known):,} documents of “{run.corpus}” are unchanged." if run.known else ""
        hint = "Check its path and its include and exclude patterns."
        raise RefreshRefused(f"The source of “{run.corpus}” holds no documents.{unchanged}", hint=hint)
    unlisted = find_missing(run.known, batches.seen) if whole else ()
    absent = sorted({*unlisted, *batches.gone} - withheld)
    if not is_removal_suspicious(absent, run.known, run.arrived, most_removed):
        await _remove_keys(run, absent)
        return
    fault = (
        f"{len(absent):,} of {len(run.known):,} documents are no longer in the source of “{run.corpus}”: too many "
        f"to be removed without confirmation, so they were kept. "
        f"`footnote ingest all --confirm-removal {run.corpus}` removes them."
    )
    run.update_report(held_back=len(absent), fault=fault)


async def _collect_failures(run: _RunState, batches: BatchReader) -> list[tuple[str, str]]:
    """Return the unreadable documents. A listing of changes may omit earlier ones, so these are added."""
    failures = list(run.report.failures)
    if batches.listing.whole:
        return failures
    listed = batches.seen | batches.gone
    return [*(row for row in await run.store.manifest.failures(run.corpus) if row[0] not in listed), *failures]


async def _remove_keys(run: _RunState, keys: Collection[str]) -> None:
    ordered = list(keys)
    for start in range(0, len(ordered), REMOVAL_BATCH):
        batch = ordered[start : start + REMOVAL_BATCH]
        removals = await remove_documents(run.store, run.corpus, batch, run.lease)
        run.record.report = count_changes(run.report, removals, run.known)
