"""Answer from the results of a search engine: a query from the dialogue, the beginnings of N pages, one draft over all.

The engine is a black box. If none is configured, or the asker's scope excludes the web, the corpora are searched. The
paper's model writes a query for every turn. Here the model may decline, and the turn is then small talk, as every
sentence must pass the gate against the pages that it cites.
"""

from collections.abc import Sequence
from dataclasses import replace

from pipeline.kit import Kit, SystemEntry
from pipeline.stages.concurrency import gather_all
from pipeline.stages.draft.answer_draft import say_draft
from pipeline.stages.findings import quote_passages
from pipeline.stages.passage_retrieval import (
    choose_query,
    find_plain_query,
    rank_by_time,
    retrieve_passages,
    split_query,
    take_turns,
)
from pipeline.stages.question_analysis import detect_small_talk, validate_question
from pipeline.stages.turn_context import drop_copies, prepare_context, read_conversation
from pipeline.types import Conversation, Status
from storage.types import DocumentId, Hit, SearchQuery

NEWS, NEWS_PAGES = "news", 2


async def answer(talk: Conversation, kit: Kit) -> Status:
    """Search by a query from the dialogue, and answer from the pages. Raises any `PipelineError`."""
    validate_question(talk.question.text, kit.limits)
    if detect_small_talk(talk.question.text):
        return Status.CHATTED
    if kit.engine:
        context = read_conversation(talk, kit)
        query = await choose_query(context, kit, "web_query")
    else:
        context = await prepare_context(talk, kit)
        query = find_plain_query(context, kit) or await choose_query(context, kit)
    if query is None:
        return Status.CHATTED
    # In the corpora, the hits for the question itself come last, in case the query misses its point.
    ranked = await kit.with_web(query.text, await search(query, kit))
    hits = take_of_each_page(drop_copies((*ranked, *context.nearest), query.text), kit.limits.passages)
    findings = quote_passages(hits)
    if not findings:
        return Status.ABSTAINED
    return Status.ANSWERED if await say_draft(context, findings, kit, refined=True) else Status.ABSTAINED


def take_of_each_page(hits: Sequence[Hit], limit: int) -> tuple[Hit, ...]:
    """Return at most `limit` hits, in their order: of each page the first, then of each the second, and so on."""
    pages = dict[DocumentId, list[Hit]]()
    for hit in hits:
        pages.setdefault((hit.passage.corpus, hit.passage.document), []).append(hit)
    chosen = {hit.passage.id for hit in take_turns([*pages.values()])[:limit]}
    return tuple(hit for hit in hits if hit.passage.id in chosen)


async def search(query: SearchQuery, kit: Kit) -> tuple[Hit, ...]:
    """Return passages of N pages, in the engine's order and by time. If there are two queries, they share the N pages.

    For recent things, two of the pages are searched with "news", and come first, as for the people of the paper.
    """
    queries, pages = split_query(query), kit.limits.pages
    is_recent = query.time == "recent" and NEWS not in query.text.casefold().split()
    if (news := min(NEWS_PAGES, pages // 2)) and kit.engine and is_recent and len(queries) == 1:
        second = replace(query, text=f"{query.text} {NEWS}")
        first, others = await gather_all((_search_one(second, news, kit), _search_one(query, pages - news, kit)))
        return first + others
    each, odd = divmod(pages, len(queries))
    shares = [max(each + (place < odd), 1) for place in range(len(queries))]
    return take_turns(await gather_all(_search_one(*share, kit) for share in zip(queries, shares, strict=True)))


async def _search_one(query: SearchQuery, pages: int, kit: Kit) -> tuple[Hit, ...]:
    return (
        rank_by_time(await kit.engine(query, pages), query)
        if kit.engine
        else await retrieve_passages(query, pages, kit)
    )


ENTRY = SystemEntry(
    "search-engine",
    "Writes an answer over the pages that a search engine finds, in two calls.",
    answer,
    calls=("web_query", "query", "answer", "verify", "verdicts"),
)
