"""Answers with the few sentences of the passages that answer best, quoted and cited, or abstains. Asks no model.

Reads from top to bottom; each step is a pure function of `pipeline.extraction`, which `stages.quoting` puts together;
only searching, comparing and saying reach out through the kit.
"""

from pipeline.extraction.abstention import ENOUGH
from pipeline.extraction.choosing import chosen
from pipeline.follow_ups import resolve
from pipeline.kit import Kit
from pipeline.refusing import refuse_unreadable
from pipeline.small_talk import small_talk
from pipeline.stages.quoting import Considered, weighed
from pipeline.types import Conversation, Status
from storage.types import SearchQuery

WIDER = 3
"""So many times more passages are looked at than quoted from: what the others say tells what is rare."""


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
    """Find and rank what could be quoted."""
    hits = await kit.search(SearchQuery(resolve(talk).query), WIDER * kit.limits.passages)
    return await weighed(talk, hits, kit.limits.passages, kit)
