"""Brings a corpus up to date with its source: what changed is planned purely, then applied, resumable at any moment.

A document whose fingerprint the manifest knows is not even read. Of one that changed, only the passages that are new
are indexed. A refresh that is cut short is simply run again.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import TypeVar

from ingest import cleaning
from ingest.chunking import passages as cut
from ingest.types import Found, Gone, Item, Page, Source, Unreadable, UnreadableDocument
from storage.passages import PassageStore
from storage.types import Document, DocumentChange, Passage
from storage.workers import Worker

BATCH_PASSAGES = 512
"""After about so many new passages they are written; a crash repeats at most so much work."""
BATCH_DOCUMENTS = 256

_Made = TypeVar("_Made")


class RefreshRefused(Exception):
    """The refresh would do harm, or has nothing to do it with. `str()` is one line; `hint` says what to do."""

    kind = "refresh_refused"

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """What a refresh added, changed, removed and could not read: documents, then passages."""

    corpus: str
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    passages_added: int = 0
    passages_removed: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0

    @property
    def failed(self) -> int:
        """How many documents could not be read."""
        return len(self.failures)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a refresh has come. `total` is None where the source cannot know before it has been read."""

    done: int
    total: int | None
    passages: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Batch:
    """What one look into the source brought."""

    read: tuple[tuple[Found, Page], ...]
    failures: tuple[tuple[str, str], ...]
    unchanged: tuple[str, ...]
    gone: tuple[str, ...] = ()
    """Documents that the source says it has no longer."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Every document that the source still has."""
        return (*(found.key for found, _ in self.read), *(key for key, _ in self.failures), *self.unchanged)


@dataclass(frozen=True, slots=True)
class Stored:
    """What the manifest holds of a document: its row, None when it is new, and its passages in order."""

    document: Document | None
    passages: tuple[Passage, ...]


def plan_document(corpus: str, found: Found, page: Page, stored: Stored) -> DocumentChange:
    """Decide what becomes of the passages of one document that was read anew; pure.

    A passage that the indexes know as it is, title included, is kept; only its position may move.
    """
    new = cut(corpus, found.key, page)
    document = document_of(corpus, found, page)
    known = {passage.id: passage.hash for passage in stored.passages}
    if new and _first_differs(document, new, stored):
        known[new[0].id] = ""
    ids = {passage.id for passage in new}
    return DocumentChange(
        corpus=corpus,
        key=found.key,
        document=document,
        add=tuple(passage for passage in new if known.get(passage.id) != passage.hash),
        keep=tuple(passage for passage in new if known.get(passage.id) == passage.hash),
        drop=tuple(passage.id for passage in stored.passages if passage.id not in ids),
    )


def _first_differs(document: Document, new: Sequence[Passage], stored: Stored) -> bool:
    """Return whether another passage is to be found by the aliases, or the same by other aliases."""
    aliases = stored.document.aliases if stored.document else ()
    if document.aliases != aliases:
        return True
    return bool(aliases) and [passage.id for passage in stored.passages[:1]] != [new[0].id]


def document_of(corpus: str, found: Found, page: Page) -> Document:
    """Return the manifest's row of a page that was read."""
    return Document(
        corpus=corpus,
        key=found.key,
        title=page.title,
        url=page.url,
        revision=page.revision,
        date=page.date,
        language=page.language,
        fingerprint=found.fingerprint,
        aliases=page.aliases,
        disambiguation=page.disambiguation,
    )


def tally(report: RefreshReport, changes: Sequence[DocumentChange], known: Mapping[str, str]) -> RefreshReport:
    """Return the report with these changes counted in; pure."""
    written = [change for change in changes if change.document]
    return replace(
        report,
        added=report.added + sum(change.key not in known for change in written),
        changed=report.changed + sum(change.key in known for change in written),
        removed=report.removed + len(changes) - len(written),
        passages_added=report.passages_added + sum(len(change.add) for change in changes),
        passages_removed=report.passages_removed + sum(len(change.drop) for change in changes),
    )


def gone(known: Mapping[str, str], seen: Collection[str]) -> list[str]:
    """Return the keys of the documents that a source no longer has; pure.

    What lies in a folder that could not be listed, whose key ends in a slash, is not gone, only out of sight.
    """
    hidden = tuple(key for key in seen if key.endswith("/"))
    return sorted(key for key in known if key not in seen and not key.startswith(hidden))


def look(items: Iterator[Item], known: Mapping[str, str]) -> Batch | None:
    """Read on in a source until there is a batch of changed documents; None at its end. Blocks."""
    read: list[tuple[Found, Page]] = []
    failures: list[tuple[str, str]] = []
    unchanged: list[str] = []
    absent: list[str] = []
    words = 0
    for item in islice(items, BATCH_DOCUMENTS):
        if isinstance(item, Unreadable):
            failures.append((item.key, cleaning.text(item.reason)))
        elif isinstance(item, Gone):
            absent.append(item.key)
        elif known.get(item.key) == item.fingerprint:
            unchanged.append(item.key)
        else:
            try:
                read.append((item, _alone(partial(_page, item))))
            except UnreadableDocument as error:
                failures.append((item.key, cleaning.text(str(error))))
            else:
                words += sum(len(block.text) for section in read[-1][1].sections for block in section.blocks) // 6
        if words >= BATCH_PASSAGES * 100:
            break
    batch = Batch(tuple(read), tuple(failures), tuple(unchanged), tuple(absent))
    return batch if batch.keys or batch.gone else None


