"""Rank the sentences of passages that could be quoted, and show the best one while the turn continues.

The cross-encoder reads the first passages, and then the most promising sentences of those. For other languages than
English, and at effort `quick`, words and cosines decide instead.

A quotation is shown only if it is likely to answer. If pages disagree, that of the newer page is shown.
"""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from pipeline.extraction.answer_ranking import (
    ANSWER_THRESHOLD,
    BORROWED,
    REPLACED,
    ScoredCandidate,
    ScoredQuestion,
    rescore_candidates,
    score_candidates,
    weigh_question,
)
from pipeline.extraction.candidates import SENTENCE_ENDS, Candidate, find_candidates, keep_named
from pipeline.extraction.designations import is_about_others
from pipeline.extraction.quote_selection import select_quotes
from pipeline.kit import Kit
from pipeline.stages.passage_order import find_answer_language, read_passages
from pipeline.stages.question_analysis import ResolvedQuestion, leans_back, resolve_question, split_question
from pipeline.stages.turn_context import WIDER
from pipeline.types import CitedSentence, Conversation, Turn
from storage.language.lazy_pattern import lazy_compile
from storage.language.words import content_terms
from storage.types import Evidence, Hit, PassageKind

MOST_CORPORA = 3  # how many corpora are quoted from, those of the nearest passages
MOST_READ = 20  # how many sentences the cross-encoder reads for one question
MOST_COMPARED = 8  # how many are compared by cosines instead; with 20, 3 of 313 more replies were right
HOPELESS = -9.0
"""Log-odds of the best passage below which no sentence is read: the answer would be to abstain in any case."""
_ADDRESS = lazy_compile(r"\W*(?:https?:|www\.|\S+@\S+\.\w)", re.IGNORECASE)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RankedQuotes:
    question: ScoredQuestion
    hits: tuple[Hit, ...]
    ranked: tuple[ScoredCandidate, ...]
    chance: float
    parts: tuple[Candidate, ...] = ()
    """The answers to the further parts of a question that asks for several things."""

    def select(self, limit: int) -> tuple[CitedSentence, ...]:
        """Choose sentences to quote: at most `limit`, or more if sources disagree."""
        return select_quotes(self.ranked, limit, self.question.language, self.parts, question=self.question.text)


async def rank_quotes(talk: Conversation, hits: tuple[Hit, ...], passages: int, kit: Kit) -> RankedQuotes:
    """Rank the sentences in the first `passages` hits of each corpus. The corpus likeliest to answer comes first."""
    question = resolve_question(talk)
    corpora: dict[str, list[Hit]] = {}
    for hit in keep_named(hits, question.text, find_answer_language(talk.question, hits)):
        corpora.setdefault(hit.passage.corpus, []).append(hit)
    shelves = list(corpora.values())[:MOST_CORPORA] or [[]]
    nearest = [tuple(shelf[: WIDER * passages]) for shelf in shelves]
    parts = split_question(question)
    rank = partial(_rank_corpus, talk.question, passages=passages, kit=kit, shares=len(nearest) + len(parts) - 1)
    best, *others = sorted([await rank(question, shelf) for shelf in nearest], key=lambda one: -one.chance)
    rest = [*best.ranked[1:], *(candidate for other in others for candidate in other.ranked)]
    ranked = (*best.ranked[:1], *sorted(rest, key=lambda one: -one.score))
    whole = replace(best, ranked=tuple(_doubt_other_pages(ranked)) if question.varied else ranked)
    if len(parts) == 1:
        return whole
    # The parts are looked up in the corpus that fits the whole best; unanswered parts are skipped.
    rankings = [await rank(part, whole.hits) for part in parts]
    first, *further = [ranking for ranking in rankings if ranking.chance >= ANSWER_THRESHOLD] or [whole]
    answers = tuple(ranking.ranked[0].candidate for ranking in further)
    return replace(first, chance=max(first.chance, whole.chance), parts=answers)


