"""Answer from what a search engine finds: a query from the dialogue, N pages' beginnings, one draft over them all.

The engine is a black box. Where none is configured, or the asker's scope has not the web, the corpora are searched in
its place. The paper's model answers from the dialogue alone where it writes no query; here that is small talk, as
nothing is said that no page says. Every sentence passes the gate against the pages that it cites.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from pipeline.kit import Kit, SystemEntry
from pipeline.stages.concurrency import gather_all
from pipeline.stages.draft.answer_draft import say_draft
from pipeline.stages.findings import collect_sentences, order_rivals_by_date, quote_evidence
from pipeline.stages.passage_retrieval import MAX_QUERIES, QUERY_SEPARATOR, choose_query, retrieve_passages
from pipeline.stages.question_analysis import detect_small_talk, validate_question
from pipeline.stages.turn_context import drop_copies, prepare_context, read_conversation
from pipeline.types import Conversation, Status
from storage.types import Hit, SearchQuery


async def answer(talk: Conversation, kit: Kit) -> Status:
    """Search as the dialogue asks for, and say what the pages say. Raises any `PipelineError`."""
    validate_question(talk.question.text, kit.limits)
    if detect_small_talk(talk.question.text):
        return Status.CHATTED
    if kit.engine:
        context = read_conversation(talk, kit)
        query = await choose_query(context, kit, "web_query")
    else:
        context = await prepare_context(talk, kit)
        query = await choose_query(context, kit)
    if query is None:
        return Status.CHATTED
    # Of the corpora, what the question itself found stands behind: the query may miss what was asked.
    hits = drop_copies((*await search(query, kit), *context.nearest), query.text)[: kit.limits.passages]
    findings = order_rivals_by_date(quote_evidence(collect_sentences(hits)))
    if not findings:
        return Status.ABSTAINED
    said = await say_draft(context, findings, kit, refined=True)
    return Status.ANSWERED if said else Status.ABSTAINED


async def search(query: SearchQuery, kit: Kit) -> tuple[Hit, ...]:
    """Return the passages of N pages, in the engine's order; two queries share them."""
    parts = [part.strip() for part in query.text.split(QUERY_SEPARATOR) if part.strip()][:MAX_QUERIES]
    queries = [replace(query, text=part) for part in parts] or [query]
    each, odd = divmod(kit.limits.pages, len(queries))
    shares = [max(each + (place < odd), 1) for place in range(len(queries))]
    found = await gather_all(_search_one(*share, kit) for share in zip(queries, shares, strict=True))
    return _take_turns(found)


async def _search_one(query: SearchQuery, pages: int, kit: Kit) -> tuple[Hit, ...]:
    return await (kit.engine(query, pages) if kit.engine else retrieve_passages(query, pages, kit))


def _take_turns(rankings: Sequence[Sequence[Hit]]) -> tuple[Hit, ...]:
    return tuple(hit for place in zip_longest(*rankings) for hit in place if hit)


ENTRY = SystemEntry(
    "search-engine",
    "Writes an answer over the pages that a search engine finds, in two calls.",
    answer,
    calls=("web_query", "query", "answer", "verify", "verdicts"),
)
