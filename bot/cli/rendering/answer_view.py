"""Show answers, verdicts and search hits: as text for a terminal, and as JSON documents.

Pure, except that a streamed answer is printed to a console. The documents are a contract with programs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from types import MappingProxyType

from rich.console import Console, Group, RenderableType
from rich.style import Style

from bot.cli.terminal_output import Document, build_document, pick
from bot.types import TurnResult
from bot.views.catalog import (
    find_asked_claim,
    render_left_out,
    render_notices,
    render_origin,
    render_reason,
    render_sentence,
    translate,
)
from bot.views.sanitize import sanitize_line, sanitize_link, sanitize_text
from bot.views.text_layout import Hanging, ReadableWidth, Text
from bot.views.view_reducer import render_pin
from pipeline.types import AnsweredSentence, Status
from storage.types import CheckedClaim, Citation, Hit, Verdict

WIDTH = 100
MARK_STYLE = "cyan"


def render_answer(done: TurnResult, *, language: str, zone: tzinfo, streamed: bool = False) -> RenderableType:
    """Render an answer with its sources, or only the sources if it was `streamed`; `language` is the question's."""
    text = [] if streamed else [style_sentences(done.text, done.answer.sentences)]
    return ReadableWidth(Group(*text, *_footer_parts(done, language, zone)))


def style_sentences(text: str, sentences: Sequence[AnsweredSentence]) -> Text:
    """Return the text of sentences, with notes dimmed and footnote marks coloured."""
    body = Text(sanitize_text(text))
    body.highlight_words([f"({sanitize_line(sentence.note)})" for sentence in sentences if sentence.note], style="dim")
    marks = {f"[{number}]" for sentence in sentences for number in sentence.citations}
    body.highlight_words(sorted(marks), style=MARK_STYLE)
    return body


def render_source(citation: Citation, *, zone: tzinfo, whole: bool = False, quoted: bool = True) -> RenderableType:
    """Render one source: page, address, and the quote or the `whole` passage."""
    quote = f"“{sanitize_text(citation.quote)}”" if quoted else ""
    text = sanitize_text(citation.passage_text) if whole else quote
    address = citation.url or f"{citation.corpus}: {citation.document}"
    origin = render_origin(citation.corpus, citation.revision, "en")
    title = _render_title(citation.title, citation.section, format_date(citation.date, zone), origin)
    quoted_text = [Text(text, style="italic" if not whole else "")] if text else []
    return Hanging(Text(f"[{citation.number}] ", style=MARK_STYLE), Group(title, _render_link(address), *quoted_text))


def render_sources(citations: Sequence[Citation], *, zone: tzinfo) -> RenderableType:
    return ReadableWidth(
        Group(*separate_blocks(render_source(citation, zone=zone, whole=True) for citation in citations))
    )


def render_hits(hits: Sequence[Hit]) -> RenderableType:
    if not hits:
        return Text("Nothing was found.")
    return ReadableWidth(Group(*separate_blocks(_render_hit(place, hit) for place, hit in enumerate(hits, start=1))))


def separate_blocks(views: Iterable[RenderableType]) -> Iterator[RenderableType]:
    for place, view in enumerate(views):
        if place:
            yield Text()
        yield view


def format_date(moment: datetime | None, zone: tzinfo) -> str:
    """Format the date of a time in a time zone, as ISO 8601; empty for none."""
    return moment.astimezone(zone).date().isoformat() if moment else ""


def _footer_parts(done: TurnResult, language: str, zone: tzinfo) -> list[RenderableType]:
    answer, parts = done.answer, list[RenderableType]()
    for notice in render_notices(done, language):
        parts += [Text(), Text(notice, style="dim")]
    if done.pinned:
        parts += [Text(), Text(sanitize_line(render_pin(done.pinned, language)), style="dim")]
    if answer.sentences and answer.withheld:
        total = len(answer.sentences) + answer.withheld
        parts += [Text(), Text(render_left_out(answer.withheld, total, language), style="dim")]
    if answer.citations:
        # Pages that share a number have one quote.
        first = {citation.number: citation for citation in reversed(answer.citations)}
        quoted = ((citation, first[citation.number] is citation) for citation in answer.citations)
        sources = (render_source(citation, zone=zone, quoted=is_first) for citation, is_first in quoted)
        parts += [Text(), *separate_blocks(sources)]
    if answer.status is Status.ABSTAINED and answer.nearest:
        parts += [Text(), Text(translate("nearest", language)), *(_render_nearest(hit) for hit in answer.nearest)]
    return parts


def _render_title(title: str, section: str, *after: str) -> RenderableType:
    path = f"{sanitize_line(title)} › {sanitize_line(section)}" if section else sanitize_line(title)
    return Text.assemble((path, "bold"), *((f" · {part}", "dim") for part in after if part))


def _render_link(address: str) -> Text:
    url = sanitize_link(address)
    return Text(sanitize_line(address), style=Style(color="blue", link=url) if url else "dim", no_wrap=True)


def _address(hit: Hit) -> str:
    return hit.document.url or f"{hit.passage.corpus}: {hit.passage.document}"


