"""Stage 5 by itself: a claim against numbered sentences. The gate's second opinion is the same call."""

from collections.abc import Iterable, Sequence

from pipeline.findings import sentences_of
from pipeline.kit import Ask
from pipeline.parsing.verdict import Verification, verification
from pipeline.saying import SecondOpinion
from pipeline.types import Conversation
from storage.types import CheckedClaim, Claim, Evidence, Passage


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
        passages = tuple(passage.id for passage in passages_of(evidence))
        return CheckedClaim(Claim(sentence, origin="retrieved"), found.verdict, passages, found.reasoning)

    return verify


def passages_of(evidence: Iterable[Evidence]) -> tuple[Passage, ...]:
    """Return the passages that evidence stands in, each once."""
    return tuple({one.passage.id: one.passage for one in evidence}.values())
