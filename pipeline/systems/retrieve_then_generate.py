"""Answer from one search in one model call: the baseline that other systems are compared with.

Unlike `wikichat` it searches for the question itself, shows the model the sentences of the passages instead of
summaries, uses no claims from the model's memory, and refines no draft. The guarantee is the same: every sentence
passes the gate against the passages that it cites. If quick effort is requested, as for slow servers, it makes a single
short call, and the gate checks the reply without the model.
"""

from collections.abc import Sequence
from itertools import accumulate

from pipeline.kit import Kit, SystemEntry
from pipeline.stages.draft.answer_draft import say_draft
from pipeline.stages.findings import quote_passages
from pipeline.stages.question_analysis import detect_small_talk, validate_question
from pipeline.stages.quotation import show_interim_quote
from pipeline.stages.turn_context import add_web, prepare_context
from pipeline.types import Conversation, Status
from storage.types import Hit

BRIEF_CHARACTERS = 1_200  # of the passages in a short call: about 300 tokens


async def answer(talk: Conversation, kit: Kit) -> Status:
    """Write an answer over the sentences found, and say what passes. Raises any `PipelineError`."""
    validate_question(talk.question.text, kit.limits)
    if detect_small_talk(talk.question.text):
        return Status.CHATTED
    context = await prepare_context(talk, kit)
    async with show_interim_quote(talk, context.found, kit):
        context = await add_web(context, kit)
        findings = quote_passages(select_first(context.nearest) if kit.limits.one_call else context.nearest)
        answered = bool(findings) and await say_draft(context, findings, kit, refined=True)
    return Status.ANSWERED if answered else Status.ABSTAINED


def select_first(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the first hits with at most `BRIEF_CHARACTERS` together, but at least one."""
    lengths = accumulate(len(hit.passage.text) for hit in hits)
    return tuple(hits[: max(1, sum(length <= BRIEF_CHARACTERS for length in lengths))])


ENTRY = SystemEntry(
    "retrieve-then-generate",
    "Writes an answer over the passages of one search in one call; the baseline.",
    answer,
    calls=("answer", "verify", "verdicts"),
    one_call=True,
)
