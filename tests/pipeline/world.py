"""A small world for systems: pages written in the test, a search by shared words, and a kit around a real gate."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from pipeline import unconfigured
from pipeline.kit import Kit, Limits, System
from pipeline.recording import Recorder
from pipeline.saying import Gate
from pipeline.supporting import stands_verbatim
from pipeline.types import Answer, Conversation, Event, Status, Turn
from storage.language.words import content_terms
from storage.types import Document, Hit, Kind, Passage, SearchQuery

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def hit(
    text: str,
    *,
    key: str = "page.md",
    title: str = "Page",
    section: str = "",
    date: datetime | None = None,
    kind: Kind = Kind.PROSE,
    position: int = 0,
    score: float = 1.0,
) -> Hit:
    """Return a hit of one passage that stands in a page of its own unless told otherwise."""
    passage = Passage(f"{key}#{position}", "handbook", key, section, text, position, f"hash of {text}", kind)
    document = Document("handbook", key, title, url=f"https://example.org/{key}", date=date, language="en")
    return Hit(passage, document, score, dense=0.5, lexical=1.0)


@dataclass
class Shelf:
    """Searches its hits by shared words, best first, and compares texts by them too."""

    hits: Sequence[Hit]
    queries: list[str] = field(default_factory=list)

    async def search(self, query: SearchQuery, k: int) -> tuple[Hit, ...]:
        """Return the hits that share a word with the query."""
        self.queries.append(query.text)
        found = [
            Hit(one.passage, one.document, score=20 * alike, dense=alike, lexical=10 * alike)
            for one in self.hits
            if (alike := _alike(query.text, f"{one.document.title} {one.passage.section} {one.passage.text}"))
        ]
        return tuple(sorted(found, key=lambda one: -one.score)[:k])

    async def compare(self, text: str, others: Sequence[str]) -> tuple[float, ...]:
        """Return the share of words that texts have in common."""
        return tuple(_alike(text, other) for other in others)


@dataclass(frozen=True)
class Told:
    """How a turn ended, and what could be watched on the way."""

    answer: Answer
    gate: Gate
    recorder: Recorder
    events: Sequence[Event]


async def run(system: System, talk: Conversation, shelf: Shelf, limits: Limits = Limits()) -> Told:  # noqa: B008 - frozen
    """Run a system in this world, as the bot does."""
    events: list[Event] = []
    recorder = Recorder(shelf.search, tell=events.append)
    gate = Gate(found=recorder.found, supports=stands_verbatim, tell=events.append)
    kit = Kit(
        ask=unconfigured.ask,
        stream=unconfigured.stream,
        search=recorder.search,
        compare=shelf.compare,
        supports=stands_verbatim,
        say=gate.say,
        tell=events.append,
        limits=limits,
        now=NOW,
        random=Random(1),
    )
    status = await system(talk, kit)
    return Told(gate.answer(status, nearest=recorder.nearest(3)), gate, recorder, events)


def question(text: str, *earlier: Turn) -> Conversation:
    """Return a conversation that ends in a question."""
    return Conversation((*earlier, Turn("user", text)))


def answered(told: Told) -> list[str]:
    """Return the sentences of an answered turn."""
    assert told.answer.status is Status.ANSWERED
    return [sentence.text for sentence in told.answer.sentences]


def _alike(one: str, other: str) -> float:
    left, right = set(content_terms(one)), set(content_terms(other))
    return len(left & right) / len(left) if left else 0.0
