"""The evidence view of a turn: every claim with its verdict, why, and the passages' words, for whoever may read it all.

Claims that were not confirmed are shown here, marked as what they are, and nowhere else.
"""

from collections.abc import Mapping

from bot.app import App
from bot.desk.permitted import may_see_evidence
from bot.desk.seen import Seen
from bot.showing.folding import verdict_said
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
    wanted = {one for checked in answered.answer.claims for one in checked.evidence} - cited
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
    items = tuple(_item(checked, known, language) for checked in answered.answer.claims)
    sources = tuple(map(cited, citations))
    text = "" if items or sources else say("evidence_none", language)
    return EvidenceView(say("evidence", language), question, items, sources, text)


def cited(citation: Citation) -> Source:
    """Return a footnote with the words of its passage that support."""
    return Source(citation.number, citation.title, citation.section, citation.date, citation.url, citation.quote)


def _passage(passage: Passage, document: Document) -> Source:
    return Source(0, document.title, passage.section, document.date, document.url, passage.text)


def _item(checked: CheckedClaim, known: Mapping[str, Source], language: str) -> EvidenceItem:
    sources = tuple(known[one] for one in dict.fromkeys(checked.evidence) if one in known)
    return EvidenceItem(checked.claim.text, verdict_said(checked.verdict, language), checked.reasoning, sources)
