"""Which pages that answers cite were forgotten since: `footnote forget` took them away, and they are shown no more."""

from collections.abc import Iterable

from bot.app import App
from storage.types import Citation


async def forgotten_among(app: App, citations: Iterable[Citation]) -> frozenset[tuple[str, str]]:
    """Return the corpus and key of each page that was forgotten. Raises `StorageError`."""
    pages = {(one.corpus, one.document) for one in citations}
    gone = {corpus: await app.manifest.forgotten(corpus) for corpus in {corpus for corpus, _ in pages}}
    return frozenset((corpus, key) for corpus, key in pages if key in gone[corpus])
