"""An environment for systems: pages of the test, a search by shared words, and a kit with a real gate.

A scripted model, if there is one, is called through the real prompts.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any

from pipeline import kit
from pipeline.gate import Gate, Recorder
from pipeline.kit import Kit, Limits, Supports, System, SystemEntry
from pipeline.llm.model import LLM, BudgetMeter
from pipeline.prompts.demo_ranking import TurnDemos
from pipeline.prompts.prompter import Prompter
from pipeline.stages.draft.sentence_judging import SentenceJudge
from pipeline.support.support_check import check_verbatim
from pipeline.types import Answer, Conversation, Demonstration, Event, Status, Support, Turn
from storage.language.words import content_terms
from storage.types import Document, Evidence, Hit, Passage, PassageKind, SearchQuery

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def hit(
    text: str,
    *,
    key: str = "page.md",
    title: str = "Page",
    section: str = "",
    date: datetime | None = None,
    kind: PassageKind = PassageKind.PROSE,
    position: int = 0,
    score: float = 1.0,
    language: str = "en",
) -> Hit:
    """Return a hit of one passage, by default on its own page."""
    passage = Passage(f"{key}#{position}", "handbook", key, section, text, position, f"hash of {text}", kind)
    document = Document("handbook", key, title, url=f"https://example.org/{key}", date=date, language=language)
    return Hit(passage, document, score, dense=0.5, lexical=1.0)


@dataclass
class Shelf:
    """Searches its hits by shared words, best first; the same measure compares texts."""

    hits: Sequence[Hit]
    queries: list[str] = field(default_factory=list)

    async def search(self, query: SearchQuery, k: int) -> tuple[Hit, ...]:
        """Return the hits that share a word with the query."""
        self.queries.append(query.text)
        hits = [
            Hit(source.passage, source.document, score=20 * alike, dense=alike, lexical=10 * alike)
            for source in self.hits
            if (alike := _alike(query.text, f"{source.document.title} {source.passage.section} {source.passage.text}"))
        ]
        return tuple(sorted(hits, key=lambda one: -one.score)[:k])

    async def compare(self, text: str, others: Sequence[str]) -> tuple[float, ...]:
        """Return the share of common words."""
        return tuple(_alike(text, other) for other in others)


@dataclass(frozen=True)
class Outcome:
    """How a turn ended, and its events."""

    answer: Answer
    gate: Gate
    recorder: Recorder
    events: Sequence[Event]


async def run(
    system: System,
    talk: Conversation,
    shelf: Shelf,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    *,
    llm: LLM | None = None,
    supports: Supports = check_verbatim,
    tone: str = "",
    pool: Sequence[Demonstration] = (),
    web: Shelf | None = None,
) -> Outcome:
    """Run a system as the bot does; `web` holds the pages of its search engine, if it has one."""
    stage = Stage(shelf, talk, limits, llm, supports, tone, pool, web)
    status = await system(talk, stage.kit)
    return stage.finish(status)


class Stage:
    """The environment of a system: a kit, and the recorded events and steps."""

    def __init__(
        self,
        shelf: Shelf,
        talk: Conversation,
        limits: Limits,
        llm: LLM | None,
        supports: Supports,
        tone: str = "",
        pool: Sequence[Demonstration] = (),
        web: Shelf | None = None,
    ) -> None:
        self.events: list[Event] = []
        self.recorder = Recorder(shelf.search, report=self.events.append, web=web.search if web else None)
        random, prompter, ask = Random(1), None, kit.ask_unconfigured
        self.demos = TurnDemos(partial(_load, pool), shelf.compare)
        if llm:
            prompter = Prompter(
                llm,
                BudgetMeter(),
                note=self.recorder.note,
                now=NOW,
                random=random,
                student=limits.student,
                tone=tone,
                demos=lambda: self.demos.shown,
            )
            ask = prompter.ask
        verify = SentenceJudge(prompter.stream, talk, gather=0) if prompter else None
        self.gate = Gate(
            found=self.recorder.found,
            supports=supports,
            tell=self.events.append,
            verify=verify,
            asked=[turn.text for turn in talk.turns],
        )
        self.kit = Kit(
            ask=ask,
            stream=prompter.stream if prompter else kit.stream_unconfigured,
            search=self.recorder.search,
            corpora=len({source.passage.corpus for source in shelf.hits}),
            engine=self.recorder.engine,
            compare=shelf.compare,
            demos=self.demos,
            supports=supports,
            say=self.gate.say,
            judge=self.gate.judge,
            replaced_by=self.gate.replaced_by,
            note=self.recorder.note,
            end_draft=self.gate.end_draft,
            tell=self.recorder.tell,
            limits=limits,
            now=NOW,
            random=random,
            busy=llm.busy if llm else lambda: False,
            quote=self.gate.quote,
            run_in_thread=_run_at_once,
        )

    def finish(self, status: Status) -> Outcome:
        """Return how the turn ended."""
        nearest, claims = self.recorder.nearest(3), self.recorder.claims
        return Outcome(self.gate.answer(status, nearest=nearest, claims=claims), self.gate, self.recorder, self.events)


async def reads_alike(sentence: str, evidence: Sequence[Evidence], *, asked: Sequence[str] = ()) -> Support:
    """Support a sentence if passages contain most of its words; contradict it if they lack its numbers.

    This is a simple replacement for the real check. In all other cases it is in doubt.
    """
    verbatim = await check_verbatim(sentence, evidence)
    if verbatim.holds:
        return verbatim
    text = " ".join(f"{piece.passage.section} {piece.passage.text}" for piece in evidence)
    if set(re.findall(r"\d+", sentence)) - set(re.findall(r"\d+", " ".join((text, *asked)))):
        return Support(0.0, holds=False, reasons=("a number is not in its passages",))
    alike = _alike(sentence, text)
    holds = alike >= 0.6
    return Support(alike, holds=holds, reasons=(f"{alike:.2f} alike",), appealable=not holds)


def question(text: str, *earlier: Turn) -> Conversation:
    """Return a conversation that ends with this question."""
    return Conversation((*earlier, Turn("user", text)))


def answered(outcome: Outcome) -> list[str]:
    """Return the sentences of a turn that must have answered."""
    assert outcome.answer.status is Status.ANSWERED
    return [sentence.text for sentence in outcome.answer.sentences]


async def _run_at_once(call: Callable[..., Any], *facts: Any, **named: Any) -> Any:
    """Call it in the same thread, so that turns are deterministic."""
    return call(*facts, **named)


async def _load(pool: Sequence[Demonstration]) -> Sequence[Demonstration]:
    return pool


def _alike(one: str, other: str) -> float:
    left, right = set(content_terms(one)), set(content_terms(other))
    return len(left & right) / len(left) if left else 0.0


def registered(**systems: System) -> dict[str, SystemEntry]:
    """Return the systems of an app by name."""
    return {name: SystemEntry(name, "A system of a test.", system) for name, system in systems.items()}
