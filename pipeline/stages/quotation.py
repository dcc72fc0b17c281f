"""Rank the sentences of passages that could be quoted, and show the best one while the turn goes on.

What is shown meanwhile is a page's own words, and only where they are likely to answer; where pages disagree, those of
the newer.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pipeline.extraction.answer_ranking import (
    ANSWER_THRESHOLD,
    RERANKED,
    ScoredCandidate,
    ScoredQuestion,
    predict_answerable,
    rerank_candidates,
    score_candidates,
    weigh_question,
)
from pipeline.extraction.candidates import find_candidates
from pipeline.extraction.quote_selection import select_quotes
from pipeline.kit import Kit
from pipeline.stages.question_analysis import resolve_question
from pipeline.types import Conversation, Turn
from storage.language.detection import detect_language
from storage.types import Evidence, Hit

INTERIM_PASSAGES = 3
"""So many passages are quoted from while one waits: reading more takes time from what is waited for."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RankedQuotes:
    question: ScoredQuestion
    hits: tuple[Hit, ...]
    ranked: tuple[ScoredCandidate, ...]
    chance: float


async def rank_quotes(talk: Conversation, hits: tuple[Hit, ...], passages: int, kit: Kit) -> RankedQuotes:
    """Rank the sentences of the first `passages` hits in the question's language.

    Reading them takes a while, in which others are not kept waiting.
    """
    question = resolve_question(talk)
    language = _answer_language(talk.question, hits)
    found = find_candidates([hit for hit in hits if _may_answer_in(hit, language)][:passages])
    reading = await kit.run_in_thread(weigh_question, question.text, question.borrowed, language, hits)
    contexts = [candidate.context for candidate in found]
    cosines = await kit.compare(question.query, contexts) if reading.trust else [0.0] * len(found)
    read = await kit.run_in_thread(score_candidates, reading, found, cosines)
    ranked = sorted(read, key=lambda one: one.score, reverse=True)
    best = [one.candidate.evidence for one in ranked[:RERANKED]]
    scores = await kit.rerank(question.query, best) if reading.regime == "trusted" else ()
    reranked = rerank_candidates(reading, ranked, scores)
    return RankedQuotes(reading, hits, reranked, predict_answerable(reading, hits, reranked))


@asynccontextmanager
async def show_interim_quote(talk: Conversation, hits: tuple[Hit, ...], kit: Kit) -> AsyncGenerator[list[Evidence]]:
    """Show the best sentence found while the block runs, if it is likely to answer; yield what is shown by then."""
    shown = list[Evidence]()
    task = asyncio.create_task(_show_best_quote(talk, hits, kit, shown))
    try:
        yield shown
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _show_best_quote(talk: Conversation, hits: tuple[Hit, ...], kit: Kit, shown: list[Evidence]) -> None:
    try:
        found = await rank_quotes(talk, hits, INTERIM_PASSAGES, kit)
        if found.chance >= ANSWER_THRESHOLD:
            first, *_ = await kit.run_in_thread(select_quotes, found.ranked, 1, found.question.language)
            shown += first.evidence[:1] if kit.quote(first.evidence[0]) else ()
    except Exception as error:  # noqa: BLE001 - the answer matters, not the way to it
        log.warning("nothing was quoted meanwhile: %s", error)


def _answer_language(turn: Turn, hits: Sequence[Hit]) -> str:
    """Return the question's language if any of the pages is in it, else that of most: few words are easily mistaken."""
    spoken = turn.language or detect_language(turn.text)
    found = Counter(hit.document.language for hit in hits if hit.document.language)
    return spoken if spoken in found or not found else found.most_common(1)[0][0]


def _may_answer_in(hit: Hit, language: str) -> bool:
    """Return whether a page may answer in a language: words of other languages that look alike mean other things.

    English questions may be answered by any page, as short pages are easily taken for another language.
    """
    return language in {"", "en"} or hit.document.language in {"", language}
