"""Stages 1 and 2: choose a query, retrieve passages of the right time, and extract what they say as findings.

A finding is a statement bound to the sentences of passages that say it.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest

from pipeline.errors import ModelRefused, UnreadableReply
from pipeline.extraction.quote_selection import is_contradiction, parse_statement
from pipeline.kit import Kit, Supports
from pipeline.replies.stage_replies import QUERY, bullets_format
from pipeline.stages.concurrency import gather_all, gather_successes
from pipeline.stages.question_analysis import opens_with_pronoun, read_as_query, resolve_question
from pipeline.stages.quotation import order_passages
from pipeline.stages.turn_context import TurnContext, drop_copies
from pipeline.support.support_check import find_quotable_spans, is_in_list
from storage.language.detection import detect_language
from storage.language.words import content_terms
from storage.types import Document, Evidence, Hit, PassageKind, SearchQuery, Span


@dataclass(frozen=True, slots=True)
class SourcedFinding:
    text: str
    evidence: tuple[Evidence, ...]


def collect_sentences(places: Iterable[Hit | Evidence]) -> tuple[Evidence, ...]:
    """Return the sentences of passages, each passage once, in order: what a model is shown with numbers."""
    passages = {one.passage.id: one for one in places}
    return tuple(
        Evidence(one.passage.text[start:end], one.passage, one.document, (start, end))
        for one in passages.values()
        for start, end in find_quotable_spans(one.passage)
    )


LEAST_TELLING = 2  # words that a sentence has of a statement if it can tell anything of it


def select_context(statement: str, cited: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return the sentences of the cited passages that can tell whether a statement is true, in order.

    Those are the cited ones and all that share two words with it, each with the one before it. Of 251 verdicts given by
    hand over whole passages none stands on another. What is no prose, or in another language, stays whole.
    """
    wanted, language, found = set(content_terms(statement)), detect_language(statement), list[Evidence]()
    cited = tuple(cited)
    for _, group in groupby(collect_sentences(cited), key=lambda one: one.passage.id):
        sentences = tuple(group)
        first = sentences[0]
        if first.passage.kind is not PassageKind.PROSE or first.document.language not in {"", language}:
            found += sentences
            continue
        telling = [
            any(_overlap(one, other) for other in cited) or len(wanted & set(content_terms(one.text))) >= LEAST_TELLING
            for one in sentences
        ]
        found += [one for one, *near in zip(sentences, telling, (*telling[1:], False), strict=True) if any(near)]
    return tuple(found)


MAX_LED = 3  # so many sentences are gone back at most for whom or what a sentence's pronoun means
MAX_LIST = 500  # characters from a list's lead-in to the end of an item; farther up it is not gone for one
_LABELLED = re.compile(r"\S+(?: [^\s:]+){0,4}:\s+\S")  # as an item is without its mark: "Decor: plants, rugs"


