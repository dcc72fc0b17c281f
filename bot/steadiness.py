"""Keeps a turn steady while documents change under it: each is seen in one version, and what is gone is not cited.

A refresh switches a document from one moment to the next, and a turn searches several times. What it found first of a
document is what it goes on with; what was removed or replaced since then does not pass the gate any more.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from pipeline.kit import Search, Supports
from pipeline.types import Support
from storage.types import Document, Evidence, Hit, Passage, SearchQuery

GONE = "a passage that it cites was removed or changed meanwhile"

Join = Callable[[Collection[str], Collection[str]], Awaitable[Mapping[str, tuple[Passage, Document]]]]
"""Tells which of some passages stand now in some corpora, as `Manifest.join` does."""


def steady(search: Search) -> Search:
    """Return a search of one turn that leaves out what is of another version of a document than it found before."""
    versions: dict[tuple[str, str], Document] = {}

    async def searched(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        hits = await search(query, k)
        for hit in hits:
            versions.setdefault((hit.document.corpus, hit.document.key), hit.document)
        return tuple(hit for hit in hits if versions[hit.document.corpus, hit.document.key] == hit.document)

    return searched


def standing(supports: Supports, join: Join, scope: Collection[str]) -> Supports:
    """Return a check that also wants every passage to stand there still, at this moment."""

    async def supported(sentence: str, evidence: Sequence[Evidence]) -> Support:
        support = await supports(sentence, evidence)
        if not support.holds and not support.appealable:
            return support
        cited = {one.passage.id: one.passage.hash for one in evidence}
        there = await join(cited, scope)
        if all(key in there and there[key][0].hash == value for key, value in cited.items()):
            return support
        return Support(support.score, holds=False, reasons=(GONE,))

    return supported
