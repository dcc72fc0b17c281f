"""Stages 3 to 5: what the model says by itself, taken apart into claims, of which those are kept that passages support.

Nothing that is generated here is ever said: it only tells what else to look for.
"""

from collections.abc import Sequence

from pipeline.errors import ModelRefused, PipelineError, UnreadableReply
from pipeline.findings import Finding, sentences_of
from pipeline.forms import Form
from pipeline.kit import Kit
from pipeline.parsing.claims import CLAIMS, TimedClaim
from pipeline.stages.looking_up import retrieve
from pipeline.stages.scene import Scene
from pipeline.stages.together import those_that_work
from pipeline.stages.verifying import bound, stated, unfounded, unverified, verification_of
from pipeline.types import ClaimChecked
from storage.types import SearchQuery, Verdict

LONGEST = 4_000
"""Characters of a generated reply that are read: a paragraph has fewer."""
_REPLY: Form[str] = Form(None, from_json=str, from_text=lambda text: text.strip()[:LONGEST])


async def generate(scene: Scene, kit: Kit) -> str:
    """Return what the model would reply by itself; nothing if it declines."""
    try:
        return await kit.ask("generate", _REPLY, stage="generate", talk=scene.talk, reading=scene.reading)
    except (UnreadableReply, ModelRefused):
        return ""


async def split(scene: Scene, reply: str, kit: Kit) -> tuple[TimedClaim, ...]:
    """Return the claims that a reply makes, self-contained, at most as many as are verified."""
    if not reply:
        return ()
    try:
        claims = await kit.ask("split", CLAIMS, stage="split", talk=scene.talk, reply_text=reply)
    except (UnreadableReply, ModelRefused):
        return ()
    return claims[: kit.limits.claims]


async def verify(scene: Scene, claims: Sequence[TimedClaim], kit: Kit) -> tuple[Finding, ...]:
    """Return those claims that passages support, bound to the sentences that say so; all verdicts are told.

    Raises:
        SearchUnavailable: the search failed.
        PipelineError: not one of the claims could be verified: a model that is down is no lack of evidence.
    """
    kept = await those_that_work(_verified(scene, claim, kit) for claim in claims)
    return tuple(finding for findings in kept for finding in findings)


async def _verified(scene: Scene, claim: TimedClaim, kit: Kit) -> tuple[Finding, ...]:
    hits = await retrieve(SearchQuery(claim.text, claim.time, unchecked=True), kit.limits.evidence, kit)
    sentences = sentences_of(hits)
    if not sentences:
        kit.tell(ClaimChecked(unfounded(claim.text)))
        return ()
    try:
        found = await verification_of(claim.text, sentences, scene.talk, kit.ask, student=kit.limits.student)
    except PipelineError as error:
        kit.tell(ClaimChecked(unverified(claim.text, sentences, error)))
        raise
    kit.tell(ClaimChecked(stated(claim.text, sentences, found)))
    if found.verdict is not Verdict.SUPPORTS:
        return ()
    return await bound(claim.text, tuple(sentences[number - 1] for number in found.sentences), kit.supports)
