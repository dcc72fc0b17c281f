"""Answer as IKA does: worked examples, retrieved by the dialogue and the knowledge, precede each call.

First the query is written, with examples chosen by the dialogue and the nearest passages. These passages and the
query's hits are the knowledge, by which examples for the draft and for the verdicts on its sentences are chosen again.
Examples are chosen in two steps, as in the paper's figure: the pool is ranked by words and by meaning, and diverse ones
are taken from the best (DER). An example is never evidence: every sentence passes the gate.
"""

from collections.abc import Sequence

from pipeline.kit import Kit, SystemEntry
from pipeline.prompts.demo_ranking import choose_diverse
from pipeline.prompts.demonstrations import write_as_triple, write_demo_triples
from pipeline.stages.draft.answer_draft import say_draft
from pipeline.stages.findings import SourcedFinding, quote_passages
from pipeline.stages.passage_retrieval import choose_query, find_plain_query, retrieve_for_query
from pipeline.stages.question_analysis import detect_small_talk, validate_question
from pipeline.stages.turn_context import TurnContext, add_web, drop_copies, prepare_context
from pipeline.types import Conversation, Status

CANDIDATES = 20  # examples among which diverse ones are chosen
KNOWLEDGE = 1_000  # characters of knowledge by which examples are retrieved: an embedder reads little more


async def answer(talk: Conversation, kit: Kit) -> Status:
    """Write an answer over the hits of one written query; worked examples precede each call.

    Raises any `PipelineError`.
    """
    validate_question(talk.question.text, kit.limits)
    if detect_small_talk(talk.question.text):
        return Status.CHATTED
    context = await add_web(await prepare_context(talk, kit), kit)
    await show_examples(context, quote_passages(context.nearest), kit)
    query = find_plain_query(context, kit) or await choose_query(context, kit)
    if query is None:
        return Status.CHATTED
    hits = await retrieve_for_query(context, query, kit)
    findings = quote_passages(drop_copies((*hits, *context.nearest), query.text)[: kit.limits.passages])
    if not findings:
        return Status.ABSTAINED
    await show_examples(context, findings, kit)
    return Status.ANSWERED if await say_draft(context, findings, kit, refined=True) else Status.ABSTAINED


async def show_examples(context: TurnContext, knowledge: Sequence[SourcedFinding], kit: Kit) -> None:
    """Retrieve examples by the dialogue and the knowledge; show diverse ones before the model calls that follow."""
    triples = kit.limits.example_notes == "triples"
    known = "\n".join(write_as_triple(finding.text) if triples else finding.text for finding in knowledge)[:KNOWLEDGE]
    ranked = await kit.demos("\n".join((*context.asked, known)), CANDIDATES)
    chosen = await choose_diverse(ranked, kit.limits.examples, kit.limits.example_relevance, kit.compare)
    kit.demos.show([write_demo_triples(demo) for demo in chosen] if triples else chosen)


ENTRY = SystemEntry(
    "in-context",
    "Writes an answer after worked examples, your own approved answers among them.",
    answer,
    calls=("query", "answer", "verify", "verdicts"),
)
