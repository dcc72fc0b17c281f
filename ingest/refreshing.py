"""Brings a corpus up to date with its source: what changed is planned purely, then applied, resumable at any moment.

A document whose fingerprint the manifest knows is not even read. Of one that changed, only the passages that are new
are indexed. A refresh that is cut short is simply run again. One document alone is `ingest.single`'s.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from ingest.converting import READER_VERSION
from ingest.holding import SECONDS, Clock, held, now
from ingest.looking import Batch, Looking, alone
from ingest.planning import Stored, gone, plan_document, tally, too_many
from ingest.reading import Reading, reading
from ingest.recording import Record, recorded
from ingest.removing import parts, remove
from ingest.reports import Progress, RefreshRefused, RefreshReport
from ingest.telling import doing, telling
from ingest.types import Item, Listing, ReadAsWhole, Source, UnreadableDocument
from ingest.wikitext.reading import VERSION
from storage.passages import PassageStore
from storage.refresh_types import Lease, Mark
from storage.types import DocumentChange

__all__ = ["Progress", "RefreshRefused", "RefreshReport", "refresh"]

MOST_REMOVED = 0.2
"""The share of a corpus that is removed unasked when its source lists it no more."""


@dataclass
class _Run:
    """One refresh as it goes: the only thing here that changes."""

    corpus: str
    store: PassageStore
    record: Record
    lease: Lease
    known: Mapping[str, str]
    unwanted: Collection[str]
    tell: Callable[[Progress], None]
    done: int = 0
    arrived: set[str] = field(default_factory=set)
    """The fingerprints of documents that are new, where there were others before."""
    total: int | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def report(self) -> RefreshReport:
        return self.record.report

    async def told(self, doing: str = "") -> None:
        step = Progress(self.done, self.total, self.report.passages_added, time.monotonic() - self.started, doing)
        self.tell(step)
        await self.record.progress(step)


async def refresh(
    source: Source,
    corpus: str,
    store: PassageStore,
    *,
    progress: Callable[[Progress], None],
    most_removed: float = MOST_REMOVED,
    confirm_removal: bool = False,
    source_digest: str = "",
    night: datetime | None = None,
    clock: Clock = now,
    lease_seconds: float = SECONDS,
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
        held(store.leases, corpus, clock=clock, seconds=lease_seconds) as lease,
        recorded(store.runs, RefreshReport(corpus), lease.owner, night, clock) as record,
        reading(source) as it,
    ):
        run = await _begun(corpus, store, record, lease, progress)
        run.total = await it.run(source.expected)
        before, of = await store.manifest.mark(corpus), f"{source_digest}/{READER_VERSION}/{VERSION}"
        async with telling(source, lambda: run.told(doing(source))):
            listing = await it.run(source.documents, run.known, before.mark if before.of == of else "")
        if run.total is None:  # what is downloaded to be listed can be counted now
            run.total = await it.run(source.expected)
        record.report = replace(record.report, edition=listing.edition)
        await store.manifest.describe(corpus, reference=source.reference)
        looking = await _all(run, it, listing)
        if not listing.whole:
            await _owed(run, it, looking)
            unnamed = run.known.keys() - looking.seen - looking.gone - set(run.unwanted)
            record.report = replace(run.report, unchanged=run.report.unchanged + len(unnamed))
        await _settle(run, looking, most_removed=1.0 if confirm_removal else most_removed)
        mark = Mark(await it.run(listing.mark), of, listing.edition)
        if run.report.held_back:  # they are to be listed again
            mark = Mark(before.mark, before.of, listing.edition)
        failures = await _unread(run, looking)
        await store.manifest.finish(corpus, clock(), failures, mark)
        run.total = run.done
        await run.told()
        record.report = replace(run.report, seconds=time.monotonic() - run.started)
    return record.report


async def _begun(
    corpus: str, store: PassageStore, record: Record, lease: Lease, tell: Callable[[Progress], None]
) -> _Run:
    """Finish what was cut short, and see what there is."""
    await store.recover()
    known, unwanted = await store.manifest.fingerprints(corpus), await store.manifest.forgotten(corpus)
    run = _Run(corpus, store, record, lease, known, unwanted, tell)
    record.report = replace(record.report, forgotten=len(unwanted))
    await _remove(run, [key for key in known if key in unwanted])
    return run


async def _all(run: _Run, it: Reading, listing: Listing) -> Looking:
    """Take in what is listed, batch by batch."""
    looking = Looking(listing, run.known, unwanted=run.unwanted)
    it.begin(looking)
    while batch := await it.batch():
        # Before it reads on: two threads of Python would keep the interpreter from all others for longer.
        planned = await _planned(run, batch, it)
        it.go_on()
        await _take_in(run, batch, planned)
        await run.told()
    return looking


Planned = tuple[list[DocumentChange], list[tuple[str, str]]]
"""What is to change, and of which documents that cannot be told, for what reasons."""


async def _planned(run: _Run, batch: Batch, it: Reading) -> Planned:
    if not batch.read:
        return [], []
    stored = await run.store.manifest.stored(run.corpus, [found.key for found, _ in batch.read])
    return await it.run(_plans, run.corpus, batch, {key: Stored(*rows) for key, rows in stored.items()})


def _plans(corpus: str, batch: Batch, stored: Mapping[str, Stored]) -> Planned:
    changes: list[DocumentChange] = []
    failures: list[tuple[str, str]] = []
    for found, page in batch.read:
        there = stored.get(found.key, Stored(None, ()))
        try:
            changes.append(alone(partial(plan_document, corpus, found, page, there)))
        except UnreadableDocument as error:
            failures.append((found.key, str(error)))
    return changes, failures


async def _take_in(run: _Run, batch: Batch, planned: Planned) -> None:
    changes, failures = planned
    overtaken = {change.key for change in await run.store.apply(changes, run.lease)} if changes else set()
    made = [change for change in changes if change.key not in overtaken]
    if run.known:
        run.arrived.update(found.fingerprint for found, _ in batch.read if found.key not in run.known)
    run.done += batch.looked_at
    counted = tally(run.report, made, run.known)
    run.record.report = replace(
        counted,
        unchanged=counted.unchanged + batch.unchanged + len(overtaken),
        failures=(*counted.failures, *batch.failures, *failures),
    )


async def _owed(run: _Run, it: Reading, looking: Looking) -> None:
    """Read again what could not be read, or not to its end, and has not changed since, so that nobody lists it."""
    one = getattr(it.source, "one", None)
    failed = dict(await run.store.manifest.failures(run.corpus))
    unfinished = {key for key, fingerprint in run.known.items() if not fingerprint}
    owed = sorted((failed.keys() | unfinished) - looking.seen - looking.gone - set(run.unwanted))
    if one is None or not owed:
        return

    def items() -> Iterator[Item]:
        with suppress(ReadAsWhole):  # then it owes them with its next listing
            yield from (item for key in owed if (item := one(key, run.known)) is not None)

    again = await _all(run, it, Listing(items(), whole=False))
    looking.seen |= again.seen
    looking.gone |= again.gone
    looking.withheld |= again.withheld


async def _settle(run: _Run, looking: Looking, *, most_removed: float) -> None:
    """Remove what is gone, unless it is too much to be true; what may no longer be shown is removed in any case."""
    whole = looking.listing.whole
    withheld = looking.withheld & run.known.keys()
    await _remove(run, sorted(withheld))
    if whole and not looking.seen and most_removed < 1.0:
        kept = f" The {len(run.known):,} documents of “{run.corpus}” were left as they are." if run.known else ""
        hint = "Check its path and its include and exclude patterns."
        raise RefreshRefused(f"The source of “{run.corpus}” holds no documents.{kept}", hint=hint)
    unlisted = gone(run.known, looking.seen) if whole else ()
    absent = sorted({*unlisted, *looking.gone} - withheld)
    if not too_many(absent, run.known, run.arrived, most_removed):
        await _remove(run, absent)
        return
    fault = (
        f"{len(absent):,} of {len(run.known):,} documents are no longer in the source of “{run.corpus}”: too many "
        f"to be removed unasked, so they were kept. `footnote ingest all --confirm-removal {run.corpus}` removes them."
    )
    run.record.report = replace(run.report, held_back=len(absent), fault=fault)


async def _unread(run: _Run, looking: Looking) -> list[tuple[str, str]]:
    """Return what cannot be read: of a listing of changes alone, also what could not be before and was not met."""
    failures = list(run.report.failures)
    if looking.listing.whole:
        return failures
    met = looking.seen | looking.gone
    return [*(row for row in await run.store.manifest.failures(run.corpus) if row[0] not in met), *failures]


async def _remove(run: _Run, keys: Collection[str]) -> None:
    for part in parts(keys):
        removals = await remove(run.store, run.corpus, part, run.lease)
        run.record.report = tally(run.report, removals, run.known)
