"""Weighing the sentences of what was found, as the extractive system does, and showing the best while others work.

What is shown while one waits is a page's own words, and only where they are likely to answer; where pages disagree,
those of the newer.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pipeline.extraction.abstention import ENOUGH, chance
from pipeline.extraction.candidates import candidates
from pipeline.extraction.choosing import chosen
from pipeline.extraction.scoring import Asked, Scored, asked, scored
from pipeline.follow_ups import resolve
from pipeline.kit import Kit
from pipeline.types import Conversation, Turn
from storage.language.detect import detect
from storage.types import Hit

FEW = 3
"""So many passages are quoted from while one waits: reading more takes time from what is waited for."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Considered:
    """A question taken apart, what was found for it, best first, and the chance that the best is an answer."""

    question: Asked
    hits: tuple[Hit, ...]
    ranked: tuple[Scored, ...]
    chance: float


async def weighed(talk: Conversation, hits: tuple[Hit, ...], passages: int, kit: Kit) -> Considered:
    """Rank the sentences of the first `passages` hits in the question's language.

    Reading them takes a while, in which others are not kept waiting.
    """
    question = resolve(talk)
    language = _language(talk.question, hits)
    found = candidates([hit for hit in hits if _speaks(hit, language)][:passages])
    reading = await kit.beside(asked, question.text, question.borrowed, language, hits)
    contexts = [candidate.context for candidate in found]
    cosines = await kit.compare(question.query, contexts) if reading.trust else [0.0] * len(found)
    read = await kit.beside(scored, reading, found, cosines)
    ranked = sorted(read, key=lambda one: one.score, reverse=True)
    return Considered(reading, hits, tuple(ranked), chance(reading, hits, ranked))


@asynccontextmanager
async def quoting(talk: Conversation, hits: tuple[Hit, ...], kit: Kit) -> AsyncGenerator[None]:
    """Show the best sentence of what was found beside the block, if any is likely to answer before the block ends."""
    task = asyncio.create_task(_quote(talk, hits, kit))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _quote(talk: Conversation, hits: tuple[Hit, ...], kit: Kit) -> None:
    try:
        found = await weighed(talk, hits, FEW, kit)
        if found.chance >= ENOUGH:
            first, *_ = await kit.beside(chosen, found.ranked, 1, found.question.language)
            kit.quote(first.evidence[0])
    except Exception as error:  # noqa: BLE001 - the answer matters, not the way to it
        log.warning("nothing was quoted meanwhile: %s", error)


def _language(turn: Turn, hits: Sequence[Hit]) -> str:
    """Return the question's language if any of the pages is in it, else that of most: few words are easily mistaken."""
    spoken = turn.language or detect(turn.text)
    found = Counter(hit.document.language for hit in hits if hit.document.language)
    return spoken if spoken in found or not found else found.most_common(1)[0][0]


def _speaks(hit: Hit, language: str) -> bool:
    """Return whether a page may answer in a language: words of other languages that look alike mean other things.

    English questions may be answered by any page, as short pages are easily taken for another language.
    """
    return language in {"", "en"} or hit.document.language in {"", language}
