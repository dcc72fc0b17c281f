"""Build the views of a turn from its events and its result; pure.

The text of a model's own claim is shown only if passages support it, except in the evidence view, which marks it. The
callers decide which sources and nearest pages may be shown.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from bot.types import PinMark, StudyDraw, TurnResult
from bot.views.catalog import (
    list_asked_claims,
    render_left_out,
    render_notices,
    render_origin,
    render_reason,
    translate,
)
from bot.views.message_layout import render_plain_text
from bot.views.turn_view import (
    Button,
    ButtonAction,
    ClaimCard,
    Confirmation,
    EvidenceItem,
    EvidenceView,
    ShownSource,
    ShownVerdict,
    View,
)
from pipeline.types import (
    AnsweredSentence,
    ClaimChecked,
    ClaimExplained,
    DraftStarted,
    Event,
    PageQuoted,
    PassagesFound,
    SearchStarted,
    SentencePassed,
    Status,
)
from storage.types import CheckedClaim, Citation, Document, Evidence, Hit, Passage, Verdict

MAX_QUOTED_QUESTION = 300  # characters of a question that is quoted to others
_MAX_QUERY_SHOWN = 60  # characters of a query
_MAX_NAME = 80
_MAX_REMARK_SHOWN = 500  # characters of a model's remark on a claim
_VERDICTS: Mapping[Verdict, tuple[str, str]] = MappingProxyType({
    Verdict.SUPPORTS: ("✅", "verdict_supports"),
    Verdict.REFUTES: ("❌", "verdict_refutes"),
    Verdict.NOT_ENOUGH_INFO: ("❔", "verdict_unknown"),
})  # fmt: skip
"""The sign and the message id of each verdict."""
_LABELS = {ButtonAction.UP: "👍", ButtonAction.DOWN: "👎"}
_WITH_FEEDBACK = (Status.ANSWERED, Status.ABSTAINED)
_WITHOUT_HELP = (Status.CHATTED, Status.CANCELLED)


def shorten_question(text: str) -> str:
    return shorten_line(text, MAX_QUOTED_QUESTION)


def shorten_line(text: str, most: int) -> str:
    """Return a text on one line, shortened to at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most].rstrip()}…"


def start_view(ticket: int, language: str, *, notice: str = "", asked: str = "") -> View:
    """Return the first view of a turn; `asked` is the question, if it is shown above the answer."""
    notice = "\n".join(filter(None, (asked and f"“{shorten_question(asked)}”", notice)))
    return View(ticket, language, translate("begun", language), notice, buttons=build_stop_buttons(ticket, language))


def show_queue_position(view: View, before: int) -> View:
    """Show how many questions are before this one."""
    status = translate("before", view.language, before=before) if before else translate("begun", view.language)
    return replace(view, status=status, before=before)


def apply_event(view: View, event: Event) -> View:
    if isinstance(event, ClaimExplained) or (view.study and not isinstance(event, SentencePassed)):
        return view
    if isinstance(event, PageQuoted):
        return _show_quote(view, event.evidence)
    view = replace(view, status=describe_event(event, view.language))
    match event:
        case PassagesFound(query="", hits=hits) if hits:
            return _note_titles(view, hits)
        case SentencePassed(sentence=sentence):
            shown = (*view.sentences, _show_sentence(sentence, view.sentences))
            return replace(view, quote=None, quote_label="", sentences=shown)
        case _:
            return replace(view, claims=_update_claims(view, event))


def finish_view(view: View, result: TurnResult, *, only_asker: bool = False, ask: bool = False) -> View:
    """Return the final view of an answer; if there are no sentences, the view shows our own text.

    The language and notice of `view` stay. An answer that `only_asker` sees can be shared, any other answer can be
    retracted; `ask`: whether there are contact people.
    """
    answer, language = result.answer, view.language
    answered = answer.status is Status.ANSWERED
    sentences = _show_sentences(answer.sentences) if answered else ()
    near = answer.nearest if answer.status is Status.ABSTAINED else ()
    nearest = tuple(_page_source(hit.passage, hit.document, language) for hit in near)
    total = len(sentences) + answer.withheld
    return View(
        view.ticket,
        language,
        notice="\n".join(filter(None, (view.notice, *render_notices(result, language)))),
        collapsed=render_pin(result.pinned, language)
        or ("" if result.study else _summarize_claims(answer.claims, language)),
        text="" if sentences else result.text,
        sentences=sentences,
        left_out=render_left_out(answer.withheld, total, language) if sentences and answer.withheld else "",
        sources=tuple(replace(build_cited_source(citation, language), quote="") for citation in answer.citations)
        if answered
        else (),
        nearest_label=translate("nearest", language) if nearest else "",
        nearest=nearest,
        buttons=build_answer_buttons(
            view.ticket, language, answer.status, result.study, only_asker=only_asker, ask=ask
        ),
        done=True,
    )


