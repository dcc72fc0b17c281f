"""Rank the sentences of passages that could be quoted, and show the best one while the turn continues.

A candidate is compared with the question, and its passage is read, only if it may be among the best. Scoring by words
and by the search costs almost nothing, a comparison costs one embedding per sentence, and reading costs most.

A quotation is shown only if it is likely to answer. If pages disagree, that of the newer page is shown.
"""

import asyncio
import logging
import math
import re
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from pipeline.extraction.answer_ranking import (
    ANSWER_THRESHOLD,
    BORROWED,
    COMPARED_CANDIDATES,
    REPLACED,
    RERANKED,
    ScoredCandidate,
    ScoredQuestion,
    find_farthest,
    load_weights,
    measure_match,
    rate_candidates,
    rerank_candidates,
    score_candidates,
    weigh_features,
    weigh_question,
)
from pipeline.extraction.candidates import SENTENCE_ENDS, Candidate, find_candidates, find_synonyms, is_unpriced
from pipeline.extraction.designations import is_about_others
from pipeline.extraction.quote_selection import select_quotes
from pipeline.kit import Kit
from pipeline.stages.question_analysis import ResolvedQuestion, opens_with_pronoun, resolve_question, split_question
from pipeline.stages.turn_context import WIDER
from pipeline.types import CitedSentence, Conversation, Turn
from storage.language.detection import detect_language
from storage.language.lazy_pattern import lazy_compile
from storage.language.words import content_terms
from storage.types import Evidence, Hit, PassageKind

MOST_CORPORA = 3  # how many corpora are quoted from, those of the nearest passages
READABLE_CHANCE = 0.3
"""A corpus is read only if its best candidate has this chance: below it, reading never led to an answer."""
SAID_UNREAD = -8.0  # the reader's score assumed for unread candidates: nine in ten real scores are higher
COMPARABLE_CHANCE = 0.02  # the same for comparing its candidates, by estimated cosines
FIRST_COMPARED = 8  # how many of them are compared first, to decide whether the others must be
THEN_COMPARED = 4  # how many of the others are compared at a time
CERTAIN_RANKS = 3  # how many of the best candidates must be known for certain
COSINE_GAIN = 0.1  # how much a cosine is assumed to exceed its estimate at most: one standard deviation
COSINE_LOSS = 0.06  # how much the cosine of a passage exceeds that of one of its sentences, on average
READER_GAIN = 2.0  # the highest reader's score assumed for an unread candidate; one in twenty exceeds it
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
    """Rank the sentences in each corpus's first `passages` hits; the first is from the corpus likeliest to answer."""
    question = resolve_question(talk)
    corpora: dict[str, list[Hit]] = {}
    for hit in hits:
        corpora.setdefault(hit.passage.corpus, []).append(hit)
    shelves = list(corpora.values())[:MOST_CORPORA] or [[]]
    nearest = [tuple(shelf[: WIDER * passages]) for shelf in shelves]
    rankings = [await _rank_corpus(talk.question, question, shelf, passages, kit) for shelf in nearest]
    best, *others = sorted(rankings, key=lambda one: one.chance, reverse=True)
    rest = [*best.ranked[1:], *(candidate for other in others for candidate in other.ranked)]
    ranked = (*best.ranked[:1], *sorted(rest, key=lambda one: one.score, reverse=True))
    whole = replace(best, ranked=tuple(_doubt_other_pages(ranked)) if question.varied else ranked)
    parts = split_question(question)
    return await _rank_parts(talk.question, parts, whole, passages, kit) if len(parts) > 1 else whole


async def _rank_parts(
    turn: Turn, parts: Sequence[ResolvedQuestion], whole: RankedQuotes, passages: int, kit: Kit
) -> RankedQuotes:
    """Return the ranking for the first part of a question that has an answer, with the answers to further parts.

    If no part has an answer, return `whole`. All quotes are from the corpus that fits the whole question best.
    """
    rankings = [await _rank_corpus(turn, part, whole.hits, passages, kit) for part in parts]
    first, *further = [ranking for ranking in rankings if ranking.chance >= ANSWER_THRESHOLD] or [whole]
    answers = tuple(ranking.ranked[0].candidate for ranking in further)
    return replace(first, chance=max(first.chance, whole.chance), parts=answers)


