"""Everything that a system may touch, and what a system is."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Protocol

from pipeline.types import CitedSentence, Conversation, Event, Status, Support
from storage.types import Hit, Passage, SearchQuery


class Search(Protocol):
    """Bound to the scope of the turn."""

    async def __call__(self, query: SearchQuery, k: int) -> tuple[Hit, ...]:
        """Return at most `k` hits, best first. Raises `SearchUnavailable`: an outage is never an empty result."""
        ...


class Compare(Protocol):
    """How alike texts are in meaning, by the embedder that the passages were indexed with."""

    async def __call__(self, text: str, others: Sequence[str]) -> tuple[float, ...]:
        """Return the cosine of `text` with each of `others`, -1 to 1."""
        ...


class Supports(Protocol):
    """The local check: does what these passages say support this sentence?"""

    async def __call__(self, sentence: str, passages: Sequence[Passage]) -> Support:
        """Decide, without a model server."""
        ...


class Say(Protocol):
    """The only way text leaves a system; the gate stands here."""

    async def __call__(self, sentence: CitedSentence) -> bool:
        """Return whether the sentence was let through."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a turn may use."""

    passages: int = 10
    """How many passages a search returns to a system."""
    sentences: int = 3
    """How many sentences a quoted answer has at most."""
    question_characters: int = 4_000
    """Longer questions are refused: no embedder reads them and no person wrote them."""
    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Kit:
    """What a system gets besides the conversation. Nothing else reaches it."""

    search: Search
    compare: Compare
    supports: Supports
    say: Say
    tell: Callable[[Event], None]
    """Never blocks: what the channel shows while it waits."""
    limits: Limits
    now: datetime
    random: Random


System = Callable[[Conversation, Kit], Awaitable[Status]]
"""A system: it says its answer through `kit.say`, sentence by sentence, and returns how the turn ended."""