def render_pin(pinned: PinMark | None, language: str) -> str:
    """Return who pinned an answer and when; empty if it is not pinned."""
    return translate("pinned", language, name=shorten_line(pinned.name, _MAX_NAME), day=pinned.day) if pinned else ""


def finish_check_view(view: View, result: TurnResult, *, only_asker: bool = False, ask: bool = False) -> View:
    """Return the final view of a fact-check: each claim with its verdict, and the quoted passages."""
    claims, shown = list_asked_claims(result.answer), finish_view(view, result, only_asker=only_asker, ask=ask)
    if not claims:
        return shown
    citations = result.answer.citations
    sources = tuple(build_cited_source(citation, view.language) for citation in citations)
    judgements = tuple(_show_verdict(claim, citations, view.language) for claim in claims)
    return replace(shown, text="", judgements=judgements, collapsed="", sentences=(), left_out="", sources=sources)


def _show_verdict(checked: CheckedClaim, citations: Sequence[Citation], language: str) -> ShownVerdict:
    """Return a claim with its verdict, the reason, and the footnotes of its evidence or of the nearest passages."""
    shown = {*checked.evidence, *checked.looked_at}
    numbers = tuple(dict.fromkeys(citation.number for citation in citations if citation.passage_id in shown))
    reason = render_reason(checked, language, citations)
    return ShownVerdict(render_verdict(checked.verdict, language), checked.claim.text, reason, numbers)


def stop_view(view: View) -> View:
    """Return the final view of a stopped turn. It omits the sentences shown so far, because they have no sources."""
    return View(view.ticket, view.language, notice=view.notice, text=translate("stopped", view.language), done=True)


def render_verdict(verdict: Verdict, language: str) -> str:
    sign, key = _VERDICTS[verdict]
    return f"{sign} {translate(key, language)}"


def describe_event(event: Event, language: str) -> str:
    """Return a line about the current step of a turn; its text is raw."""
    match event:
        case SearchStarted(query=query):
            shown = " ".join(query.split())[:_MAX_QUERY_SHOWN]
            return translate("searching", language, query=shown) if shown else translate("looking", language)
        case PassagesFound(hits=hits):
            return translate("found", language, count=len(hits))
        case ClaimChecked() | ClaimExplained():
            return translate("checking", language)
        case DraftStarted(evidence=evidence):
            return translate("drafting", language, count=evidence)
        case _:
            return translate("writing", language)


def _show_quote(view: View, evidence: Evidence) -> View:
    """Show a quotation, unless a sentence of the answer is already shown."""
    if view.sentences:
        return view
    quote = _page_source(evidence.passage, evidence.document, view.language, quote=evidence.text)
    return replace(view, quote=quote, quote_label=translate("quote_meanwhile", view.language))


def _note_titles(view: View, hits: tuple[Hit, ...]) -> View:
    pages = ((hit.passage.id, hit.document.title) for hit in hits)
    return replace(view, titles=tuple(dict((*view.titles, *pages)).items()))


def _update_claims(view: View, event: Event) -> tuple[ClaimCard, ...]:
    match event:
        case SearchStarted(query=""):
            return (*view.claims, ClaimCard(len(view.claims) + 1, "checking"))
        case ClaimChecked(checked=checked) if checked.claim.origin == "model":
            return _fill_card(view, checked)
        case DraftStarted():
            return tuple(card for card in view.claims if card.state != "checking")
        case _:
            return view.claims


