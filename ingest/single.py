"""One document alone: brought up to date, or forgotten, within seconds, also while its corpus is being refreshed."""

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

from ingest.looking import Batch, Looking, alone
from ingest.planning import Stored, plan_document, tally
from ingest.reading import Reading, reading
from ingest.removing import removal, remove
from ingest.reports import RefreshRefused, RefreshReport
from ingest.types import Found, Gone, Item, Listing, LiveSource, Page, UnreadableDocument
from storage.passages import PassageStore
from storage.types import DocumentChange

TRIES = 3


async def refresh_one(source: LiveSource, corpus: str, store: PassageStore, address: str) -> RefreshReport | None:
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
    async with reading(source) as it:
        known = await store.manifest.fingerprints(corpus)
        item = await it.run(source.one, address, known)
        if item is None:
            return None
        await store.manifest.remember(corpus, [item.key])
        await store.manifest.describe(corpus, reference=source.reference)
        report = await _taken_in(it, item, corpus, store, known)
    return replace(report, seconds=time.monotonic() - started)


async def forget(store: PassageStore, corpus: str, keys: Collection[str]) -> RefreshReport:
    """Remove documents at once, and let no refresh bring them back; also while one is under way.

    When this returns, no search finds them; the indexes let go of them when nobody writes to them.

    Raises:
        StorageError: What the store could not do. What was noted before is removed by the next refresh.
    """
    await store.manifest.forget(corpus, keys)
    stored = await store.manifest.stored(corpus, keys)
    changes = [removal(corpus, key, [passage.id for passage in rows[1]]) for key, rows in stored.items()]
    # Not by `apply`, which waits for whoever is writing to the indexes.
    await store.manifest.commit(changes)
    await store.tidy()
    return tally(RefreshReport(corpus), changes, {})


async def _taken_in(
    it: Reading, item: Item, corpus: str, store: PassageStore, known: Mapping[str, str]
) -> RefreshReport:
    report = RefreshReport(corpus)
    if isinstance(item, Gone):
        return tally(report, await remove(store, corpus, [item.key]), known)
    it.begin(Looking(Listing(iter([item]), whole=False), known))
    batch = await it.batch() or Batch()
    report = replace(report, unchanged=batch.unchanged, failures=tuple(batch.failures))
    for found, page in batch.read:
        try:
            change = await _applied(it, corpus, store, found, page)
        except UnreadableDocument as error:
            return replace(report, failures=((found.key, str(error)),))
        return tally(report, [change], known)
    return report


async def _applied(it: Reading, corpus: str, store: PassageStore, found: Found, page: Page) -> DocumentChange:
    for _ in range(TRIES):
        stored = (await store.manifest.stored(corpus, [found.key])).get(found.key)
        there = Stored(*stored) if stored else Stored(None, ())
        change = await it.run(alone, partial(plan_document, corpus, found, page, there))
        if not await store.apply([change]):
            return change
    hint = "Run the command again once the refresh has ended."
    raise RefreshRefused(f"“{found.key}” of “{corpus}” is being changed by a refresh.", hint=hint)