async def _rank_corpus(
    turn: Turn, question: ResolvedQuestion, hits: tuple[Hit, ...], passages: int, kit: Kit
) -> RankedQuotes:
    reading, scored = await kit.run_in_thread(_score_corpus, turn, question, hits, passages)
    compared = set[int]()
    while scored and reading.trust and not question.varied:
        expected = sorted(scored, key=lambda one: one.score, reverse=True)
        rated = await kit.run_in_thread(rate_candidates, reading, hits, expected)
        if is_hopeless(reading, rated, compared=bool(compared)):
            # Comparing the others and reading, which take most of the time, would not change that.
            unread = rerank_candidates(reading, rated, dict.fromkeys(range(len(rated)), SAID_UNREAD))
            return RankedQuotes(reading, hits, unread, unread[0].chance)
        if not (places := list_comparable(reading, scored, compared)):
            break
        scored = await _compare(question.query, reading, scored, places, kit)
        compared.update(places)
    if reading.trust and question.varied:
        scored = await _compare(question.query, reading, scored, range(len(scored)), kit)
    ranked: Sequence[ScoredCandidate] = sorted(scored, key=lambda one: one.score, reverse=True)
    if question.varied:
        ranked = _keep_varied(ranked, question.varied, reading.language) or ranked
    read = await _read(question.query, reading, ranked, kit) if reading.regime == "trusted" else {}
    rated = await kit.run_in_thread(lambda: rate_candidates(reading, hits, rerank_candidates(reading, ranked, read)))
    return RankedQuotes(reading, hits, rated, rated[0].chance if rated else 0.0)


def _score_corpus(
    turn: Turn, question: ResolvedQuestion, hits: tuple[Hit, ...], passages: int
) -> tuple[ScoredQuestion, Sequence[ScoredCandidate]]:
    """Score the candidates in the first `passages` hits by their words and by estimated cosines."""
    language = _answer_language(turn, hits)
    readable = [hit for hit in hits if _may_answer_in(hit, language)]
    candidates = [
        candidate for candidate in find_candidates(readable[:passages]) if not is_about_others(candidate, question.text)
    ]
    priced = [candidate for candidate in candidates if not is_unpriced(candidate.text, question.text)] or candidates
    weight = REPLACED if question.varied else BORROWED
    reading = weigh_question(question.text, question.borrowed, language, hits, weight)
    return reading, score_candidates(reading, priced, estimate_cosines(priced))


