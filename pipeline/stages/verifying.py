"""Stage 5 by itself: a claim against numbered sentences, and what becomes of it. The gate's second opinion is the same.

`recalling` and `weighing` are who verifies: claim by claim, or as claims arrive.
"""

from collections.abc import Iterable, Sequence

from pipeline.errors import PipelineError
from pipeline.findings import Finding, quoted, sentences_of
from pipeline.kit import Ask, Supports
from pipeline.parsing.verdict import Verification, verification
from pipeline.saying import SecondOpinion
from pipeline.types import Conversation
from storage.types import CheckedClaim, Claim, Evidence, Reason, Verdict

NOTHING = "nothing was found to hold it against"


async def verification_of(
    claim: str, sentences: Sequence[Evidence], talk: Conversation, ask: Ask, *, student: bool
) -> Verification:
    """Return what the model says of a claim, by these sentences alone; numbers count from 1 in their order."""
    form = verification(len(sentences), reasoned=not student)
    return await ask("verify", form, stage="verify", talk=talk, sentences=tuple(sentences), claim=claim)


def second_opinion(ask: Ask, talk: Conversation, *, turns: int, student: bool = False) -> SecondOpinion:
    """Return what the gate asks of a sentence that the local check doubts: the model's verification of it.

    The model sees all of the passages that the sentence cites, and the last `turns` of the conversation.
    """
    seen = Conversation(talk.turns[-turns:])

    async def verify(sentence: str, evidence: Sequence[Evidence]) -> CheckedClaim | None:
        sentences = sentences_of(evidence)
        if not sentences:
            return None
        found = await verification_of(sentence, sentences, seen, ask, student=student)
        named, others = told_apart(sentences, found)
        return CheckedClaim(Claim(sentence, origin="retrieved"), found.verdict, named, found.reasoning, others)

    return verify


def stated(claim: str, sentences: Sequence[Evidence], found: Verification, *because: Reason) -> CheckedClaim:
    """Return a claim of the model's own with what was found of it by these sentences."""
    named, others = told_apart(sentences, found)
    return CheckedClaim(Claim(claim, origin="model"), found.verdict, named, found.reasoning, others, because)


def unfounded(claim: str) -> CheckedClaim:
    """Return a claim of the model's own that nothing was found to hold against."""
    return stated(claim, (), Verification(Verdict.NOT_ENOUGH_INFO, reasoning=NOTHING), Reason("nothing"))


def unverified(claim: str, sentences: Sequence[Evidence], error: PipelineError) -> CheckedClaim:
    """Return a claim of the model's own on which the model could not be asked."""
    found = Verification(Verdict.NOT_ENOUGH_INFO, reasoning=f"it could not be verified: {error}")
    return stated(claim, sentences, found, Reason("unverified"))


async def bound(claim: str, evidence: tuple[Evidence, ...], supports: Supports) -> tuple[Finding, ...]:
    """Return a claim as a finding; where its numbers, dates or names are not in its evidence, the sentences instead."""
    support = await supports(claim, evidence)
    return (Finding(claim, evidence),) if support.holds or support.appealable else quoted(evidence)


def told_apart(sentences: Sequence[Evidence], found: Verification) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids of the passages that a verdict stands on, by the sentences it names, and those of the others."""
    settled = found.verdict is not Verdict.NOT_ENOUGH_INFO
    named = ids_of(sentences[number - 1] for number in found.sentences) if settled else ()
    return named, tuple(one for one in ids_of(sentences) if one not in named)


def ids_of(evidence: Iterable[Evidence]) -> tuple[str, ...]:
    """Return the ids of the passages that evidence stands in, each once."""
    return tuple(dict.fromkeys(one.passage.id for one in evidence))