async def _rank_corpus(
    turn: Turn, question: ResolvedQuestion, hits: tuple[Hit, ...], *, passages: int, kit: Kit, shares: int
) -> RankedQuotes:
    """Rank the sentences in hits of one corpus, reading one of so many shares of what is read for a question."""
    language = find_answer_language(turn, hits)
    readable = [hit for hit in hits if _may_answer_in(hit, language)][:passages]
    weight = REPLACED if question.varied else BORROWED
    reading = await kit.run_in_thread(weigh_question, question.text, question.borrowed, language, hits, weight)
    read = await read_passages(question.query, language, readable, kit, shares)
    ranked = await kit.run_in_thread(_score_unread, reading, readable, read, hits)
    if question.varied:
        ranked = _keep_varied(ranked, question.varied, language) or ranked
    texts = {scored.candidate.context: scored.candidate.text for scored in ranked}
    contexts = list(texts)[: (MOST_READ if read else MOST_COMPARED) // shares]
    values: Sequence[float] = ()
    cosines = dict[str, float]()
    if read and max(read.values()) >= HOPELESS:
        values = await kit.rerank(question.query, contexts)
        alone = list(dict.fromkeys(texts[context] for context in contexts))
        cosines = dict(zip(alone, await kit.compare(question.query, alone), strict=True))
    elif reading.trust and not read:
        values = await kit.compare(question.query, contexts)
    if values:
        ranked = rescore_candidates(reading, ranked, read, dict(zip(contexts, values, strict=True)), cosines)
    return RankedQuotes(reading, hits, tuple(ranked), ranked[0].chance if ranked else 0.0)


def _score_unread(
    question: ScoredQuestion, hits: Sequence[Hit], read: Mapping[str, float], around: Sequence[Hit]
) -> Sequence[ScoredCandidate]:
    """Score the candidates of the hits, or if any were read, of those that were."""
    candidates = find_candidates(
        [hit for hit in hits if hit.passage.id in read] if read else hits, question.text, around
    )
    return score_candidates(question, [one for one in candidates if not is_about_others(one, question.text)], read)


def _keep_varied(ranked: Sequence[ScoredCandidate], varied: str, language: str) -> list[ScoredCandidate]:
    """Return the candidates that contain, with their headings, all words by which a follow-up varies the question."""
    terms = frozenset(content_terms(varied, language))
    return [one for one in ranked if terms <= frozenset(content_terms(one.candidate.context, language))]


def _doubt_other_pages(ranked: Sequence[ScoredCandidate]) -> Iterator[ScoredCandidate]:
    """Yield candidates; those on other pages than the best get the chance 0: only a follow-up's new word fits them."""
    for candidate in ranked:
        passage, best = candidate.candidate.hit.passage, ranked[0].candidate.hit.passage
        same = (passage.corpus, passage.document) == (best.corpus, best.document)
        yield candidate if same else replace(candidate, chance=0.0)


@asynccontextmanager
async def show_interim_quote(talk: Conversation, hits: tuple[Hit, ...], kit: Kit) -> AsyncGenerator[None]:
    """Show the best sentence found while the block runs, if it is likely to answer."""
    task = asyncio.create_task(_show_best_quote(talk, hits, kit))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _show_best_quote(talk: Conversation, hits: tuple[Hit, ...], kit: Kit) -> None:
    try:
        quotes = await rank_quotes(talk, hits, kit.limits.passages, kit)
        if quotes.chance < ANSWER_THRESHOLD:
            return
        first, *_ = await kit.run_in_thread(quotes.select, 1)
        if first.text == first.evidence[0].text and _stands_alone(first.evidence[0], quotes.question.language):
            kit.quote(first.evidence[0])
    except Exception as error:  # noqa: BLE001 - a failed interim quotation must not fail the answer
        log.warning("interim quotation failed: %s", error)


def _stands_alone(found: Evidence, language: str) -> bool:
    """Return whether a quotation is self-contained: a sentence, not a row, an address, or one that begins with "it"."""
    text = found.text.strip()
    whole = found.passage.kind is PassageKind.PROSE and text.rstrip("\"'”’»)*_").endswith(SENTENCE_ENDS)
    return whole and not ("\n" in text or leans_back(text, language) or _ADDRESS.match(text))


def _may_answer_in(hit: Hit, language: str) -> bool:
    """Return whether a page may answer in a language. For English any page may, as short pages are misdetected."""
    return language in {"", "en"} or hit.document.language in {"", language}
