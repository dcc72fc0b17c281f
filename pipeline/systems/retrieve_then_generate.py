"""Answer from one search in one model call: the baseline that other systems are compared with.

Unlike `wikichat` it searches for the question itself, shows the model the sentences of the passages instead of
summaries, uses no claims from the model's memory, and refines no draft. The guarantee is the same: every sentence
passes the gate against the passages that it cites.
"""

from pipeline.kit import Kit, SystemEntry
from pipeline.stages.draft.answer_draft import say_draft
from pipeline.stages.findings import quote_passages
from pipeline.stages.question_analysis import detect_small_talk, validate_question
from pipeline.stages.turn_context import prepare_context
from pipeline.types import Conversation, Status


async def answer(talk: Conversation, kit: Kit) -> Status:
    """Write an answer over the sentences found, and say what passes. Raises any `PipelineError`."""
    validate_question(talk.question.text, kit.limits)
    if detect_small_talk(talk.question.text):
        return Status.CHATTED
    context = await prepare_context(talk, kit)
    findings = quote_passages(context.nearest)
    if not findings:
        return Status.ABSTAINED
    return Status.ANSWERED if await say_draft(context, findings, kit, refined=True) else Status.ABSTAINED


ENTRY = SystemEntry(
    "retrieve-then-generate",
    "Writes an answer over the passages of one search in one call; the baseline.",
    answer,
    calls=("answer", "verify", "verdicts"),
)
