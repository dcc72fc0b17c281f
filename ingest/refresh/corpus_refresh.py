"""Bring a corpus, or one document of it, up to date with its source.

What changed is planned purely, then applied, resumable at any moment. A document whose fingerprint the manifest knows
is not even read. Of one that changed, only the passages that are new are indexed. A refresh that is cut short is simply
run again.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from ingest.readers.file_formats import READER_VERSION
from ingest.refresh.batch_reader import BatchReader, DocumentBatch, SourceReader, isolate_errors, read_source
from ingest.refresh.document_plan import (
    StoredDocument,
    count_changes,
    find_missing,
    is_removal_suspicious,
    plan_document,
)
from ingest.refresh.refresh_run import (
    LEASE_SECONDS,
    Clock,
    RunRecord,
    describe_activity,
    hold_lease,
    poll_progress,
    record_run,
    utc_now,
)
from ingest.types import (
    ChangedDocument,
    DeletedDocument,
    DocumentSource,
    ListedItem,
    Listing,
    LiveSource,
    Page,
    RefreshProgress,
    RefreshRefused,
    RefreshReport,
    SingleReadUnsupported,
    UnreadableDocument,
)
from ingest.wikitext.wikitext_parser import WIKITEXT_VERSION
from storage.passages import PassageStore
from storage.types import Checkpoint, DocumentChange, Lease

REMOVAL_BATCH = 256
"""So many documents are removed at once."""


async def remove_documents(
    store: PassageStore, corpus: str, keys: Collection[str], lease: Lease | None = None
) -> list[DocumentChange]:
    """Remove those of these documents that there are, and return what was changed. Raises `StorageError`."""
    stored = await store.manifest.stored(corpus, keys)
    changes = [plan_removal(corpus, key, [passage.id for passage in stored[key][1]]) for key in sorted(stored)]
    if changes:
        await store.apply(changes, lease)
    return changes


def plan_removal(corpus: str, key: str, passages: Collection[str]) -> DocumentChange:
    """Return the change that removes a document with these passages; pure."""
    return DocumentChange(corpus, key, None, drop=tuple(passages))


def split_keys(keys: Collection[str]) -> Iterator[list[str]]:
    """Cut keys into parts that are removed at once."""
    ordered = list(keys)
    return (ordered[start : start + REMOVAL_BATCH] for start in range(0, len(ordered), REMOVAL_BATCH))


MOST_REMOVED = 0.2
"""The share of a corpus that is removed unasked when its source lists it no more."""


@dataclass
class _RunState:
    """One refresh as it goes: the only thing here that changes."""

    corpus: str
    store: PassageStore
    record: RunRecord
    lease: Lease
    known: Mapping[str, str]
    unwanted: Collection[str]
    tell: Callable[[RefreshProgress], None]
    done: int = 0
    arrived: set[str] = field(default_factory=set)
    """The fingerprints of documents that are new, where there were others before."""
    total: int | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def report(self) -> RefreshReport:
        return self.record.report

    async def told(self, doing: str = "") -> None:
        step = RefreshProgress(
            self.done, self.total, self.report.passages_added, time.monotonic() - self.started, doing
        )
        self.tell(step)
        await self.record.progress(step)


async def refresh_corpus(
    source: DocumentSource,
    corpus: str,
    store: PassageStore,
    *,
    progress: Callable[[RefreshProgress], None],
    most_removed: float = MOST_REMOVED,
    confirm_removal: bool = False,
    source_digest: str = "",
    night: datetime | None = None,
    clock: Clock = utc_now,
    lease_seconds: float = LEASE_SECONDS,
) -> RefreshReport:
    """Bring `corpus` up to date with `source`, and return what that took.

    Reading runs a batch ahead of embedding, in a thread of its own. A document that cannot be read now keeps the
    version that could be; one that the source no longer has is removed, unless these are too many to be true. What was
    applied stays, also when it is cancelled.

    Args:
        source: Where the documents come from.
        corpus: What they are read into.
        store: Where that is.
        progress: Hears how far it has come.
        most_removed: The share of the corpus, 0 to 1, that is removed unasked; a few documents always are.
        confirm_removal: Whether a person has seen that more are gone, and wants them removed.
        source_digest: A digest of the source's settings: after a change of them, all is listed anew.
        night: The night that it belongs to, for the history.
        clock: Gives the moment, with a time zone.
        lease_seconds: How long after this process was killed another may do it.

    Raises:
        RefreshRefused: The source holds no document at all, or the corpus is being refreshed by another.
        SourceUnavailable: Or an error of the source's own: what was read before is kept, nothing is removed.
        LeaseLost: This process stood still for so long that another took over.
        StorageError: What the store could not do; what was applied before stays.
    """
    async with (
        hold_lease(store.leases, corpus, clock=clock, seconds=lease_seconds) as lease,
        record_run(store.runs, RefreshReport(corpus), lease.owner, night, clock) as record,
        read_source(source) as it,
    ):
        run = await _start_run(corpus, store, record, lease, progress)
        run.total = await it.run(source.expected)
        before, of = await store.manifest.mark(corpus), f"{source_digest}/{READER_VERSION}/{WIKITEXT_VERSION}"
        async with poll_progress(source, lambda: run.told(describe_activity(source))):
            listing = await it.run(source.documents, run.known, before.mark if before.of == of else "")
        if run.total is None:  # what is downloaded to be listed can be counted now
            run.total = await it.run(source.expected)
        record.report = replace(record.report, edition=listing.edition)
        await store.manifest.describe(corpus, reference=source.reference)
        looking = await _read_all(run, it, listing)
        if not listing.whole:
            await _retry_unread(run, it, looking)
            unnamed = run.known.keys() - looking.seen - looking.gone - set(run.unwanted)
            record.report = replace(run.report, unchanged=run.report.unchanged + len(unnamed))
        await _remove_missing(run, looking, most_removed=1.0 if confirm_removal else most_removed)
        mark = Checkpoint(await it.run(listing.mark), of, listing.edition)
        if run.report.held_back:  # they are to be listed again
            mark = Checkpoint(before.mark, before.of, listing.edition)
        failures = await _collect_failures(run, looking)
        await store.manifest.finish(corpus, clock(), failures, mark)
        run.total = run.done
        await run.told()
        record.report = replace(run.report, seconds=time.monotonic() - run.started)
    return record.report


async def _start_run(
    corpus: str, store: PassageStore, record: RunRecord, lease: Lease, tell: Callable[[RefreshProgress], None]
) -> _RunState:
    """Finish what was cut short, and see what there is."""
    await store.recover()
    known, unwanted = await store.manifest.fingerprints(corpus), await store.manifest.forgotten(corpus)
    run = _RunState(corpus, store, record, lease, known, unwanted, tell)
    record.report = replace(record.report, forgotten=len(unwanted))
    await _remove_keys(run, [key for key in known if key in unwanted])
    return run


async def _read_all(run: _RunState, it: SourceReader, listing: Listing) -> BatchReader:
    """Take in what is listed, batch by batch."""
    looking = BatchReader(listing, run.known, unwanted=run.unwanted)
    it.begin(looking)
    while batch := await it.batch():
        # Before it reads on: two threads of Python would keep the interpreter from all others for longer.
        planned = await _plan_batch(run, batch, it)
        it.go_on()
        await _apply_batch(run, batch, planned)
        await run.told()
    return looking


_BatchPlan = tuple[list[DocumentChange], list[tuple[str, str]]]
"""What is to change, and of which documents that cannot be told, for what reasons."""


async def _plan_batch(run: _RunState, batch: DocumentBatch, it: SourceReader) -> _BatchPlan:
    if not batch.read:
        return [], []
    stored = await run.store.manifest.stored(run.corpus, [found.key for found, _ in batch.read])
    return await it.run(
        _plan_documents, run.corpus, batch, {key: StoredDocument(*rows) for key, rows in stored.items()}
    )


def _plan_documents(corpus: str, batch: DocumentBatch, stored: Mapping[str, StoredDocument]) -> _BatchPlan:
    changes: list[DocumentChange] = []
    failures: list[tuple[str, str]] = []
    for found, page in batch.read:
        there = stored.get(found.key, StoredDocument(None, ()))
        try:
            changes.append(isolate_errors(partial(plan_document, corpus, found, page, there)))
        except UnreadableDocument as error:
            failures.append((found.key, str(error)))
    return changes, failures


async def _apply_batch(run: _RunState, batch: DocumentBatch, planned: _BatchPlan) -> None:
    changes, failures = planned
    overtaken = {change.key for change in await run.store.apply(changes, run.lease)} if changes else set()
    made = [change for change in changes if change.key not in overtaken]
    if run.known:
        run.arrived.update(found.fingerprint for found, _ in batch.read if found.key not in run.known)
    run.done += batch.looked_at
    counted = count_changes(run.report, made, run.known)
    run.record.report = replace(
        counted,
        unchanged=counted.unchanged + batch.unchanged + len(overtaken),
        failures=(*counted.failures, *batch.failures, *failures),
    )


async def _retry_unread(run: _RunState, it: SourceReader, looking: BatchReader) -> None:
    """Read again what could not be read, or not to its end, and has not changed since, so that nobody lists it."""
    one = getattr(it.source, "one", None)
    failed = dict(await run.store.manifest.failures(run.corpus))
    unfinished = {key for key, fingerprint in run.known.items() if not fingerprint}
    owed = sorted((failed.keys() | unfinished) - looking.seen - looking.gone - set(run.unwanted))
    if one is None or not owed:
        return

    def items() -> Iterator[ListedItem]:
        with suppress(SingleReadUnsupported):  # then it owes them with its next listing
            yield from (item for key in owed if (item := one(key, run.known)) is not None)

    again = await _read_all(run, it, Listing(items(), whole=False))
    looking.seen |= again.seen
    looking.gone |= again.gone
    looking.withheld |= again.withheld


async def _remove_missing(run: _RunState, looking: BatchReader, *, most_removed: float) -> None:
    """Remove what is gone, unless it is too much to be true; what may no longer be shown is removed in any case."""
    whole = looking.listing.whole
    withheld = looking.withheld & run.known.keys()
    await _remove_keys(run, sorted(withheld))
    if whole and not looking.seen and most_removed < 1.0:
        kept = f" The {len(run.known):,} documents of “{run.corpus}” were left as they are." if run.known else ""
        hint = "Check its path and its include and exclude patterns."
        raise RefreshRefused(f"The source of “{run.corpus}” holds no documents.{kept}", hint=hint)
    unlisted = find_missing(run.known, looking.seen) if whole else ()
    absent = sorted({*unlisted, *looking.gone} - withheld)
    if not is_removal_suspicious(absent, run.known, run.arrived, most_removed):
        await _remove_keys(run, absent)
        return
    fault = (
        f"{len(absent):,} of {len(run.known):,} documents are no longer in the source of “{run.corpus}”: too many "
        f"to be removed unasked, so they were kept. `footnote ingest all --confirm-removal {run.corpus}` removes them."
    )
    run.record.report = replace(run.report, held_back=len(absent), fault=fault)


async def _collect_failures(run: _RunState, looking: BatchReader) -> list[tuple[str, str]]:
    """Return what cannot be read: of a listing of changes alone, also what could not be before and was not met."""
    failures = list(run.report.failures)
    if looking.listing.whole:
        return failures
    met = looking.seen | looking.gone
    return [*(row for row in await run.store.manifest.failures(run.corpus) if row[0] not in met), *failures]


async def _remove_keys(run: _RunState, keys: Collection[str]) -> None:
    for part in split_keys(keys):
        removals = await remove_documents(run.store, run.corpus, part, run.lease)
        run.record.report = count_changes(run.report, removals, run.known)


WRITE_ATTEMPTS = 3


async def refresh_document(source: LiveSource, corpus: str, store: PassageStore, address: str) -> RefreshReport | None:
    """Bring the document at an address up to date, and return what that took; None if the source has none there.

    One that was forgotten on purpose comes back: somebody asks for it by name.

    Args:
        source: Where it comes from.
        corpus: What it is read into.
        store: Where that is.
        address: Its address, or its key.

    Raises:
        RefreshRefused: A refresh changes it at the same time, again and again.
        SourceUnavailable: Or an error of the source's own.
        StorageError: What the store could not do.
    """
    started = time.monotonic()
    async with read_source(source) as it:
        known = await store.manifest.fingerprints(corpus)
        item = await it.run(source.one, address, known)
        if item is None:
            return None
        await store.manifest.remember(corpus, [item.key])
        await store.manifest.describe(corpus, reference=source.reference)
        report = await _apply_item(it, item, corpus, store, known)
    return replace(report, seconds=time.monotonic() - started)


async def forget_documents(store: PassageStore, corpus: str, keys: Collection[str]) -> RefreshReport:
    """Remove documents at once, and let no refresh bring them back; also while one is under way.

    When this returns, no search finds them; the indexes let go of them when nobody writes to them.

    Raises:
        StorageError: What the store could not do. What was noted before is removed by the next refresh.
    """
    await store.manifest.forget(corpus, keys)
    stored = await store.manifest.stored(corpus, keys)
    changes = [plan_removal(corpus, key, [passage.id for passage in rows[1]]) for key, rows in stored.items()]
    # Not by `apply`, which waits for whoever is writing to the indexes.
    await store.manifest.commit(changes)
    await store.tidy()
    return count_changes(RefreshReport(corpus), changes, {})


async def _apply_item(
    it: SourceReader, item: ListedItem, corpus: str, store: PassageStore, known: Mapping[str, str]
) -> RefreshReport:
    report = RefreshReport(corpus)
    if isinstance(item, DeletedDocument):
        return count_changes(report, await remove_documents(store, corpus, [item.key]), known)
    it.begin(BatchReader(Listing(iter([item]), whole=False), known))
    batch = await it.batch() or DocumentBatch()
    report = replace(report, unchanged=batch.unchanged, failures=tuple(batch.failures))
    for found, page in batch.read:
        try:
            change = await _apply_document(it, corpus, store, found, page)
        except UnreadableDocument as error:
            return replace(report, failures=((found.key, str(error)),))
        return count_changes(report, [change], known)
    return report


async def _apply_document(
    it: SourceReader, corpus: str, store: PassageStore, found: ChangedDocument, page: Page
) -> DocumentChange:
    for _ in range(WRITE_ATTEMPTS):
        stored = (await store.manifest.stored(corpus, [found.key])).get(found.key)
        there = StoredDocument(*stored) if stored else StoredDocument(None, ())
        change = await it.run(isolate_errors, partial(plan_document, corpus, found, page, there))
        if not await store.apply([change]):
            return change
    hint = "Run the command again once the refresh has ended."
    raise RefreshRefused(f"“{found.key}” of “{corpus}” is being changed by a refresh.", hint=hint)