def _fill_card(view: View, checked: CheckedClaim) -> tuple[ClaimCard, ...]:
    """Return a view's cards after a claim was checked: the first one without a verdict is filled, or one is added."""
    new = ClaimCard(max((card.number for card in view.claims), default=0) + 1, "checking")
    cards = view.claims if any(card.state == "checking" for card in view.claims) else (*view.claims, new)
    place = next(place for place, card in enumerate(cards) if card.state == "checking")
    return (*cards[:place], _build_card(cards[place].number, checked, dict(view.titles)), *cards[place + 1 :])


def _build_card(number: int, checked: CheckedClaim, titles: dict[str, str]) -> ClaimCard:
    if checked.verdict is not Verdict.SUPPORTS:
        return ClaimCard(number, "refuted" if checked.verdict is Verdict.REFUTES else "unknown")
    pages = dict.fromkeys(titles[passage] for passage in checked.evidence if passage in titles)
    return ClaimCard(number, "supported", checked.claim.text, tuple(pages))


def _summarize_claims(claims: tuple[CheckedClaim, ...], language: str) -> str:
    verdicts = [checked.verdict for checked in claims if checked.claim.origin == "model"]
    confirmed = verdicts.count(Verdict.SUPPORTS)
    return translate("statements", language, checked=len(verdicts), confirmed=confirmed) if verdicts else ""


def _show_sentences(sentences: Iterable[AnsweredSentence]) -> tuple[AnsweredSentence, ...]:
    shown: tuple[AnsweredSentence, ...] = ()
    for sentence in sentences:
        shown = (*shown, _show_sentence(sentence, shown))
    return shown


def _show_sentence(sentence: AnsweredSentence, before: tuple[AnsweredSentence, ...]) -> AnsweredSentence:
    """Return a sentence, without its note if the sentence before it has the same note and sources."""
    again = bool(before) and before[-1].citations == sentence.citations and before[-1].note in {"", sentence.note}
    return replace(sentence, note="") if again else sentence


def _page_source(passage: Passage, document: Document, language: str, *, quote: str = "") -> ShownSource:
    origin = render_origin(document.corpus, document.revision, language)
    return ShownSource(0, document.title, passage.section, document.date, document.url, quote, origin)


def show_restart(view: View) -> View:
    """Return the view to show while the bot is restarting; the next start completes it."""
    return replace(view, status=translate("desk_resting", view.language), buttons=(), done=False)


def build_notice_view(ticket: int, language: str, text: str) -> View:
    """Return a final view that shows only this text."""
    return View(ticket, language, text=text, done=True)


def simplify_view(view: View) -> tuple[View, View]:
    """Return two simpler forms of a final view: plain text, and an apology in case a platform refuses even that."""
    failed = build_notice_view(view.ticket, view.language, translate("failed", view.language))
    return replace(failed, text=render_plain_text(view), plain=True), replace(failed, plain=True)


def build_evidence_view(
    result: TurnResult, passages: Mapping[str, tuple[Passage, Document]], question: str, language: str
) -> EvidenceView:
    """Return the evidence of an answer. Its citations are shown as they were when the answer was given.

    `passages` are the other passages that its claims name, by id, as they are now; missing ones are not shown. In a
    study the model's own claims are not shown, because not every system makes some.
    """
    claims = [claim for claim in result.answer.claims if not (result.study and claim.claim.origin == "model")]
    cited = {citation.passage_id: build_cited_source(citation, language) for citation in result.answer.citations}
    known = {key: _page_source(*row, language, quote=row[0].text) for key, row in passages.items()} | cited
    items = tuple(_build_evidence_items(claims, known, language))
    quoted = {source.number for item in items for source in item.sources if source.quote}
    sources = [build_cited_source(citation, language) for citation in result.answer.citations]
    shown = tuple(replace(source, quote="") if source.number in quoted else source for source in sources)
    text = "" if items or shown else translate("evidence_none", language)
    return EvidenceView(translate("evidence", language), question, items, shown, text)


def build_cited_source(citation: Citation, language: str) -> ShownSource:
    """Return a citation as a source to show, with the quotation that supports the answer."""
    named = citation.number, citation.title, citation.section, citation.date, citation.url, citation.quote
    return ShownSource(*named, render_origin(citation.corpus, citation.revision, language))


