"""Answers with the few sentences of the passages that answer best, quoted and cited, or abstains. Asks no model.

Reads from top to bottom; each step is a pure function of `pipeline.extraction`, only searching, comparing and saying
reach out through the kit.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.extraction.abstention import ENOUGH, chance
from pipeline.extraction.candidates import candidates
from pipeline.extraction.choosing import chosen
from pipeline.extraction.scoring import Asked, Scored, asked, scored
from pipeline.follow_ups import resolve
from pipeline.kit import Kit
from pipeline.refusing import refuse_unreadable
from pipeline.small_talk import small_talk
from pipeline.types import Conversation, Status, Turn
from storage.language.detect import detect
from storage.types import Hit, SearchQuery

WIDER = 3
"""So many times more passages are looked at than quoted from: what the others say tells what is rare."""


@dataclass(frozen=True, slots=True)
class Considered:
    """A question taken apart, what was found for it, best first, and the chance that the best is an answer."""

    question: Asked
    hits: tuple[Hit, ...]
    ranked: tuple[Scored, ...]
    chance: float


async def answer(talk: Conversation, kit: Kit) -> Status:
    """Quote what answers the conversation's last question.

    Raises:
        QuestionTooLong: it has more characters than the limits allow.
        QuestionWithoutWords: nothing in it can be looked up.
        SearchUnavailable: the search failed.
    """
    refuse_unreadable(talk.question.text, kit.limits)
    if small_talk(talk.question.text):
        return Status.CHATTED
    considered = await consider(talk, kit)
    if considered.chance < ENOUGH:
        return Status.ABSTAINED
    sentences = chosen(considered.ranked, kit.limits.sentences, considered.question.language)
    said = [await kit.say(sentence) for sentence in sentences]
    return Status.ANSWERED if any(said) else Status.ABSTAINED


async def consider(talk: Conversation, kit: Kit) -> Considered:
    """Find and rank what could be quoted. Reading the passages takes a while, in which others are not kept waiting."""
    question = resolve(talk)
    hits = await kit.search(SearchQuery(question.query), WIDER * kit.limits.passages)
    language = _language(talk.question, hits)
    found = candidates([hit for hit in hits if _speaks(hit, language)][: kit.limits.passages])
    reading = await kit.beside(asked, question.text, question.borrowed, language, hits)
    contexts = [candidate.context for candidate in found]
    cosines = await kit.compare(question.query, contexts) if reading.trust else [0.0] * len(found)
    read = await kit.beside(scored, reading, found, cosines)
    ranked = sorted(read, key=lambda one: one.score, reverse=True)
    return Considered(reading, hits, tuple(ranked), chance(reading, hits, ranked))


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
