"""Answer as `wikichat` does and with the same guarantee, in the time of a few calls.

Claims are generated as claims, in one streamed call, and each is verified while the next is written; the draft is asked
to be at once what refinement would make of it. So a turn takes three rounds: claims beside the query, verification
beside summaries, the draft; where nothing was found, one more reads the passages that were found for claims. Every
claim has its verdict before the draft begins, and every sentence passes the gate.
"""

from pipeline.kit import Kit, SystemEntry
from pipeline.stages.answer_draft import say_draft
from pipeline.stages.concurrency import gather_pair, open_task_group
from pipeline.stages.model_claims import ClaimVerifier, seek_claim, stream_claims
from pipeline.stages.passage_retrieval import (
    PassageReader,
    deduplicate_findings,
    extract_bullets,
    order_rivals_by_date,
)
from pipeline.stages.question_analysis import detect_small_talk, validate_question
from pipeline.stages.quotation import show_interim_quote
from pipeline.stages.turn_context import TurnContext, prepare_context
from pipeline.types import Conversation, Status


async def answer(talk: Conversation, kit: Kit) -> Status:
    validate_question(talk.question.text, kit.limits)
    if detect_small_talk(talk.question.text):
        return Status.CHATTED
    context = await prepare_context(talk, kit)
    async with open_task_group() as group:
        verifier = ClaimVerifier(context, kit, group)
        status = await _answered(talk, context, kit, verifier)
        await verifier.await_reasoning()
        return status


async def _answered(talk: Conversation, context: TurnContext, kit: Kit, verifier: ClaimVerifier) -> Status:
    reader = PassageReader(context, kit, extract_bullets)
    recall = verifier.verify_stream(stream_claims(context, kit))  # 3, 4, 5
    async with show_interim_quote(talk, context.found, kit) as shown:
        looked_up, recalled, fault = await gather_pair(reader.look_up(), recall)  # 1, 2
    findings = order_rivals_by_date(deduplicate_findings((*(looked_up or ()), *(recalled or ()))))
    if not findings and fault:
        raise fault  # a model that is down for one half is no "I don't know"
    if not findings:
        findings = deduplicate_findings(await reader.look_up_claims(map(seek_claim, verifier.claims)))
    if not findings:
        return Status.CHATTED if looked_up is None and recalled is None else Status.ABSTAINED
    said = await say_draft(context, findings, kit, refined=True, shown=shown)  # 6, 7
    return Status.ANSWERED if said else Status.ABSTAINED


ENTRY = SystemEntry(
    "wikichat-fast",
    "Writes an answer with the guarantee of wikichat, in the time of a few calls.",
    answer,
    calls=("query", "bullets", "claims", "verify", "verdicts", "answer"),
)
