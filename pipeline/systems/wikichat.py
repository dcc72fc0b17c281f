"""Answer as WikiChat does, in seven stages: from passages, and from the model's knowledge that passages confirm.

Unlike `extractive`, it writes its own sentences, so each must pass the gate against the passages that it cites. The
text that the model generates from memory is split into claims, which are verified; the text itself is never said.
"""

from pipeline.kit import Kit, SystemEntry
from pipeline.replies.stage_replies import TimedClaim
from pipeline.stages.concurrency import gather_pair
from pipeline.stages.draft.answer_draft import collect_draft, say_draft, say_refined
from pipeline.stages.findings import SourcedFinding, deduplicate_findings, order_rivals_by_date
from pipeline.stages.model_claims import generate_reply, seek_claim, split_claims, verify_claims
from pipeline.stages.passage_retrieval import PassageReader, summarise_passages
from pipeline.stages.question_analysis import detect_small_talk, validate_question
from pipeline.stages.quotation import show_interim_quote
from pipeline.stages.turn_context import TurnContext, prepare_context
from pipeline.types import Conversation, Status


async def answer(talk: Conversation, kit: Kit) -> Status:
    validate_question(talk.question.text, kit.limits)
    if detect_small_talk(talk.question.text):
        return Status.CHATTED
    context = await prepare_context(talk, kit)
    reader, claims = PassageReader(context, kit, summarise_passages), list[TimedClaim]()
    async with show_interim_quote(talk, context.found, kit):
        looked_up, recalled, fault = await gather_pair(reader.look_up(), recall(context, kit, claims))
    findings = order_rivals_by_date(deduplicate_findings((*(looked_up or ()), *(recalled or ()))))
    if not findings and fault:
        raise fault  # a model that fails in one half must not look like "I don't know"
    if not findings:
        findings = deduplicate_findings(await reader.look_up_claims(map(seek_claim, claims)))
    if not findings:
        return Status.CHATTED if looked_up is None and recalled is None else Status.ABSTAINED
    if kit.limits.student or not kit.limits.refine:
        answered = await say_draft(context, findings, kit)  # 6
    else:
        draft = await collect_draft(context, findings, kit)  # 6
        answered = await say_refined(context, draft, findings, kit)  # 7
    return Status.ANSWERED if answered else Status.ABSTAINED


async def recall(context: TurnContext, kit: Kit, claims: list[TimedClaim]) -> tuple[SourcedFinding, ...] | None:
    """Return the model's knowledge that passages support; None if it claims nothing. `claims` receives its claims."""
    reply = await generate_reply(context, kit)  # 3
    claims += await split_claims(context, reply, kit)  # 4
    return await verify_claims(context, claims, kit) if claims else None  # 5


ENTRY = SystemEntry(
    "wikichat",
    "Writes an answer in seven stages and many calls; refines its draft by feedback.",
    answer,
    calls=("query", "summarise", "generate", "split", "verify", "verdicts", "draft", "feedback", "refine"),
)