def order_passages(talk: Conversation, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Return hits in the order of their best sentences, scored only by words and by the search, without a model."""
    question, language = resolve_question(talk), _answer_language(talk.question, hits)
    reading = weigh_question(question.text, question.borrowed, language, hits, BORROWED)
    candidates = find_candidates([hit for hit in hits if _may_answer_in(hit, language)])
    scored = score_candidates(reading, candidates, estimate_cosines(candidates))
    best = {one.candidate.hit.passage.id: one.score for one in sorted(scored, key=lambda one: one.score)}
    return tuple(sorted(hits, key=lambda hit: -best.get(hit.passage.id, -math.inf)))


def estimate_cosines(found: Sequence[Candidate]) -> list[float]:
    """Estimate the cosine of the question with each candidate's context, from the cosine of its passage."""
    farthest = find_farthest(found)
    return [(candidate.hit.dense or farthest) - COSINE_LOSS for candidate in found]


def list_comparable(
    question: ScoredQuestion, scored: Sequence[ScoredCandidate], compared: Collection[int]
) -> list[int]:
    """Return the indexes of the candidates to compare next, best first; empty once the best ones are known."""
    places = sorted(range(len(scored)), key=lambda place: scored[place].score, reverse=True)
    left = [place for place in places if place not in compared]
    if not compared:
        return left[:FIRST_COMPARED]
    known = [scored[place].score for place in places if place in compared]
    line = known[:CERTAIN_RANKS][-1] - COSINE_GAIN * question.trust * load_weights(question.regime)["sentence_cosine"]
    return [place for place in left if scored[place].score > line][:THEN_COMPARED]


def list_readable(question: ScoredQuestion, ranked: Sequence[ScoredCandidate], read: Mapping[int, float]) -> list[int]:
    """Return the indexes of the best candidates in the next passage to read; empty if the best cannot change."""
    weight, best = load_weights(question.regime)["reader"], ranked[:RERANKED]
    line = max((best[place].score + weight * said for place, said in read.items()), default=-math.inf)
    unread = (
        one.candidate.rank
        for place, one in enumerate(best)
        if place not in read and one.score + weight * READER_GAIN > line
    )
    rank = next(unread, None)
    return [place for place, one in enumerate(best) if one.candidate.rank == rank]


def is_hopeless(question: ScoredQuestion, rated: Sequence[ScoredCandidate], *, compared: bool = True) -> bool:
    """Return whether no candidate is likely to answer, even if reading or comparing adds as much as it can."""
    best = max((candidate.chance for candidate in rated[:COMPARED_CANDIDATES]), default=0.0)
    return question.regime == "trusted" and best < (READABLE_CHANCE if compared else COMPARABLE_CHANCE)


def set_cosines(
    question: ScoredQuestion, scored: Sequence[ScoredCandidate], cosines: Mapping[int, float]
) -> list[ScoredCandidate]:
    """Return the candidates, with new scores for those whose index is in `cosines`."""
    found, weights = list(scored), load_weights(question.regime)
    for place, cosine in cosines.items():
        features = replace(scored[place].features, sentence_cosine=question.trust * cosine)
        found[place] = replace(scored[place], features=features, score=weigh_features(features, weights))
    return found


async def _compare(
    query: str, reading: ScoredQuestion, scored: Sequence[ScoredCandidate], places: Sequence[int], kit: Kit
) -> Sequence[ScoredCandidate]:
    """Return the candidates, with new scores for those at `places`, which are compared with the query."""
    cosines = await kit.compare(query, [scored[place].candidate.context for place in places])
    return set_cosines(reading, scored, dict(zip(places, cosines, strict=True)))


async def _read(
    query: str, reading: ScoredQuestion, ranked: Sequence[ScoredCandidate], kit: Kit
) -> Mapping[int, float]:
    """Return the reader's scores of the best candidates by index; it reads as long as the best may change."""
    read = dict[int, float]()
    while places := list_readable(reading, ranked, read):
        scores = await kit.rerank(query, [ranked[place].candidate.context for place in places])
        if not scores:
            break
        read.update(zip(places, scores, strict=True))
    return read


def _keep_varied(ranked: Sequence[ScoredCandidate], varied: str, language: str) -> list[ScoredCandidate]:
    """Return the candidates that contain, with their headings, all words by which a follow-up varies the question."""
    synonyms, terms = find_synonyms(varied, language), frozenset(content_terms(varied, language))
    contexts = [(candidate, frozenset(content_terms(candidate.candidate.context, language))) for candidate in ranked]
    return [one for one, found in contexts if all(measure_match(term, found, synonyms) for term in terms)]


def _doubt_other_pages(ranked: Sequence[ScoredCandidate]) -> Iterator[ScoredCandidate]:
    """Yield candidates with the chance 0 if not on the best one's page: only a follow-up's new word fits these."""
    for candidate in ranked:
        passage, best = candidate.candidate.hit.passage, ranked[0].candidate.hit.passage
        same = (passage.corpus, passage.document) == (best.corpus, best.document)
        yield candidate if same else replace(candidate, chance=0.0)


@asynccontextmanager
async def show_interim_quote(talk: Conversation, hits: tuple[Hit, ...], kit: Kit) -> AsyncGenerator[list[Evidence]]:
    """Show the best sentence, if it is likely to answer, while the block runs. Yield the list of shown evidence."""
    shown = list[Evidence]()
    task = asyncio.create_task(_show_best_quote(talk, hits, kit, shown))
    try:
        yield shown
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _show_best_quote(talk: Conversation, hits: tuple[Hit, ...], kit: Kit, shown: list[Evidence]) -> None:
    try:
        quotes = await rank_quotes(talk, hits, kit.limits.passages, kit)
        if quotes.chance < ANSWER_THRESHOLD:
            return
        first, *_ = await kit.run_in_thread(quotes.select, 1)
        if _stands_alone(first.evidence[0], quotes.question.language):
            shown += first.evidence[:1] if kit.quote(first.evidence[0]) else ()
    except Exception as error:  # noqa: BLE001 - a failed interim quotation must not fail the answer
        log.warning("interim quotation failed: %s", error)


def _stands_alone(found: Evidence, language: str) -> bool:
    """Return whether a quotation is clear by itself: one sentence of prose, no address, and not beginning with "it"."""
    text = found.text.strip()
    whole = found.passage.kind is PassageKind.PROSE and text.rstrip("\"'”’»)*_").endswith(SENTENCE_ENDS)
    return whole and not ("\n" in text or opens_with_pronoun(text, language) or _ADDRESS.match(text))


def _answer_language(turn: Turn, hits: Sequence[Hit]) -> str:
    """Return the question's language if a page is in it, else that of most pages: short questions are misdetected."""
    spoken = turn.language or detect_language(turn.text)
    languages = Counter(hit.document.language for hit in hits if hit.document.language)
    return spoken if spoken in languages or not languages else languages.most_common(1)[0][0]


def _may_answer_in(hit: Hit, language: str) -> bool:
    """Return whether a page may answer in a language. For English any page may, as short pages are misdetected."""
    return language in {"", "en"} or hit.document.language in {"", language}
