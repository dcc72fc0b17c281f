"""Stages 3 and 4 in one streamed call: what the model would say by itself, as claims from the beginning.

Unlike `recalling`, where a reply is generated and then taken apart, each claim is there as soon as its line is written.
"""

from collections.abc import AsyncIterator

from pipeline.errors import ModelRefused, UnreadableReply
from pipeline.kit import Kit
from pipeline.parsing.claims import ClaimSplitter, TimedClaim
from pipeline.stages.scene import Scene
from pipeline.streams import closing


async def claimed(scene: Scene, kit: Kit) -> AsyncIterator[TimedClaim]:
    """Yield the claims that the model would answer with, at most as many as are verified; none if it declines.

    Raises:
        ModelUnavailable, BudgetExceeded: as `pipeline.model.LLM` says.
    """
    left = kit.limits.claims
    if not left:
        return
    facts = {"talk": scene.talk, "reading": scene.reading}
    try:
        async with closing(kit.stream("claims", ClaimSplitter(), stage="generate", **facts)) as claims:
            async for claim in claims:
                left -= 1
                yield claim
                if not left:
                    return  # whoever never comes to an end is not waited for
    except (UnreadableReply, ModelRefused):
        return
