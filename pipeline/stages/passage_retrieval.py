"""Stages 1 and 2: choose a query, retrieve passages of the right time, and extract what they say as findings."""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest

from pipeline.errors import ModelRefused, UnreadableReply
from pipeline.kit import Kit
from pipeline.replies.stage_replies import bullets_format, query_format
from pipeline.stages.concurrency import gather_all, gather_successes
from pipeline.stages.findings import SourcedFinding, bind_finding, collect_sentences, document_day
from pipeline.stages.question_analysis import read_as_query, resolve_question
from pipeline.stages.quotation import order_passages
from pipeline.stages.turn_context import TurnContext, drop_copies
from storage.language.detection import detect_language
from storage.language.words import content_terms
from storage.types import Evidence, Hit, SearchQuery

OVERFETCH = 4  # so many times more hits are fetched than kept, as some are copies and a time ranks them anew


def rank_by_time(hits: Sequence[Hit], query: SearchQuery) -> tuple[Hit, ...]:
    if query.time is None:
        return tuple(hits)
    if query.time == "recent":
        newest = sorted(range(len(hits)), key=lambda place: -document_day(hits[place].document))
        order = sorted(range(len(hits)), key=lambda place: (place + newest.index(place), newest.index(place)))
    else:
        year = re.compile(rf"(?<!\d){query.time}(?!\d)")
        texts = [(hit.document.title, hit.passage.section, hit.passage.text) for hit in hits]
        order = sorted(range(len(hits)), key=lambda place: not any(map(year.search, texts[place])))
    return tuple(hits[place] for place in order)


LEAST_SHARED, LEAST_ALIKE = 0.25, 0.35
"""The floor of relevance: a passage has such a share of a claim's words, or is as near to it in meaning.

Over the example handbook none of 164 passages that settle a claim is below both, and of those that are found for claims
about other things 82% are.
"""


def is_relevant(claim: str, hit: Hit) -> bool:
    """Return whether a passage may say anything of a claim; what is in another language always may."""
    if hit.dense >= LEAST_ALIKE or hit.document.language not in {"", detect_language(claim)}:
        return True
    wanted = set(content_terms(claim))
    said = content_terms(f"{hit.document.title} {hit.passage.section} {hit.passage.text}")
    return len(wanted.intersection(said)) >= LEAST_SHARED * len(wanted)


async def retrieve_evidence(query: SearchQuery, kit: Kit) -> tuple[Evidence, ...]:
    """Return the sentences that a claim is verified against; none where nothing found is relevant.

    Raises `SearchUnavailable`.
    """
    return collect_sentences(await _retrieve_relevant(query, kit))


async def _retrieve_relevant(query: SearchQuery, kit: Kit) -> tuple[Hit, ...]:
    hits = await retrieve_passages(query, kit.limits.evidence, kit)
    return tuple(hit for hit in hits if is_relevant(query.text, hit))


QUERY_SEPARATOR, MAX_QUERIES = "|", 2  # as the model writes it where a question has two parts
MAX_BULLETS = 8  # bullets of one passage


async def choose_query(context: TurnContext, kit: Kit, template: str = "query") -> SearchQuery | None:
    """Choose what to look up, and of what time; None where the user asks for no fact.

    A model that declines, or whose reply cannot be read, keeps nobody from looking up the question as it stands. Where
    no query is to be written, that is all that is looked up; a search engine always gets a query, as strangers read it.
    """
    if kit.limits.query == "never" and template == "query":
        return SearchQuery(context.search_query)
    try:
        return await kit.ask(template, query_format(), stage="query", talk=context.talk, reading=context.reading)
    except (UnreadableReply, ModelRefused):
        return SearchQuery(resolve_question(context.talk).query)


def find_plain_query(context: TurnContext, kit: Kit) -> SearchQuery | None:
    """Return the question as the query where it stands alone, and something may say anything of it; else None."""
    if kit.limits.query == "always" or context.reading:
        return None
    query = read_as_query(context.talk)
    hits = context.nearest[: kit.limits.looked_up]
    return query if query and any(is_relevant(query.text, hit) for hit in hits) else None


async def retrieve_passages(query: SearchQuery, k: int, kit: Kit) -> tuple[Hit, ...]:
    """Return the `k` passages that fit a query and its time best; the best by its words is among them.

    It may give the year that is asked for in other words, or not at all. Raises `SearchUnavailable`.
    """
    hits = drop_copies(await kit.search(query, k * OVERFETCH), query.text)
    return _keep_nearest(rank_by_time(hits, query), hits[:1], k)


def _keep_nearest(ranked: Sequence[Hit], nearest: Sequence[Hit], k: int) -> tuple[Hit, ...]:
    """Return the first `k` of a ranking, the last of them left out for the nearest where it is not among them."""
    kept = tuple(ranked[:k])
    return kept if not nearest or nearest[0] in kept else (*kept[: k - 1], nearest[0])


