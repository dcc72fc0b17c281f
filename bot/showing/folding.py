"""What is to be seen of a turn, from its first moment to its end: pure functions from a view and what happened.

Of claims that a model made up, only those that passages support are ever put into words. Which sources and nearest
pages may be seen is decided before: what is given is shown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from bot.showing.offering import after_answer, stopping
from bot.showing.reasons import reason_said
from bot.showing.view import ClaimCard, Judgement, ShownSentence, Source, View
from bot.turns import Answered
from bot.wording import claims_of, left_out
from bot.words import say
from pipeline.types import (
    AnsweredSentence,
    ClaimChecked,
    ClaimExplained,
    Drafting,
    Event,
    FoundPassages,
    Quoted,
    Said,
    Searching,
    Status,
)
from storage.types import CheckedClaim, Citation, Document, Evidence, Hit, Passage, Verdict

LONGEST = 60
"""Characters of a query that are shown."""
_SIGNS: Mapping[Verdict, str] = MappingProxyType(
    {Verdict.SUPPORTS: "✅", Verdict.REFUTES: "❌", Verdict.NOT_ENOUGH_INFO: "❔"}
)


def begun(ticket: int, language: str, *, notice: str = "") -> View:
    """Return what is shown at once, before anything was done."""
    return View(ticket, language, say("begun", language), notice, buttons=stopping(ticket, language))


def waiting(view: View, before: int) -> View:
    """Say how many questions are before this one."""
    return replace(view, status=say("before", view.language, before=before))


def after(view: View, event: Event) -> View:
    """Return what is shown once something has happened."""
    if isinstance(event, ClaimExplained):
        return view
    if isinstance(event, Quoted):
        return _with_quote(view, event.evidence)
    view = replace(view, status=_status(event, view.language))
    match event:
        case FoundPassages(query="", hits=hits) if hits:
            return _with_titles(view, hits)
        case Said(sentence=sentence):
            return replace(
                view, quote=None, quote_label="", sentences=(*view.sentences, _shown(sentence, view.sentences))
            )
        case _:
            return replace(view, claims=_claims(view, event))


def ended(view: View, answered: Answered, *, only_asker: bool = False, ask: bool = False) -> View:
    """Return an answer as it stays, or our own words where there is none.

    Args:
        view: What was shown until now; of it language and notice stay.
        answered: The answer. Its sources and nearest pages are shown as they are given.
        only_asker: Whether nobody else sees it: it can be shared then, else taken back.
        ask: Whether there are people to ask.
    """
    answer, language = answered.answer, view.language
    said = answer.status is Status.ANSWERED
    sentences = _all_shown(answer.sentences) if said else ()
    nearest = tuple(map(_near, answer.nearest)) if answer.status is Status.ABSTAINED else ()
    total = len(sentences) + answer.withheld
    return View(
        view.ticket,
        language,
        notice=view.notice,
        collapsed=_collapsed(answer.claims, language),
        text="" if sentences else answered.text,
        sentences=sentences,
        left_out=left_out(answer.withheld, total, language) if sentences and answer.withheld else "",
        sources=tuple(map(_source, answer.citations)) if said else (),
        nearest_label=say("nearest", language) if nearest else "",
        nearest=nearest,
        buttons=after_answer(view.ticket, language, answer.status, only_asker=only_asker, ask=ask),
        done=True,
    )


def checked(view: View, answered: Answered, *, only_asker: bool = False, ask: bool = False) -> View:
    """Return what a fact-check found: each claim, its verdict and why, and the passages' own words. As `ended` else."""
    found, shown = claims_of(answered.answer), ended(view, answered, only_asker=only_asker, ask=ask)
    if not found:
        return shown
    sources = tuple(replace(_source(one), quote=one.quote) for one in answered.answer.citations)
    judgements = tuple(_judgement(one, answered.answer.citations, view.language) for one in found)
    return replace(shown, text="", judgements=judgements, collapsed="", sentences=(), left_out="", sources=sources)


def _judgement(found: CheckedClaim, citations: Iterable[Citation], language: str) -> Judgement:
    """Return a claim with its verdict and why, and the footnotes of the passages that show it, or come nearest."""
    shown = {*found.evidence, *found.looked_at}
    numbers = tuple(one.number for one in citations if one.passage_id in shown)
    return Judgement(verdict_shown(found.verdict, language), found.claim.text, reason_said(found, language), numbers)