def _build_evidence_items(
    claims: Sequence[CheckedClaim], known: Mapping[str, ShownSource], language: str
) -> Iterator[EvidenceItem]:
    """Yield the claims that the user asked about, or, if none, those of the answer; then the model's own claims."""
    by_origin = {
        origin: [claim for claim in claims if claim.claim.origin == origin] for origin in ("user", "retrieved", "model")
    }
    stated, model = by_origin["user"] or by_origin["retrieved"], by_origin["model"]
    headings = (translate("evidence_answer", language) if model else "", translate("evidence_model", language))
    for group, heading in zip((stated, model), headings, strict=True):
        for place, checked in enumerate(group):
            yield replace(_build_evidence_item(checked, known, language), heading="" if place else heading)


def _build_evidence_item(checked: CheckedClaim, known: Mapping[str, ShownSource], language: str) -> EvidenceItem:
    """Return a claim with the sources of its verdict; if there are none, with the nearest source."""
    text = checked.claim.text
    evidence = [known[passage] for passage in dict.fromkeys(checked.evidence) if passage in known]
    sources = tuple(_drop_repeated_quote(source, text) for source in evidence)
    nearest = () if sources else tuple(known[passage] for passage in checked.looked_at if passage in known)[:1]
    verdict = render_verdict(checked.verdict, language)
    return EvidenceItem(text, verdict, _explain_claim(checked, language), sources, nearest)


def _explain_claim(checked: CheckedClaim, language: str) -> str:
    """Return why a claim has its verdict: the reasons of the rules, or the cleaned remark of the model."""
    if checked.because:
        return translate("evidence_because", language, reasoning=render_reason(checked, language))
    from pipeline.replies.cited_sentences import parse_sentence  # needed only for the evidence view

    remark = parse_sentence(checked.reasoning, len(checked.reasoning))[0]
    shown = shorten_line(remark, _MAX_REMARK_SHOWN)
    return translate("evidence_remark", language, reasoning=shown) if shown else ""


def _drop_repeated_quote(source: ShownSource, text: str) -> ShownSource:
    """Return a source without its quotation if that contains the claim word for word, otherwise unchanged."""
    return replace(source, quote="") if " ".join(text.split()) in " ".join(source.quote.split()) else source


def build_stop_buttons(ticket: int, language: str) -> tuple[Button, ...]:
    return (_build_button(ButtonAction.STOP, ticket, language),)


def build_answer_buttons(
    ticket: int, language: str, status: Status, study: StudyDraw | None = None, *, only_asker: bool, ask: bool
) -> tuple[Button, ...]:
    """Return the buttons of an answer; `ask`: whether there are contact people."""
    ratings = (ButtonAction.RATE,) if study else (ButtonAction.UP, ButtonAction.DOWN)
    actions = [ButtonAction.EVIDENCE, *ratings] if status in _WITH_FEEDBACK else []
    if ask and status not in _WITHOUT_HELP:
        actions.append(ButtonAction.ASK)
    if status is Status.ANSWERED:
        actions.append(ButtonAction.SHARE if only_asker else ButtonAction.RETRACT)
    return tuple(_build_button(action, ticket, language, alone=only_asker) for action in actions)


def build_example_button(ticket: int, language: str) -> Button:
    return _build_button(ButtonAction.EXAMPLE, ticket, language)


def remove_share_button(buttons: Iterable[Button]) -> tuple[Button, ...]:
    """Return the buttons without the one that shares an answer, for a place without other people, such as a DM."""
    return tuple(button for button in buttons if button.action is not ButtonAction.SHARE)


def build_confirmation(action: ButtonAction, language: str) -> Confirmation:
    """Return the confirmation to show before retracting an answer, or asking a person about a private question."""
    keys = (f"{action.value}_sure", f"button_{action.value}", f"{action.value}_not")
    return Confirmation(*(translate(key, language) for key in keys))


def _build_button(action: ButtonAction, ticket: int, language: str, *, alone: bool = False) -> Button:
    label = _LABELS.get(action) or translate(f"button_{action.value}", language)
    to_be_sure = action is ButtonAction.RETRACT or (alone and action is ButtonAction.ASK)
    return Button(action, label, ticket, build_confirmation(action, language) if to_be_sure else None)
