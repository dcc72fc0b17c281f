"""Keeps a turn steady while documents change under it: each is seen in one version, and what is gone is not cited.

A refresh switches a document from one moment to the next, and a turn searches several times. What it found first of a
document is what it goes on with; what was removed since then does not pass the gate any more.
"""

from collections.abc import Awaitable, Callable, Sequence

from pipeline.kit import Search, Supports
from pipeline.types import Support
from storage.types import Document, Evidence, Hit, SearchQuery

GONE = "a document that it cites was removed meanwhile"

There = Callable[[str, str], Awaitable[Document | None]]
"""Returns the document of a corpus and a key as it is now, as `Manifest.document` does; None where there is none."""


def steady(search: Search) -> Search:
    """Return a search of one turn that leaves out what is of another version of a document than it found before."""
    versions: dict[tuple[str, str], Document] = {}

    async def searched(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        hits = await search(query, k)
        for hit in hits:
            versions.setdefault((hit.document.corpus, hit.document.key), hit.document)
        return tuple(hit for hit in hits if versions[hit.document.corpus, hit.document.key] == hit.document)

    return searched


def standing(supports: Supports, there: There) -> Supports:
    """Return a check that also wants every document to be there still, at this moment.

    One that has a new version by now may be cited in the old one: that is what this turn has seen of it.
    """

    async def supported(sentence: str, evidence: Sequence[Evidence]) -> Support:
        support = await supports(sentence, evidence)
        if not support.holds and not support.appealable:
            return support
        for corpus, key in dict.fromkeys((one.document.corpus, one.document.key) for one in evidence):
            if await there(corpus, key) is None:
                return Support(support.score, holds=False, reasons=(GONE,))
        return support

    return supported
