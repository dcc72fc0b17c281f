"""Asks a whole exam of the extractive system and keeps what it thought, whether it would have said it or not.

The conversation goes through the system's own steps and its sentences through the gate, so that what is measured is
what is shipped; only abstaining is put off, to be decided by the report at any threshold.
"""

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import numpy as np

from bot.app import open_app
from bot.settings import Settings
from evaluation.posing import Exam, Posed
from ingest.refreshing import refresh
from pipeline import unconfigured
from pipeline.extraction.choosing import chosen
from pipeline.kit import Kit, Limits
from pipeline.recording import Recorder
from pipeline.saying import Gate
from pipeline.stages.quoting import Considered
from pipeline.supporting import verbatim
from pipeline.systems.extractive import consider
from pipeline.types import Answer, CitedSentence, Status
from storage.embedding import Embedder, Vectors
from storage.fusion import fuse
from storage.passages import CANDIDATES, PassageStore
from storage.retrieving import Retriever
from storage.types import Hit, SearchQuery


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the system made of a question: its thoughts, what it would say, and what the gate let through."""

    posed: Posed
    considered: Considered
    sentences: tuple[CitedSentence, ...]
    answer: Answer

    @property
    def right_first(self) -> bool:
        """Whether the first sentence says the answer."""
        return any(map(self.posed.answered_by, self.sentences[:1]))

    @property
    def right(self) -> bool:
        """Whether any sentence does."""
        return any(map(self.posed.answered_by, self.sentences))

    @property
    def verbatim(self) -> bool:
        """Whether each sentence that was let through stands as it is in a passage that it cites."""
        passages = {citation.number: citation.passage_text for citation in self.answer.citations}
        return all(
            any(sentence.text in passages[number] for number in sentence.citations)
            for sentence in self.answer.sentences
        )


@dataclass
class RememberingEmbedder:
    """An embedder that embeds each text once: the questions of an exam find the same sentences again and again."""

    inner: Embedder
    known: dict[str, Vectors] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = self.inner.name
        self.dimensions = self.inner.dimensions

    def knows(self, text: str) -> float:
        """How well the inner embedder knows the script."""
        return self.inner.knows(text)

    def embed(self, texts: Sequence[str], *, polite: bool = False) -> Vectors:
        """Vectors of `texts`, embedding only new ones."""
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        if new:
            self.known.update(zip(new, self.inner.embed(new, polite=polite), strict=True))
        return np.stack([self.known[text] for text in texts])


@asynccontextmanager
async def opened(exam: Exam, home: Path | None) -> AsyncIterator[PassageStore]:
    """Index an exam's documents, in a home that is kept if one is named, and open the store over them."""
    with tempfile.TemporaryDirectory() as scratch:
        async with open_app(Settings(home=home or Path(scratch))) as app:
            await refresh(exam.source, exam.corpus, app.passages, progress=lambda _: None)
            yield replace(app.passages, embedder=RememberingEmbedder(app.passages.embedder))


async def ask_all(exam: Exam, store: PassageStore, *, without_answers: bool = False) -> list[Outcome]:
    """Ask every question of an exam; with `without_answers`, as if the documents that answer it were not there."""
    asked = [posed for posed in exam.questions if posed.documents or not without_answers]
    return [
        await ask(posed, store, exam.corpus, left_out=posed.documents if without_answers else frozenset())
        for posed in asked
    ]


async def ask(posed: Posed, store: PassageStore, corpus: str, *, left_out: frozenset[str]) -> Outcome:
    """Ask one question."""

    async def search(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        if not left_out:
            return await store.search(query.text, [corpus], k)
        return await _search_without(store, corpus, query.text, k, left_out)

    recorder = Recorder(search, tell=_ignore)
    gate = Gate(found=recorder.found, supports=verbatim, tell=_ignore)
    kit = Kit(
        ask=unconfigured.ask,
        stream=unconfigured.stream,
        search=recorder.search,
        compare=store.compare,
        supports=verbatim,
        say=gate.say,
        tell=_ignore,
        limits=Limits(),
        now=datetime.now(UTC),
        random=Random(0),
    )
    considered = await consider(posed.talk, kit)
    sentences = chosen(considered.ranked, kit.limits.sentences, considered.question.language)
    for sentence in sentences:
        await gate.say(sentence)
    return Outcome(posed, considered, sentences, gate.answer(Status.ANSWERED))


async def _search_without(
    store: PassageStore, corpus: str, text: str, k: int, left_out: frozenset[str]
) -> tuple[Hit, ...]:
    """Search as the store does, as if some documents had never been indexed."""
    wanted = max(CANDIDATES, k)
    trust = store.embedder.knows(text)
    retriever = Retriever(store.dense, store.lexical, store.embedder, store.threads)
    dense, lexical = await retriever.candidates(text, [[corpus]], 2 * wanted)
    rows = await store.manifest.join([*{*dense, *lexical}], [corpus])
    kept = {key for key, (_, document) in rows.items() if document.key not in left_out}
    dense, lexical = _best(dense, kept, wanted), _best(lexical, kept, wanted)
    ranking = fuse(dense, lexical, asked=wanted, dense_weight=trust)[:k]
    return tuple(Hit(*rows[key], score, dense.get(key, 0.0), lexical.get(key, 0.0)) for key, score in ranking)


def _best(scores: dict[str, float], kept: set[str], wanted: int) -> dict[str, float]:
    best = sorted((key for key in scores if key in kept), key=lambda key: (-scores[key], key))
    return {key: scores[key] for key in best[:wanted]}


def _ignore(_: object) -> None:
    """Nobody watches an exam."""