def bind_subjects(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return evidence in the order of its passages, each from where it can be understood.

    What begins with a pronoun begins with the sentence before that names whom it means, and an item of a list with the
    line that leads the list in, as that may deny all of it. What overlaps then is one.
    """
    bound: dict[str, list[Evidence]] = {}
    for one in map(_bind_subject, evidence):
        bound.setdefault(one.passage.id, []).append(one)
    return tuple(one for places in bound.values() for one in _merge_overlapping(places))


def _merge_overlapping(places: Iterable[Evidence]) -> list[Evidence]:
    merged: list[Evidence] = []
    for one in sorted(places, key=lambda one: one.span):
        if merged and one.span[0] < merged[-1].span[1]:
            last = merged.pop()
            merged.append(_quote_span(last, (last.span[0], max(last.span[1], one.span[1]))))
        else:
            merged.append(one)
    return merged


def _quote_span(one: Evidence, span: Span) -> Evidence:
    return Evidence(one.passage.text[slice(*span)], one.passage, one.document, span)


def _bind_subject(one: Evidence) -> Evidence:
    if one.passage.kind is not PassageKind.PROSE:
        return one
    before = [span for span in find_quotable_spans(one.passage) if span[1] <= one.span[0]]
    lead = _find_lead_in(one.passage.text, before, one.span)
    if lead is not None and one.span[1] - lead <= MAX_LIST:
        return _quote_span(one, (lead, one.span[1]))
    if is_in_list(one.passage.text, one.span):
        return one
    start, before = one.span[0], before[-MAX_LED:]
    while _opens_with_pronoun(one, start) and before:
        start = before.pop()[0]
    # Where all that was gone back to leans on something, too, the sentence stands as it is.
    return one if _opens_with_pronoun(one, start) else _quote_span(one, (start, one.span[1]))


def _find_lead_in(text: str, before: Sequence[Span], item: Span) -> int | None:
    """Return where the line begins that leads in the list of an item; None where it is no item, or nothing leads."""
    marked = is_in_list(text, item)
    for start, end in reversed(before if marked or _LABELLED.match(text[slice(*item)]) else ()):
        if marked and not is_in_list(text, (start, end)):
            return start if text[start:end].endswith(":") else None
        if not marked and "\n" in text[end : item[0]]:
            return None
        if not (marked or _LABELLED.match(text[start:end])):
            return start if ":" in text[start:end] else None
    return None


def _opens_with_pronoun(one: Evidence, start: int) -> bool:
    return opens_with_pronoun(one.passage.text[start : one.span[1]], one.document.language)


def quote_evidence(evidence: Iterable[Evidence]) -> tuple[SourcedFinding, ...]:
    """Return sentences as findings; one that names nobody is led by the title of its page."""
    return tuple(SourcedFinding(_name_subject(one), (one,)) for one in bind_subjects(evidence))


def _name_subject(one: Evidence) -> str:
    text = " ".join(_join_items(one.text).split())
    alone = one.passage.kind is PassageKind.TABLE and ";" not in text  # a row of one cell does not say whose it is
    return f"{one.document.title}: {text}" if alone or _opens_with_pronoun(one, one.span[0]) else text


def _join_items(text: str) -> str:
    """Return a list on one line, without its marks: "Bring a badge, a laptop"."""
    first, *lines = text.splitlines()
    comma = ";" if any("," in line for line in lines) else ","
    for line in lines:
        item = is_in_list(line, (0, len(line))) and first.rstrip()[-1:] not in ".,:;!?…"
        first = f"{first.rstrip()}{comma if item else ''} {_MARK.sub('', line, 1)}"
    return _MARK.sub("", first, 1)


_MARK = re.compile(r"^\s*(?:[-•*✓]|\d{1,3}[.)])\s+")


def join_quotes(evidence: Sequence[Evidence]) -> SourcedFinding:
    """Return sentences that say something together as one finding, in the order in which they stand."""
    bound = bind_subjects(evidence)
    return SourcedFinding(" ".join(map(_name_subject, bound)), bound)


async def bind_finding(
    text: str, evidence: Sequence[Evidence], supports: Supports, *, checked: bool = False, asked: Sequence[str] = ()
) -> tuple[SourcedFinding, ...]:
    """Return a statement as a finding; in its place the sentences themselves, as one, where they do not support it.

    Of a statement that a model `checked`, or that names whom a pronoun means, the local check's doubt is not enough. It
    must name what it is about, and of a table which row; what a sentence all but says is said in its words.
    """
    support = await supports(text, evidence, asked=asked)
    leans = any(_opens_with_pronoun(one, one.span[0]) for one in evidence)
    holds = support.holds or (support.appealable and (checked or leans))
    named = not opens_with_pronoun(text, evidence[0].document.language)
    if holds and named and not support.better_quoted and all(_names_row(text, one) for one in evidence):
        return (SourcedFinding(text, bind_subjects(evidence)),)
    return (join_quotes(evidence),)


def _names_row(text: str, one: Evidence) -> bool:
    """Return whether a statement has a word of the cell that a row begins with, if it is about one."""
    if one.passage.kind is not PassageKind.TABLE:
        return True
    label = set(content_terms(one.text.partition(";")[0].rpartition(": ")[2]))
    return not label or not label.isdisjoint(content_terms(text))


MOSTLY_SAME = 0.8  # the share of the shorter statement's words that the longer has where both say the same


def deduplicate_findings(findings: Iterable[SourcedFinding]) -> tuple[SourcedFinding, ...]:
    """Return findings without those that say of the same sentence what another says, in the same or in other words.

    The one that says more stays. What two passages say stays twice, as both can be cited. What a quotation of the same
    sentences denies is no finding.
    """
    kept, findings = list[SourcedFinding](), tuple(findings)
    quotations = [one for one in findings if one.text == join_quotes(one.evidence).text]
    for finding in findings:
        if any(_denies(quotation, finding) for quotation in quotations):
            continue
        same = next((place for place, other in enumerate(kept) if _say_the_same(finding, other)), None)
        if same is None:
            kept.append(finding)
        elif len(set(content_terms(finding.text))) > len(set(content_terms(kept[same].text))):
            kept[same] = finding
    return tuple(kept)


def _denies(quotation: SourcedFinding, other: SourcedFinding) -> bool:
    """Return whether of a finding and a quotation of all that it stands on only one denies anything."""
    for one in other.evidence:
        if not any(_overlap(one, quoted) and len(one.text) <= len(quoted.text) for quoted in quotation.evidence):
            return False
    language = quotation.evidence[0].document.language
    return parse_statement(quotation.text, language).negated != parse_statement(other.text, language).negated


def _say_the_same(one: SourcedFinding, other: SourcedFinding) -> bool:
    # Items of a list share the line that leads them in, and are each another thing.
    few, many = sorted((one.evidence, other.evidence), key=len)
    if not all(any(_overlap(first, second) for second in many) for first in few):
        return False
    fewer, more = sorted((one.text, other.text), key=lambda text: len(set(content_terms(text))))
    return has_same_words(fewer, more)


def has_same_words(text: str, other: str, least: float = MOSTLY_SAME) -> bool:
    """Return whether another text has at least such a share of a text's words of substance, and all of its numbers."""
    said, known = set(content_terms(text)), set(content_terms(other))
    numbers = {term for term in said if any(char.isdigit() for char in term)}
    return len(said & known) >= least * len(said) and numbers <= known


def _overlap(one: Evidence, other: Evidence) -> bool:
    same = one.passage.id == other.passage.id
    return same and one.span[0] < other.span[1] and other.span[0] < one.span[1]


def order_rivals_by_date(findings: Sequence[SourcedFinding]) -> tuple[SourcedFinding, ...]:
    """Return findings in their order, except that of those that disagree the newer stand where the first stood."""
    rivals = find_disagreeing(findings)
    by_date = sorted(rivals, key=lambda place: _document_age(findings[place].evidence[0].document), reverse=True)
    ordered = iter(by_date)
    return tuple(findings[next(ordered)] if place in rivals else one for place, one in enumerate(findings))


def find_disagreeing(findings: Sequence[SourcedFinding]) -> tuple[int, ...]:
    """Return the places of findings from different documents that give other values for the same thing."""
    said = [parse_statement(one.text, one.evidence[0].document.language) for one in findings]
    found = {
        place
        for first in range(len(said))
        for second in range(first)
        if _document_key(findings[first]) != _document_key(findings[second])
        and is_contradiction(said[first], said[second])
        for place in (first, second)
    }
    return tuple(sorted(found))


def _document_key(finding: SourcedFinding) -> tuple[str, str]:
    document = finding.evidence[0].document
    return document.corpus, document.key


def _document_age(document: Document) -> int:
    """Return the day on which a document was last changed, as files copied in one go are none newer than another.

    What nobody dated is oldest.
    """
    return document.date.toordinal() if document.date else 0


OVERFETCH = 4  # so many times more hits are fetched than kept, as some are copies and a time ranks them anew


def rank_by_time(hits: Sequence[Hit], query: SearchQuery) -> tuple[Hit, ...]:
    if query.time is None:
        return tuple(hits)
    if query.time == "recent":
        newest = sorted(range(len(hits)), key=lambda place: -_document_age(hits[place].document))
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
        return await kit.ask(template, QUERY, stage="query", talk=context.talk, reading=context.reading)
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
