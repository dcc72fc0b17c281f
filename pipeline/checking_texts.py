"""Fact-checking a whole text: each of its sentences that states something is a claim with a verdict of its own.

`checking` takes one statement, and is strict about it; whoever hands over a message that somebody wrote has it taken as
it is. A text of one statement is checked exactly as there.
"""

from dataclasses import replace

from pipeline.checking import Judge, judged_by_model, judged_by_rules, refuse_unclaimed, told, verdict_on
from pipeline.errors import NotAClaim
from pipeline.kit import Kit
from pipeline.small_talk import small_talk
from pipeline.stages.together import each
from pipeline.types import Conversation, Status
from storage.language.sentences import sentence_spans


async def by_rules(talk: Conversation, kit: Kit) -> Status:
    """Check each statement by the local check alone. Raises `NotAClaim` and `SearchUnavailable`."""
    return await _check(talk, kit, judged_by_rules)


async def by_model(talk: Conversation, kit: Kit) -> Status:
    """Check each statement by the model's verification, several at once. Raises any `PipelineError`."""
    return await _check(talk, kit, judged_by_model)


def statements(text: str) -> tuple[str, ...]:
    """Return the sentences of a text that state something, in order, each once.

    Raises:
        NotAClaim: None of them does, for the reason that holds for the whole text, or for its first sentence.
    """
    found = [text[start:end].strip() for start, end in sentence_spans(text)]
    stated = tuple(dict.fromkeys(one for one in found if not small_talk(one) and _states(one)))
    if not stated:
        refuse_unclaimed(found[0] if found else text)
    return stated


def _states(sentence: str) -> bool:
    try:
        refuse_unclaimed(sentence)
    except NotAClaim:
        return False
    return True


async def _check(talk: Conversation, kit: Kit, judge: Judge) -> Status:
    # Where a limit says no claims, it means those that a model makes up.
    claims = statements(talk.question.text)[: max(1, kit.limits.claims)]
    verdicts = await each(verdict_on(_alone(talk, claim), kit, judge) for claim in claims)
    said = [await told(claim, verdict, kit) for claim, verdict in zip(claims, verdicts, strict=True)]
    return Status.ANSWERED if Status.ANSWERED in said else Status.ABSTAINED


def _alone(talk: Conversation, claim: str) -> Conversation:
    """Return the conversation as if this claim alone had been handed over."""
    return Conversation((*talk.earlier, replace(talk.question, text=claim)))
