"""The evidence view of a turn: every claim with its verdict, why, and the passages' words, for whoever may read it all.

Claims that were not confirmed are shown here, marked as what they are, and nowhere else.
"""

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import replace

from bot.app import App
from bot.desk.permitted import Denied, may_see_evidence
from bot.desk.seen import Seen
from bot.showing.folding import verdict_shown
from bot.showing.reasons import reason_said
from bot.showing.view import EvidenceItem, EvidenceView, Source
from bot.turns import Answered
from bot.words import say
from storage.types import CheckedClaim, Citation, Document, Passage


async def evidence_of(app: App, seen: Seen) -> EvidenceView:
    """Return all that a turn checked and cites.

    Raises:
        Denied: Not all that it was made from may be read here now, or there is no answer yet.
        StorageError: It cannot be looked up.
    """
    if not may_see_evidence(seen.turn, seen.here):
        raise seen.nothing
    answered = seen.answered
    cited = {citation.passage_id for citation in answered.answer.citations}
    claims = answered.answer.claims
    wanted = {one for checked in claims for one in (*checked.evidence, *checked.looked_at)} - cited
    return evidence_view(answered, await app.manifest.join(wanted, seen.here), seen.turn.question, seen.language)


def evidence_view(
    answered: Answered, found: Mapping[str, tuple[Passage, Document]], question: str, language: str
) -> EvidenceView:
    """Return the view of an answer; pure.

    Args:
        answered: The answer. What it cites is shown as it was then.
        found: The other passages that its claims name, by id, as they are now; one that is gone is not shown.
        question: What was asked.
        language: Whoever looks reads this.
    """
    citations = answered.answer.citations
    known = {one: _passage(*row) for one, row in found.items()} | {one.passage_id: cited(one) for one in citations}
    items = tuple(_items(answered.answer.claims, known, language))
    quoted = {source.number for item in items for source in item.sources if source.quote}
    sources = tuple(replace(one, quote="") if one.number in quoted else one for one in map(cited, citations))
    text = "" if items or sources else say("evidence_none", language)
    return EvidenceView(say("evidence", language), question, items, sources, text)


def cited(citation: Citation) -> Source:
    """Return a footnote with the words of its passage that support."""
    return Source(citation.number, citation.title, citation.section, citation.date, citation.url, citation.quote)


def _passage(passage: Passage, document: Document) -> Source:
    return Source(0, document.title, passage.section, document.date, document.url, passage.text)


def _items(claims: Sequence[CheckedClaim], known: Mapping[str, Source], language: str) -> Iterator[EvidenceItem]:
    """Yield the claims: those that somebody asked about, or those of the answer; then those of the model alone."""
    asked = tuple(one for one in claims if one.claim.origin == "user")
    answered = () if asked else tuple(one for one in claims if one.claim.origin == "retrieved")
    on_the_way = tuple(one for one in claims if one.claim.origin == "model")
    headings = (say("evidence_answer", language) if on_the_way else "", say("evidence_model", language))
    for group, heading in zip((asked or answered, on_the_way), headings, strict=True):
        for place, checked in enumerate(group):
            yield replace(_item(checked, known, language), heading="" if place else heading)


def _item(checked: CheckedClaim, known: Mapping[str, Source], language: str) -> EvidenceItem:
    """Return a claim with what its verdict stands on; where that is nothing, with what came nearest."""
    text = checked.claim.text
    sources = tuple(_unrepeated(known[one], text) for one in dict.fromkeys(checked.evidence) if one in known)
    nearest = () if sources else tuple(known[one] for one in checked.looked_at if one in known)[:1]
    said = verdict_shown(checked.verdict, language)
    return EvidenceItem(text, said, reason_said(checked, language), sources, nearest)


def _unrepeated(source: Source, text: str) -> Source:
    """Return a source without its quotation where the claim is a part of it, word for word."""
    return replace(source, quote="") if " ".join(text.split()) in " ".join(source.quote.split()) else source


async def or_words(looking: Awaitable[EvidenceView], heading: str) -> EvidenceView:
    """Return the evidence, or our words for why there is none."""
    try:
        return await looking
    except Denied as denied:
        return EvidenceView(heading, "", text=denied.words)
