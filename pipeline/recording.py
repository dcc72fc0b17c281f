"""What a turn looked up: a search that notes every call as a `Step` and remembers every passage that it returned.

The gate (`saying.py`) lets through only what cites a passage remembered here, so that nothing can be cited that was
not found in this turn.
"""

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from pipeline.kit import Search
from pipeline.types import Event, FoundPassages, Searching
from storage.types import Hit, SearchQuery, Step


class Recorder:
    """Wraps the search of one turn; `recorder.search` is what goes into the kit."""

    def __init__(self, search: Search, *, tell: Callable[[Event], None]) -> None:
        self._search = search
        self._tell = tell
        self._steps: list[Step] = []
        self._found: dict[str, Hit] = {}

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every search so far, in the order in which they ended."""
        return tuple(self._steps)

    @property
    def found(self) -> Mapping[str, Hit]:
        """Every passage retrieved in this turn by its id, as first found; a live view that nobody else can write."""
        return MappingProxyType(self._found)

    async def search(self, query: SearchQuery, k: int) -> tuple[Hit, ...]:
        """Search as the wrapped search does, and note it. A search that fails is noted with its error and raises."""
        self._tell(Searching(query.text))
        started = time.perf_counter()
        try:
            hits = await self._search(query, k)
        except Exception as error:
            self._note(query, k, started, {"error": f"{type(error).__name__}: {error}"})
            raise
        self._note(query, k, started, {"hits": tuple((hit.passage.id, hit.score) for hit in hits)})
        for hit in hits:
            self._found.setdefault(hit.passage.id, hit)
        self._tell(FoundPassages(query.text, hits))
        return hits

    def nearest(self, limit: int) -> tuple[Hit, ...]:
        """Return the first passage found of each page, at most `limit` of them, in the order in which they came."""
        pages: dict[tuple[str, str], Hit] = {}
        for hit in self._found.values():
            pages.setdefault((hit.document.corpus, hit.document.key), hit)
        return tuple(pages.values())[:limit]

    def _note(self, query: SearchQuery, k: int, started: float, outcome: Mapping[str, object]) -> None:
        facts = {"query": query.text, "time": query.time, "k": k, **outcome}
        self._steps.append(Step("search", facts, (time.perf_counter() - started) * 1000))