def stopped(view: View) -> View:
    """Return what stays of a turn that somebody stopped: that it was.

    Sentences that were shown go, for nobody knows their sources yet.
    """
    return View(view.ticket, view.language, notice=view.notice, text=say("stopped", view.language), done=True)


def verdict_said(verdict: Verdict, language: str) -> str:
    """Return a verdict in words."""
    occasion = {Verdict.SUPPORTS: "verdict_supports", Verdict.REFUTES: "verdict_refutes"}
    return say(occasion.get(verdict, "verdict_unknown"), language)


def verdict_shown(verdict: Verdict, language: str) -> str:
    """Return a verdict in words, with a sign that can be told from others at a glance."""
    return f"{_SIGNS[verdict]} {verdict_said(verdict, language)}"


def _status(event: Event, language: str) -> str:
    match event:
        case Searching(query=query):
            shown = " ".join(query.split())[:LONGEST]
            return say("searching", language, query=shown) if shown else say("looking", language)
        case FoundPassages(hits=hits):
            return say("found", language, count=len(hits))
        case ClaimChecked():
            return say("checking", language)
        case Drafting(evidence=evidence):
            return say("drafting", language, count=evidence)
        case _:
            return say("writing", language)


def _with_quote(view: View, said: Evidence) -> View:
    """Show what a page says in its own words, unless there is a sentence of the answer already."""
    if view.sentences:
        return view
    quote = replace(_page(said.passage, said.document), quote=said.text)
    return replace(view, quote=quote, quote_label=say("quote_meanwhile", view.language))


def _with_titles(view: View, hits: tuple[Hit, ...]) -> View:
    pages = ((hit.passage.id, hit.document.title) for hit in hits)
    return replace(view, titles=tuple(dict((*view.titles, *pages)).items()))


def _claims(view: View, event: Event) -> tuple[ClaimCard, ...]:
    match event:
        case Searching(query=""):
            return (*view.claims, ClaimCard(len(view.claims) + 1, "checking"))
        case ClaimChecked(checked=found) if found.claim.origin == "model":
            return _with_verdict(view, found)
        case Drafting():
            return tuple(card for card in view.claims if card.state != "checking")
        case _:
            return view.claims


def _with_verdict(view: View, found: CheckedClaim) -> tuple[ClaimCard, ...]:
    """Fill the first card that still waits for a verdict, or add one."""
    new = ClaimCard(max((card.number for card in view.claims), default=0) + 1, "checking")
    cards = view.claims if any(card.state == "checking" for card in view.claims) else (*view.claims, new)
    place = next(place for place, card in enumerate(cards) if card.state == "checking")
    return (*cards[:place], _card(cards[place].number, found, dict(view.titles)), *cards[place + 1 :])


def _card(number: int, found: CheckedClaim, titles: dict[str, str]) -> ClaimCard:
    if found.verdict is not Verdict.SUPPORTS:
        return ClaimCard(number, "refuted" if found.verdict is Verdict.REFUTES else "unknown")
    pages = dict.fromkeys(titles[one] for one in found.evidence if one in titles)
    return ClaimCard(number, "supported", found.claim.text, tuple(pages))


def _collapsed(claims: tuple[CheckedClaim, ...], language: str) -> str:
    verdicts = [found.verdict for found in claims if found.claim.origin == "model"]
    confirmed = verdicts.count(Verdict.SUPPORTS)
    return say("statements", language, checked=len(verdicts), confirmed=confirmed) if verdicts else ""


def _all_shown(sentences: Iterable[AnsweredSentence]) -> tuple[ShownSentence, ...]:
    shown: tuple[ShownSentence, ...] = ()
    for sentence in sentences:
        shown = (*shown, _shown(sentence, shown))
    return shown


def _shown(sentence: AnsweredSentence, before: tuple[ShownSentence, ...]) -> ShownSentence:
    """Return a sentence as it is shown: what only says again where the one before it stands is not said."""
    again = bool(before) and before[-1].numbers == sentence.citations and before[-1].note in {"", sentence.note}
    note = "" if again else sentence.note
    return ShownSentence(sentence.text, sentence.citations, note, paragraph=sentence.paragraph)


def _source(citation: Citation) -> Source:
    return Source(citation.number, citation.title, citation.section, citation.date, citation.url)


def _near(hit: Hit) -> Source:
    return _page(hit.passage, hit.document)


def _page(passage: Passage, document: Document) -> Source:
    return Source(0, document.title, passage.section, document.date, document.url)
