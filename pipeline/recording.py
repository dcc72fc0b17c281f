"""What a turn did: a search that notes every call as a `Step` and remembers every passage that it returned.

Calls of a language model are noted by whoever makes them (`asking.py`), claims by listening to what is told. The gate
(`saying.py`) lets through only what cites a passage remembered here, so that nothing can be cited that was not found
in this turn.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pipeline.kit import Search
from pipeline.types import ClaimChecked, ClaimExplained, Event, FoundPassages, Searching, Usage
from storage.types import CheckedClaim, Hit, SearchQuery, Step


@dataclass(frozen=True, slots=True)
class Noted:
    """A step, and when it began and ended on `time.perf_counter()`."""

    step: Step
    began: float
    ended: float


class Recorder:
    """Wraps the search of one turn; `recorder.search` and `recorder.tell` are what go into the kit."""

    def __init__(self, search: Search, *, tell: Callable[[Event], None]) -> None:
        self._search = search
        self._tell = tell
        self._noted: list[Noted] = []
        self._calls: list[Noted] = []
        self._claims: list[CheckedClaim] = []
        self._found: dict[str, Hit] = {}

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every search and model call so far, in the order in which they began."""
        return tuple(noted.step for noted in sorted(self._noted, key=lambda noted: noted.began))

    @property
    def found(self) -> Mapping[str, Hit]:
        """Every passage retrieved in this turn by its id, as first found; a live view that nobody else can write."""
        return MappingProxyType(self._found)

    @property
    def claims(self) -> tuple[CheckedClaim, ...]:
        """Every claim of the model's own that was verified, whatever its verdict, in the order in which it was."""
        return tuple(self._claims)

    @property
    def usage(self) -> Usage:
        """What the model calls noted so far took; see `Usage` for what a round is."""
        asked = [noted for noted in self._calls if noted.step.facts.get("attempts")]
        facts = [noted.step.facts for noted in asked]
        costs = [one["cost"] for one in facts if "cost" in one]
        return Usage(
            llm_calls=len(asked),
            llm_rounds=_rounds(asked),
            prompt_tokens=sum(one.get("prompt_tokens", 0) for one in facts),
            completion_tokens=sum(one.get("completion_tokens", 0) for one in facts),
            cost=None if not costs or None in costs else sum(costs),
        )

    def tell(self, event: Event) -> None:
        """Pass an event on, and remember the claim in it if there is one; an explained one in the place of the bare."""
        if isinstance(event, ClaimChecked):
            self._claims.append(event.checked)
        if isinstance(event, ClaimExplained):
            told = event.checked.claim
            self._claims = [event.checked if one.claim == told else one for one in self._claims]
        self._tell(event)

    def note(self, step: Step, began: float) -> None:
        """Note a model call that has just ended, `began` on `time.perf_counter()`."""
        noted = Noted(step, began, time.perf_counter())
        self._noted.append(noted)
        self._calls.append(noted)

    async def search(self, query: SearchQuery, k: int) -> tuple[Hit, ...]:
        """Search as the wrapped search does, and note it. A search that fails is noted with its error and raises."""
        self._tell(Searching("" if query.unchecked else query.text))
        began = time.perf_counter()
        try:
            hits = await self._search(query, k)
        except BaseException as error:
            self._note(query, k, began, {"error": f"{type(error).__name__}: {error}".rstrip(": ")})
            raise
        self._note(query, k, began, {"hits": tuple(map(_hit, hits))})
        for hit in hits:
            self._found.setdefault(hit.passage.id, hit)
        self._tell(FoundPassages("" if query.unchecked else query.text, hits))
        return hits

    def nearest(self, limit: int) -> tuple[Hit, ...]:
        """Return the first passage found of each page, at most `limit` of them, in the order in which they came."""
        pages: dict[tuple[str, str], Hit] = {}
        for hit in self._found.values():
            pages.setdefault((hit.document.corpus, hit.document.key), hit)
        return tuple(pages.values())[:limit]

    def _note(self, query: SearchQuery, k: int, began: float, outcome: Mapping[str, object]) -> None:
        facts = {"query": query.text, "time": query.time, "k": k, **outcome}
        ended = time.perf_counter()
        self._noted.append(Noted(Step("search", facts, (ended - began) * 1000), began, ended))


def _hit(hit: Hit) -> tuple[str, float, str]:
    """Say what was found: whoever may see it is decided by its corpus."""
    return hit.passage.id, hit.score, hit.passage.corpus


def _rounds(calls: list[Noted]) -> int:
    """Return how many of the calls can be chosen so that none overlaps another.

    What a call waited for is not known here: calls that need nothing of each other count as two where the load of the
    server put one behind the other. `footnote evaluate speed turn` follows what was waited for.
    """
    rounds, free = 0, float("-inf")
    for call in sorted(calls, key=lambda call: call.ended):
        if call.began >= free:
            rounds, free = rounds + 1, call.ended
    return rounds