def _page(found: Found) -> Page:
    return cleaning.cleaned(found.load())


def _alone(work: Callable[[], _Made]) -> _Made:
    """Do the work of one document: whatever goes wrong over it must not stop the others."""
    try:
        return work()
    except (UnreadableDocument, MemoryError):
        raise
    except Exception as error:  # The libraries below may raise anything over an odd file
        raise UnreadableDocument(cleaning.reason(error)) from error


@dataclass
class _Run:
    """One refresh as it goes: the only thing here that changes."""

    report: RefreshReport
    seen: set[str] = field(default_factory=set)
    started: float = field(default_factory=time.monotonic)

    def progress(self, total: int | None) -> Progress:
        return Progress(len(self.seen), total, self.report.passages_added, time.monotonic() - self.started)


async def refresh(
    source: Source, corpus: str, store: PassageStore, *, progress: Callable[[Progress], None]
) -> RefreshReport:
    """Bring `corpus` up to date with `source`, and return what that took.

    Reading runs a batch ahead of embedding, in a thread of its own. A document that cannot be read now keeps the
    version that could be; one that the source no longer lists is removed.

    Raises:
        RefreshRefused: the source holds no document at all.
        StorageError: what the store could not do; what was applied before stays.
    """
    manifest = store.manifest
    await store.recover()
    known = await manifest.fingerprints(corpus)
    run = _Run(RefreshReport(corpus))
    with Worker("ingest-read") as reader:
        total = await reader.run(source.expected)
        items = source.documents(known).items
        await manifest.describe(corpus, reference=source.reference)
        ahead = asyncio.create_task(reader.run(look, items, known))
        try:
            while batch := await ahead:
                # Before it reads on: two threads of Python would keep the interpreter from all others for longer.
                planned = await _planned(batch, corpus, store, reader)
                ahead = asyncio.create_task(reader.run(look, items, known))
                await _take_in(batch, planned, store, known, run)
                await _remove([key for key in batch.gone if key in known], corpus, store, known, run)
                progress(run.progress(total))
        finally:
            ahead.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await ahead
    _refuse_emptiness(run, corpus, known)
    await _remove(gone(known, run.seen), corpus, store, known, run)
    await manifest.finish(corpus, datetime.now(UTC), run.report.failures)
    progress(run.progress(len(run.seen)))
    return replace(run.report, seconds=time.monotonic() - run.started)


async def _planned(
    batch: Batch, corpus: str, store: PassageStore, reader: Worker
) -> tuple[list[DocumentChange], list[tuple[str, str]]]:
    """Return what is to change, and of which documents that cannot be told, for what reasons."""
    changes: list[DocumentChange] = []
    failures: list[tuple[str, str]] = []
    for found, page in batch.read:
        stored = await _stored(store, corpus, found)
        try:
            changes.append(await reader.run(_alone, partial(plan_document, corpus, found, page, stored)))
        except UnreadableDocument as error:
            failures.append((found.key, str(error)))
    return changes, failures


async def _take_in(
    batch: Batch,
    planned: tuple[list[DocumentChange], list[tuple[str, str]]],
    store: PassageStore,
    known: Mapping[str, str],
    run: _Run,
) -> None:
    changes, failures = planned
    if changes:
        await store.apply(changes)
    run.seen.update(batch.keys)
    counted = tally(run.report, changes, known)
    run.report = replace(
        counted,
        unchanged=counted.unchanged + len(batch.unchanged),
        failures=(*counted.failures, *batch.failures, *failures),
    )


async def _stored(store: PassageStore, corpus: str, found: Found) -> Stored:
    document = await store.manifest.document(corpus, found.key)
    return Stored(document, await store.manifest.passages_of(corpus, found.key) if document else ())


def _refuse_emptiness(run: _Run, corpus: str, known: Mapping[str, str]) -> None:
    if run.seen:
        return
    kept = f" The {len(known):,} documents of “{corpus}” were left as they are." if known else ""
    raise RefreshRefused(
        f"The source of “{corpus}” holds no documents.{kept}",
        hint="Check its path and its include and exclude patterns.",
    )


async def _remove(keys: Sequence[str], corpus: str, store: PassageStore, known: Mapping[str, str], run: _Run) -> None:
    for start in range(0, len(keys), BATCH_DOCUMENTS):
        part = keys[start : start + BATCH_DOCUMENTS]
        stored = {key: await store.manifest.passages_of(corpus, key) for key in part}
        removals = [DocumentChange(corpus, key, None, drop=tuple(p.id for p in stored[key])) for key in part]
        await store.apply(removals)
        run.report = tally(run.report, removals, known)
