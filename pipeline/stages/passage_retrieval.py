"""Stages 1 and 2: choose a query, retrieve passages of the right time, and extract findings from them."""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from pipeline.errors import ModelRefused, UnreadableReply
from pipeline.extraction.candidates import write_context
from pipeline.kit import Kit
from pipeline.replies.stage_replies import MAX_BULLETS, bullets_format, query_format
from pipeline.stages.concurrency import gather_all, gather_successes
from pipeline.stages.findings import SourcedFinding, bind_finding, collect_sentences, document_day
from pipeline.stages.passage_order import MOST_READ, order_by_logits, read_passages
from pipeline.stages.question_analysis import read_as_query, resolve_question
from pipeline.stages.turn_context import TurnContext, add_web, drop_copies
from storage.language.detection import detect_language
from storage.language.words import content_terms
from storage.types import Evidence, Hit, SearchQuery

OVERFETCH = 4  # how many times more hits are fetched than kept, as copies are dropped and a time reorders them


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
"""The floor of relevance: the share of a claim's words that a passage has, or their cosine.

In the example handbook, none of the 164 passages that decide a claim is below both, and 82% of the others are.
"""


def is_relevant(claim: str, hit: Hit) -> bool:
    """Return whether a passage may be about a claim. A passage in another language always may."""
    language = hit.document.language or detect_language(hit.passage.text)
    if hit.dense >= LEAST_ALIKE or language not in {"", detect_language(claim)}:
        return True
    terms = set(content_terms(claim))
    hit_terms = content_terms(write_context(hit, hit.passage.text))
    return len(terms.intersection(hit_terms)) >= LEAST_SHARED * len(terms)


async def retrieve_evidence(query: SearchQuery, kit: Kit) -> tuple[Evidence, ...]:
    """Return the sentences to verify a claim against; empty if no hit is relevant. Raises `SearchUnavailable`."""
    return collect_sentences(await _retrieve_relevant(query, kit))


async def _retrieve_relevant(query: SearchQuery, kit: Kit) -> tuple[Hit, ...]:
    hits = await retrieve_passages(query, kit.limits.evidence, kit)
    return tuple(hit for hit in hits if is_relevant(query.text, hit))


QUERY_SEPARATOR = "|"  # as the model writes it if a question has two parts
MAX_QUERIES = 2


async def choose_query(context: TurnContext, kit: Kit, template: str = "query") -> SearchQuery | None:
    """Return the search query and its time; None if the user does not ask for a fact.

    The question itself is the query if the model's reply is useless, or by the settings, except for a search engine.
    """
    if kit.limits.query == "never" and template == "query":
        return SearchQuery(context.search_query)
    try:
        facts = {"talk": context.talk, "reading": context.reading, "queries": context.talk.queries}
        return await kit.ask(template, query_format(), stage="query", **facts)
    except (UnreadableReply, ModelRefused):
        return SearchQuery(resolve_question(context.talk).query)


def find_plain_query(context: TurnContext, kit: Kit) -> SearchQuery | None:
    """Return the question as a query, if it is self-contained and a near passage may be about it; else None."""
    if kit.limits.query == "always" or context.reading:
        return None
    query = read_as_query(context.talk)
    hits = context.nearest[: kit.limits.looked_up]
    return query if query and any(is_relevant(query.text, hit) for hit in hits) else None


async def retrieve_passages(query: SearchQuery, k: int, kit: Kit) -> tuple[Hit, ...]:
    """Return the `k` passages that best fit a query and its time. The search's first hit is always among them."""
    hits = drop_copies(await kit.search(query, k * OVERFETCH), query.text)
    best = rank_by_time(hits, query)[:k]
    return best if not hits or hits[0] in best else (*best[: k - 1], hits[0])


