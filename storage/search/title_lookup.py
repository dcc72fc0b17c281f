"""Find documents by an exact title, or by another title: that of a redirect."""

from collections.abc import AsyncIterator, Sequence

from storage.database.document_versions import StoredVersion
from storage.passages import PassageStore

_SOUGHT = 50  # passages by words among which the first one of a page with that other title is sought


async def find_titled(store: PassageStore, title: str, corpora: Sequence[str]) -> AsyncIterator[StoredVersion]:
    """Yield the documents of these corpora that have a title, then those that have it as another one.

    No table lists other titles: the lexical index finds the first passages of documents by them. A title that is a
    common word may be missed.
    """
    refs = await store.manifest.find(title)
    for ref in refs:
        if ref.corpus in corpora and ref.title == title:
            for version in (await store.manifest.stored(ref.corpus, [ref.key])).values():
                yield version
    places, _ = await store.threads.read.run(store.lexical.search, title, corpora, _SOUGHT)
    for version in await store.manifest.versions({number for number, _ in places}):
        document = version.document
        if title in document.aliases and (current := await store.manifest.stored(document.corpus, [document.key])):
            yield current[document.key]