def _render_nearest(hit: Hit) -> RenderableType:
    lines = (_render_title(hit.document.title, hit.passage.section), _render_link(_address(hit)))
    return Hanging(Text("• ", style=MARK_STYLE), Group(*lines))


def _render_hit(place: int, hit: Hit) -> RenderableType:
    lines = [
        _render_title(hit.document.title, hit.passage.section),
        _render_link(_address(hit)),
        Text(sanitize_text(hit.passage.text)),
    ]
    return Hanging(Text(f"{place}. ", style=MARK_STYLE), Group(*lines))


VERDICT_COLOURS: Mapping[Verdict, str] = MappingProxyType({
    Verdict.SUPPORTS: "green",
    Verdict.REFUTES: "red",
    Verdict.NOT_ENOUGH_INFO: "yellow",
})  # fmt: skip


def render_verdict(done: TurnResult, zone: tzinfo) -> RenderableType:
    checked = find_asked_claim(done.answer)
    if not checked:
        return Text(sanitize_line(done.text))
    heading = Text.assemble(
        (checked.verdict.value, f"bold {VERDICT_COLOURS[checked.verdict]}"), f"  {sanitize_line(checked.claim.text)}"
    )
    reason = sanitize_line(render_reason(checked, "en", done.answer.citations))
    parts: list[RenderableType] = [heading, *([Text(reason, style="dim")] if reason else ())]
    if done.answer.citations:
        parts += [Text(), *separate_blocks(render_source(citation, zone=zone) for citation in done.answer.citations)]
    return ReadableWidth(Group(*parts))


class StreamedAnswer:
    """Prints an answer sentence by sentence, with the line breaks that the whole answer has."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._text = Text()
        self._shown = 0

    @property
    def started(self) -> bool:
        return bool(self._shown)

    def say(self, sentence: AnsweredSentence) -> None:
        piece = render_sentence(sentence)
        self._text.append_text(style_sentences(piece if self.started else piece.lstrip(), [sentence]))
        width = min(WIDTH, self._console.width)
        # Lines are filled from the first on, so the lines printed so far do not change as the text grows.
        whole = Text("\n").join(self._text.wrap(self._console, width))
        self._console.print(whole[self._shown :], end="", soft_wrap=True)
        self._shown = len(whole)

    def close(self) -> None:
        if self.started:
            self._console.print()


def build_answer_document(done: TurnResult) -> Document:
    return build_document(**_build_answer(done))


def build_verdict_document(done: TurnResult, claim: str) -> Document:
    checked = find_asked_claim(done.answer)
    return build_document(
        answer_id=done.answer_id,
        claim=claim,
        verdict=checked.verdict.value if checked else None,
        reasoning=_state_reason(checked, done.answer.citations) if checked else "",
        evidence=[pick(citation, "title url quote passage_id") for citation in done.answer.citations],
        **_build_run_facts(done),
    )


def _state_reason(checked: CheckedClaim, citations: Sequence[Citation]) -> str:
    """Return the reasoning of the rules; if a model gave the verdict, return a sentence that quotes the evidence."""
    return checked.reasoning if checked.because else render_reason(checked, "en", citations)


def build_chat_document(turns: Iterable[TurnResult]) -> Document:
    return build_document(answers=[_build_answer(turn) for turn in turns])


def build_search_document(hits: Iterable[Hit]) -> Document:
    return build_document(
        hits=[
            {
                "passage_id": hit.passage.id,
                "corpus": hit.passage.corpus,
                "title": hit.document.title,
                "section": hit.passage.section,
                "url": hit.document.url,
                "text": hit.passage.text,
                "score": hit.score,
            }
            for hit in hits
        ]
    )


def _build_answer(done: TurnResult) -> Document:
    answer = done.answer
    return {
        "answer_id": done.answer_id,
        "status": answer.status.value,
        "text": done.text,
        "sentences": [pick(sentence, "text citations note") for sentence in answer.sentences],
        "citations": [
            pick(citation, "number corpus title section url revision date quote passage_id")
            for citation in answer.citations
        ],
        "claims": [pick(checked.claim, "text origin") | pick(checked, "verdict evidence") for checked in answer.claims],
        "nearest": [pick(hit.document, "title url") | {"passage_id": hit.passage.id} for hit in answer.nearest],
        "withheld": answer.withheld,
        **_build_run_facts(done),
    }


def _build_run_facts(done: TurnResult) -> Document:
    pinned = {"pinned": pick(done.pinned, "turn_id name day")} if done.pinned else {}
    faults = {"quoted_because": done.quoted_because, "web_fault": done.web_fault}
    why = {name: pick(fault, "kind message hint") for name, fault in faults.items() if fault}
    return {
        **pinned,
        **why,
        "system": done.system,
        **({"effort": done.effort} if done.effort else {}),
        "model": done.model,
        "usage": pick(done.usage, "llm_calls llm_rounds prompt_tokens cached_tokens completion_tokens cost"),
        "seconds": round(done.seconds, 3),
    }
