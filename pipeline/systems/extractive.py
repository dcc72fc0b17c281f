"""Answer with the few sentences of the passages that answer best, quoted and cited, or abstain. Calls no model.

Each step is a pure function of `pipeline.extraction`; `stages.quotation` combines them. Only searching, comparing and
saying use the kit.
"""

from pipeline.extraction.answer_ranking import ANSWER_THRESHOLD
from pipeline.kit import Kit, SystemEntry
from pipeline.stages.question_analysis import detect_small_talk, resolve_question, validate_question
from pipeline.stages.quotation import MOST_CORPORA, RankedQuotes, rank_quotes
from pipeline.stages.turn_context import WIDER
from pipeline.types import Conversation, Status
from storage.types import SearchQuery

FARTHER = 5  # how many times more passages are searched for in one corpus than are read


async def answer(talk: Conversation, kit: Kit) -> Status:
    """Quote the sentences that answer the question. Raises `SearchUnavailable`, and errors of invalid questions."""
    validate_question(talk.question.text, kit.limits)
    if detect_small_talk(talk.question.text):
        return Status.CHATTED
    considered = await consider(talk, kit)
    if considered.chance < ANSWER_THRESHOLD:
        return Status.ABSTAINED
    passed = [await kit.say(sentence) for sentence in considered.select(kit.limits.sentences)]
    return Status.ANSWERED if any(passed) else Status.ABSTAINED


async def consider(talk: Conversation, kit: Kit) -> RankedQuotes:
    """Search for enough passages to reach every corpus of the scope, and rank the sentences of the nearest ones."""
    farthest = WIDER * (1 + min(kit.corpora, MOST_CORPORA)) if kit.corpora > 1 else FARTHER
    hits = await kit.search(SearchQuery(resolve_question(talk).query), farthest * kit.limits.passages)
    return await rank_quotes(talk, hits, kit.limits.passages, kit)


ENTRY = SystemEntry("extractive", "Quotes the sentences that answer best, word for word; calls no model.", answer)
