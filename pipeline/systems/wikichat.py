"""Answers as WikiChat does, in seven stages: what is looked up, and what the model knows and passages confirm.

Unlike `extractive` it writes sentences of its own, so each must pass the gate against the passages that it cites. The
text that the model generates by itself is taken apart and verified, and never said.
"""

from pipeline.findings import Finding, distinct, newest_of_rivals_first
from pipeline.kit import Kit
from pipeline.refusing import refuse_unreadable
from pipeline.small_talk import small_talk
from pipeline.stages.looking_up import choose_query, retrieve, summarise
from pipeline.stages.quoting import quoting
from pipeline.stages.recalling import generate, split, verify
from pipeline.stages.saying import say_all
from pipeline.stages.scene import Scene, open_scene
from pipeline.stages.together import beside
from pipeline.stages.writing import draft, refine, whole_draft
from pipeline.streams import replayed
from pipeline.types import Conversation, Status


async def answer(talk: Conversation, kit: Kit) -> Status:
    """Answer the conversation's last question. Raises any `PipelineError`."""
    refuse_unreadable(talk.question.text, kit.limits)
    if small_talk(talk.question.text):
        return Status.CHATTED
    scene = await open_scene(talk, kit)
    async with quoting(talk, scene.nearest, kit):
        looked_up, recalled, fault = await beside(look_up(scene, kit), recall(scene, kit))
    findings = newest_of_rivals_first(distinct((*(looked_up or ()), *(recalled or ()))))
    if not findings and fault:
        raise fault  # a model that is down for one half is no "I don't know"
    if not findings:
        return Status.CHATTED if looked_up is None and recalled is None else Status.ABSTAINED
    if kit.limits.student or not kit.limits.refine:
        return _ended(said=await say_all(draft(scene, findings, kit), findings, scene, kit))  # 6
    kept = await whole_draft(scene, findings, kit)  # 6
    refined = refine(scene, kept, findings, kit)  # 7
    said = await say_all(refined, findings, scene, kit) or await say_all(replayed(kept), findings, scene, kit)
    return _ended(said=said)


async def look_up(scene: Scene, kit: Kit) -> tuple[Finding, ...] | None:
    """Return what passages say to the question; None where it wants no fact."""
    query = await choose_query(scene, kit)  # 1
    if query is None:
        return None
    return await summarise(query, await retrieve(query, kit.limits.looked_up, kit), kit)  # 2


async def recall(scene: Scene, kit: Kit) -> tuple[Finding, ...] | None:
    """Return what the model knows by itself, as far as passages support it; None where it claims nothing."""
    reply = await generate(scene, kit)  # 3
    claims = await split(scene, reply, kit)  # 4
    return await verify(scene, claims, kit) if claims else None  # 5


def _ended(*, said: bool) -> Status:
    return Status.ANSWERED if said else Status.ABSTAINED
