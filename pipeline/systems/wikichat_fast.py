"""Answers as `wikichat` does and with the same guarantee, in the time of a few calls.

Claims are generated as claims, in one streamed call, and each is verified while the next is written; the draft is asked
to be at once what refinement would make of it. So a turn takes three rounds: claims beside the query, verification
beside summaries, the draft. Every claim has its verdict before the draft begins, and every sentence passes the gate.
"""

from pipeline.findings import Finding, distinct, newest_of_rivals_first
from pipeline.kit import Kit
from pipeline.refusing import refuse_unreadable
from pipeline.small_talk import small_talk
from pipeline.stages.claiming import claimed
from pipeline.stages.looking_up import choose_query, retrieve_written, take_out
from pipeline.stages.quoting import quoting
from pipeline.stages.saying import say_all
from pipeline.stages.scene import Scene, open_scene
from pipeline.stages.together import beside, tasks
from pipeline.stages.weighing import Scales
from pipeline.stages.writing import draft
from pipeline.types import Conversation, Status


async def answer(talk: Conversation, kit: Kit) -> Status:
    """Answer the conversation's last question. Raises any `PipelineError`."""
    refuse_unreadable(talk.question.text, kit.limits)
    if small_talk(talk.question.text):
        return Status.CHATTED
    scene = await open_scene(talk, kit)
    async with tasks() as group:
        scales = Scales(scene, kit, group)
        status = await _answered(talk, scene, kit, scales)
        await scales.explained()
        return status


async def _answered(talk: Conversation, scene: Scene, kit: Kit, scales: Scales) -> Status:
    recall = scales.weighed(claimed(scene, kit))  # 3, 4, 5
    async with quoting(talk, scene.nearest, kit):
        looked_up, recalled, fault = await beside(look_up(scene, kit), recall)
    findings = newest_of_rivals_first(distinct((*(looked_up or ()), *(recalled or ()))))
    if not findings and fault:
        raise fault  # a model that is down for one half is no "I don't know"
    if not findings:
        return Status.CHATTED if looked_up is None and recalled is None else Status.ABSTAINED
    said = await say_all(draft(scene, findings, kit, refined=True), findings, scene, kit)  # 6, 7
    return Status.ANSWERED if said else Status.ABSTAINED


async def look_up(scene: Scene, kit: Kit) -> tuple[Finding, ...] | None:
    """Return what passages say to the question; None where it wants no fact."""
    query = await choose_query(scene, kit)  # 1
    if query is None:
        return None
    return await take_out(query, await retrieve_written(scene, query, kit), kit)  # 2