async def retrieve_for_query(context: TurnContext, query: SearchQuery, kit: Kit) -> tuple[Hit, ...]:
    """Retrieve for the written query, or for both of two, and beside it for the question as it was asked.

    Each gives its best in turn, so that neither a query that misses what was asked nor one of two parts takes all
    places. A question that leans on what was said before, or is not in the library's language, is left to the query.
    Where the query is the question itself, the hits are known already. Raises `SearchUnavailable`.
    """
    k = kit.limits.looked_up
    if query.time is None and query.text == context.search_query and kit.limits.passages >= k:
        return context.nearest[:k]
    parts = [part.strip() for part in query.text.split(QUERY_SEPARATOR) if part.strip()][:MAX_QUERIES] or [query.text]
    first, *others = [replace(query, text=part) for part in parts]
    found = (retrieve_passages(one, k, kit) for one in (first, *others))
    rankings = await gather_all(found) if others else (await next(found),)
    if not context.reading and context.search_query == context.talk.question.text:
        rankings = (*rankings, rank_by_time(context.nearest, query)[:k])
    in_turn = [hit for place in zip_longest(*rankings) for hit in place if hit]
    return drop_copies(in_turn, query.text)[: -(-k // len(parts)) * len(parts)]


async def summarise_passages(
    query: SearchQuery, hits: Sequence[Hit], kit: Kit, asked: Sequence[str] = ()
) -> tuple[SourcedFinding, ...]:
    """Summarise passages to the point of a query, each statement bound to sentences of its passage.

    Raises `PipelineError`.
    """
    return await _summarise_groups("summarise", query, [(hit,) for hit in hits], kit, asked)


async def extract_bullets(
    query: SearchQuery, hits: Sequence[Hit], kit: Kit, asked: Sequence[str] = ()
) -> tuple[SourcedFinding, ...]:
    """Do the same with a shorter prompt: a call for each passage, or one for all where calls would have to wait.

    Raises `PipelineError`.
    """
    groups = [hits] if kit.busy() else [(hit,) for hit in hits]
    return await _summarise_groups("bullets", query, groups, kit, asked)


ROOM_FOR_NEAREST = 3  # passages read; where it is fewer, only those of the best sentences are
Summarise = Callable[[SearchQuery, Sequence[Hit], Kit, Sequence[str]], Awaitable[tuple[SourcedFinding, ...]]]


class PassageReader:
    """Summarises the passages of one turn's query, and where they tell nothing the best of those found for claims.

    Where a question stands alone it is the query, unless one is `written` anyway; what it does not find, a written one
    may.
    """

    def __init__(self, context: TurnContext, kit: Kit, summarise: Summarise, *, written: bool = False) -> None:
        self._context = context
        self._kit = kit
        self._summarise = summarise
        self._plain = None if written else find_plain_query(context, kit)
        self._query: SearchQuery | None = None
        self._read: tuple[Hit, ...] = ()

    async def look_up(self) -> tuple[SourcedFinding, ...] | None:
        """Return what passages say to the question; None where it wants no fact. Raises `PipelineError`."""
        if self._plain and (findings := await self._summarise_unread(self._plain, await self._find_plain(self._plain))):
            return findings
        self._query = await choose_query(self._context, self._kit)  # 1
        if self._query is None:
            return None
        return await self._summarise_unread(
            self._query, await retrieve_for_query(self._context, self._query, self._kit)
        )

    async def _find_plain(self, query: SearchQuery) -> tuple[Hit, ...]:
        """Return what is read for a question that is its own query: the nearest, and where the best sentences stand.

        A question of some time is left to how passages are ranked by it.
        """
        context, k = self._context, self._kit.limits.looked_up
        if query.time is not None or len(context.nearest) <= k:
            return await retrieve_for_query(context, query, self._kit)
        ordered = await order_passages(context.talk, context.nearest, self._kit)
        return _keep_nearest(ordered, context.nearest[:1] if k >= ROOM_FOR_NEAREST else (), k)

    async def _summarise_unread(self, query: SearchQuery, hits: Sequence[Hit]) -> tuple[SourcedFinding, ...]:
        self._query, known = query, {hit.passage.id for hit in self._read}
        unread = tuple(hit for hit in hits if hit.passage.id not in known)
        self._read += unread
        return await self._summarise(query, unread, self._kit, self._context.asked) if unread else ()  # 2

    async def look_up_claims(self, claims: Iterable[SearchQuery]) -> tuple[SourcedFinding, ...]:
        """Return what the best passages found for claims say to the question, of those that were not read yet.

        Raises `PipelineError`.
        """
        if self._query is None:
            return ()
        rankings = await gather_all(_retrieve_relevant(claim, self._kit) for claim in claims)
        in_turn = [hit for place in zip_longest(*rankings) for hit in place if hit]
        known = {hit.passage.id for hit in self._read}
        kept = [hit for hit in drop_copies((*self._read, *in_turn), self._query.text) if hit.passage.id not in known]
        unread = tuple({hit.passage.id: hit for hit in kept}.values())[: self._kit.limits.looked_up]
        return await self._summarise(self._query, unread, self._kit, self._context.asked) if unread else ()


async def _summarise_groups(
    template: str, query: SearchQuery, groups: Sequence[Sequence[Hit]], kit: Kit, asked: Sequence[str]
) -> tuple[SourcedFinding, ...]:
    found = await gather_successes(_summarise_group(template, query, group, kit, asked) for group in groups)
    return tuple(finding for findings in found for finding in findings)


async def _summarise_group(
    template: str, query: SearchQuery, hits: Sequence[Hit], kit: Kit, asked: Sequence[str]
) -> tuple[SourcedFinding, ...]:
    sentences = collect_sentences(hits)
    if not sentences:
        return ()
    form = bullets_format(len(sentences))
    found = await kit.ask(template, form, stage="summarise", query=query.text, sentences=sentences)
    findings: list[SourcedFinding] = []
    for bullet in found[: MAX_BULLETS * len(hits)]:
        if bullet.sentences:
            evidence = tuple(sentences[number - 1] for number in bullet.sentences)
            findings += await bind_finding(bullet.text, evidence, kit.supports, asked=asked)
    return tuple(findings)
