"""Answer as `wikichat` does and with the same guarantee, in the time of a few calls.

Claims are generated directly, in one streamed call, and verified together while passages are summarised; the prompt of
the draft includes the criteria of refinement. If a fact is asked for, the draft begins once passages are summarised;
claims verified later are said after it, in a second wave. So a turn takes four rounds of calls: claims, and a query if
one is needed; summaries and verification; the draft; the verdicts on its last sentences. If nothing was found, one more
round reads the passages found for claims. Every sentence passes the gate.
"""

from asyncio import Task

from pipeline.errors import PipelineError
from pipeline.kit import Kit, SystemEntry
from pipeline.stages.concurrency import capture_outcome, open_task_group
from pipeline.stages.draft.answer_draft import say_draft
from pipeline.stages.draft.continuation import merge_findings, say_in_waves
from pipeline.stages.findings import SourcedFinding, deduplicate_findings
from pipeline.stages.model_claims import ClaimVerifier, seek_claim, stream_claims
from pipeline.stages.passage_retrieval import PassageReader, extract_bullets
from pipeline.stages.question_analysis import asks_for_fact, detect_small_talk, validate_question
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
        verified = group.create_task(capture_outcome(verifier.verify_stream(stream_claims(context, kit))))  # 3, 4, 5
        status = await _answered(talk, context, kit, verifier, verified)
        if not verified.done():
            verifier.abandon()
            verified.cancel()
        await verifier.await_reasoning()
        return status


async def _answered(
    talk: Conversation,
    context: TurnContext,
    kit: Kit,
    verifier: ClaimVerifier,
    verified: Task[tuple[SourcedFinding, ...] | PipelineError | None],
) -> Status:
    reader = PassageReader(context, kit, extract_bullets)
    async with show_interim_quote(talk, context.found, kit):
        looked_up = await capture_outcome(reader.look_up())  # 1, 2
        summarised = () if isinstance(looked_up, PipelineError) else looked_up or ()
        known = merge_findings(summarised, verifier.kept)
        # The main point of an explanation comes first, and may still be missing. A student was trained on all findings.
        if not known or kit.limits.student or not asks_for_fact(talk):
            await verified
    if known and not verified.done():
        answered = await say_in_waves(context, known, verifier, verified, kit)
        return Status.ANSWERED if answered else Status.ABSTAINED
    recalled = verified.result()
    faults = [outcome for outcome in (looked_up, recalled) if isinstance(outcome, PipelineError)]
    findings = merge_findings(summarised, verifier.kept)
    if not findings and faults:
        raise faults[0]  # a model that fails in one half must not look like "I don't know"
    if not findings:
        findings = deduplicate_findings(await reader.look_up_claims(map(seek_claim, verifier.claims)))
    if not findings:
        return Status.CHATTED if looked_up is None and recalled is None else Status.ABSTAINED
    answered = await say_draft(context, findings, kit, refined=True)  # 6, 7
    return Status.ANSWERED if answered else Status.ABSTAINED


ENTRY = SystemEntry(
    "wikichat-fast",
    "Writes an answer with the guarantee of wikichat, in the time of a few calls.",
    answer,
    calls=("query", "bullets", "claims", "verify", "verdicts", "answer", "continuation"),
)