async def retrieve_for_query(context: TurnContext, query: SearchQuery, kit: Kit, more: int = 0) -> tuple[Hit, ...]:
    """Return the hits for the written query, or both queries if there are two, and for the question as asked.

    The rankings are interleaved, so that no query takes all places; the hits for a single query and the question are
    ordered by the cross-encoder, unless a time is asked for. The question's own hits are left out if it is not in the
    library's language. `more`: how many are returned in addition to the limit. Raises `SearchUnavailable`.
    """
    k = kit.limits.looked_up + more
    if query.time is None and query.text == context.search_query and kit.limits.passages >= k:
        return context.nearest[:k]
    queries = split_query(query)
    reordered = query.time is None and len(queries) == 1
    retrievals = (retrieve_passages(part, MOST_READ if reordered else k, kit) for part in queries)
    rankings = await gather_all(retrievals) if len(queries) > 1 else (await next(retrievals),)
    if not context.reading:
        rankings = (*rankings, rank_by_time(context.nearest, query)[:k])
    hits = drop_copies(take_turns(rankings), query.text)
    if reordered:
        # By the question if possible, whose passages were read before.
        asked, language = context.search_query, context.asker_language
        if context.reading:
            asked, language = query.text, context.library_language
        hits = order_by_logits(hits, await read_passages(asked, language, hits, kit))
    return hits[: -(-k // len(queries)) * len(queries)]


def split_query(query: SearchQuery) -> tuple[SearchQuery, ...]:
    """Return the two queries that the model has written for a question with two parts, or else the query itself."""
    parts = [part.strip() for part in query.text.split(QUERY_SEPARATOR) if part.strip()][:MAX_QUERIES]
    return tuple(replace(query, text=part) for part in parts) or (query,)


def take_turns(rankings: Sequence[Sequence[Hit]]) -> tuple[Hit, ...]:
    """Return the first hits of all rankings, then the second ones, and so on."""
    return tuple(hit for place in zip_longest(*rankings) for hit in place if hit)


async def summarise_passages(
    query: SearchQuery, hits: Sequence[Hit], kit: Kit, asked: Sequence[str] = ()
) -> tuple[SourcedFinding, ...]:
    """Summarise passages for a query. Each statement has sentences of its passage. Raises `PipelineError`."""
    return await _summarise_groups("summarise", query, [(hit,) for hit in hits], kit, asked)


async def extract_bullets(
    query: SearchQuery, hits: Sequence[Hit], kit: Kit, asked: Sequence[str] = ()
) -> tuple[SourcedFinding, ...]:
    """Summarise with a shorter prompt: one call for each passage, or if the model is busy, a single call."""
    groups = [hits] if kit.busy() else [(hit,) for hit in hits]
    return await _summarise_groups("bullets", query, groups, kit, asked)


Summarise = Callable[[SearchQuery, Sequence[Hit], Kit, Sequence[str]], Awaitable[tuple[SourcedFinding, ...]]]


@dataclass
class PassageReader:
    """Summarises passages for one turn: those for the question itself, for a written query, and for claims."""

    context: TurnContext
    kit: Kit
    summarise: Summarise
    _query: SearchQuery | None = field(default=None, init=False)
    _read: tuple[Hit, ...] = field(default=(), init=False)

    async def look_up(self) -> tuple[SourcedFinding, ...] | None:
        """Return findings for the question; None if it does not ask for a fact. Raises `PipelineError`."""
        self.context = await add_web(self.context, self.kit)
        if plain := find_plain_query(self.context, self.kit):
            hits = await retrieve_for_query(self.context, plain, self.kit)
            if findings := await self._summarise_unread(plain, hits):
                return findings
        self._query = query = await choose_query(self.context, self.kit)  # 1
        if query is None:
            return None
        hits = await retrieve_for_query(self.context, query, self.kit, len(self._read))
        return await self._summarise_unread(query, hits, self.kit.limits.looked_up + len(split_query(query)) - 1)

    async def _summarise_unread(
        self, query: SearchQuery, hits: Iterable[Hit], most: int | None = None
    ) -> tuple[SourcedFinding, ...]:
        self._query, known = query, {hit.passage.id for hit in self._read}
        unread = tuple({hit.passage.id: hit for hit in hits if hit.passage.id not in known}.values())[:most]
        self._read += unread
        return await self.summarise(query, unread, self.kit, self.context.asked) if unread else ()  # 2

    async def look_up_claims(self, claims: Iterable[SearchQuery]) -> tuple[SourcedFinding, ...]:
        """Return findings from the best unread passages that searches for claims find. Raises `PipelineError`."""
        if self._query is None:
            return ()
        rankings = await gather_all(_retrieve_relevant(claim, self.kit) for claim in claims)
        hits = drop_copies((*self._read, *take_turns(rankings)), self._query.text)
        return await self._summarise_unread(self._query, hits, self.kit.limits.looked_up)


async def _summarise_groups(
    template: str, query: SearchQuery, groups: Sequence[Sequence[Hit]], kit: Kit, asked: Sequence[str]
) -> tuple[SourcedFinding, ...]:
    summaries = await gather_successes(_summarise_group(template, query, group, kit, asked) for group in groups)
    return tuple(finding for findings in summaries for finding in findings)


async def _summarise_group(
    template: str, query: SearchQuery, hits: Sequence[Hit], kit: Kit, asked: Sequence[str]
) -> tuple[SourcedFinding, ...]:
    sentences = collect_sentences(hits)
    if not sentences:
        return ()
    form = bullets_format(len(sentences), len(hits))
    bullets = await kit.ask(template, form, stage="summarise", query=query.text, sentences=sentences)
    findings: list[SourcedFinding] = []
    for bullet in bullets[: MAX_BULLETS * len(hits)]:
        if bullet.sentences:
            evidence = tuple(sentences[number - 1] for number in bullet.sentences)
            findings += await bind_finding(bullet.text, evidence, kit.supports, asked=asked)
    return tuple(findings)
