"""What a view is made of before it is fitted: blocks in their order, each of groups of runs that belong together; pure.

Here stands how a sentence, a footnote, a source and a claim read on every platform: `Text. [1]`, `(note) Text.`,
`[1] Title › Section · 2026-03-01`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import tzinfo

from bot.showing.defusing import address
from bot.showing.parts import Kind, Run, Style
from bot.showing.view import ClaimCard, EvidenceItem, EvidenceView, Judgement, ShownSentence, Source, View
from bot.words import say

Group = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A part before it is known how long parts may be. Groups are cut only where one alone is too long."""

    kind: Kind
    groups: tuple[Group, ...]
    state: str = ""


def blocks(view: View, zone: tzinfo) -> Iterator[Block]:
    """Yield what is to be seen of a view; nothing for what is empty."""
    yield from _lines(Kind.STATUS, view.status)
    yield from _lines(Kind.NOTICE, view.notice)
    yield from (_claim(card, view.language) for card in view.claims)
    if view.quote:
        yield from _lines(Kind.LABEL, view.quote_label)
        yield Block(Kind.QUOTE, (quoted(view.quote, zone),))
    yield from _lines(Kind.TEXT, view.text)
    yield from (block for one in view.judgements for block in _judgement(one))
    yield from _paragraphs(view.sentences)
    yield from _lines(Kind.LEFT_OUT, view.left_out)
    yield from _sources(Kind.SOURCES, view.sources, zone)
    if view.nearest:
        yield from _lines(Kind.LABEL, view.nearest_label)
        yield from _sources(Kind.NEAREST, view.nearest, zone)
    yield from _lines(Kind.COLLAPSED, view.collapsed)
    if view.mentions:
        yield Block(Kind.MENTIONS, tuple((Run(one, Style.PERSON), Run(" ")) for one in view.mentions))


def evidence_blocks(view: EvidenceView, language: str, zone: tzinfo) -> Iterator[Block]:
    """Yield what is to be seen of a turn's evidence."""
    yield from _lines(Kind.HEADING, view.heading)
    yield from _lines(Kind.TEXT, view.question)
    yield from _lines(Kind.TEXT, view.text)
    for item in _quoted_once(view.items):
        yield from _item(item, language, zone)
    if view.items and view.sources:
        yield from _lines(Kind.LABEL, say("evidence_sources", language))
    yield from _sources(Kind.SOURCES, view.sources, zone)


def quoted(source: Source, zone: tzinfo) -> Group:
    """Return a passage's own words, and beneath them where they stand."""
    return _numbered(replace(source, number=0), zone)


def _lines(kind: Kind, text: str) -> Iterator[Block]:
    if text:
        yield Block(kind, ((Run(text),),))


def _claim(card: ClaimCard, language: str) -> Block:
    said = Run(say(f"claim_{card.state}", language), Style.NOTE)
    text = (Run(": "), Run(card.text)) if card.text else ()
    pages = (Run(" · "), Run(", ".join(card.sources), Style.DETAIL)) if card.sources else ()
    return Block(Kind.CLAIM, ((said, *text, *pages),), card.state)


def _judgement(found: Judgement) -> Iterator[Block]:
    marks = (Run(" "), *map(_mark, found.numbers)) if found.numbers else ()
    yield from _lines(Kind.LABEL, found.verdict)
    yield Block(Kind.PARAGRAPH, ((Run(f"“{found.claim}”", Style.QUOTE), Run(f"\n{found.reason}"), *marks),))


def _paragraphs(sentences: Iterable[ShownSentence]) -> Iterator[Block]:
    groups = list[Group]()
    for sentence in sentences:
        if sentence.paragraph and groups:
            yield Block(Kind.PARAGRAPH, tuple(groups))
            groups = []
        groups.append(_sentence(sentence, first=not groups))
    if groups:
        yield Block(Kind.PARAGRAPH, tuple(groups))


def _sentence(sentence: ShownSentence, *, first: bool) -> Group:
    before = () if first else (Run(" "),)
    note = (Run(f"({sentence.note}) ", Style.NOTE),) if sentence.note else ()
    marks = (Run(" "), *(_mark(number) for number in sentence.numbers)) if sentence.numbers else ()
    return (*before, *note, Run(sentence.text), *marks)


def _mark(number: int) -> Run:
    return Run(f"[{number}]", Style.MARK)


def _sources(kind: Kind, sources: Iterable[Source], zone: tzinfo) -> Iterator[Block]:
    groups = tuple(_source(source, zone, first=place == 0) for place, source in enumerate(sources))
    if groups:
        yield Block(kind, groups)


def _source(source: Source, zone: tzinfo, *, first: bool) -> Group:
    before = () if first else (Run("\n"),)
    number = (_mark(source.number), Run(" ")) if source.number else (Run("• "),)
    quote = (Run("\n"), Run(f"“{source.quote}”", Style.QUOTE)) if source.quote else ()
    return (*before, *number, *_place(source, zone), *quote)


def _place(source: Source, zone: tzinfo) -> Group:
    """Return where something stands: title, section and day; an address that nothing can link to stands there too."""
    url, shown = address(source.url), " ".join(source.url.split())
    title = " ".join(source.title.split()) or shown or "…"
    section = " ".join(source.section.split())
    details = (
        f" › {section}" if section else "",
        f" · {source.date.astimezone(zone).date().isoformat()}" if source.date else "",
        f" ({shown})" if shown and not url and title != shown else "",
    )
    return (Run(title, Style.TITLE, url), *(Run(detail, Style.DETAIL) for detail in details if detail))


def _quoted_once(items: Iterable[EvidenceItem]) -> Iterator[EvidenceItem]:
    """Yield evidence in which a quotation that stood further up is not there again, but only where it stands."""
    shown = set[Source]()
    for item in items:
        sources, looked_at = (
            tuple(replace(one, quote="") if one in shown else one for one in some)
            for some in (item.sources, item.looked_at)
        )
        shown |= {*item.sources, *item.looked_at}
        yield replace(item, sources=sources, looked_at=looked_at)


def _item(item: EvidenceItem, language: str, zone: tzinfo) -> Iterator[Block]:
    yield from _lines(Kind.HEADING, item.heading)
    verdict = (Run(f"{item.verdict}: ", Style.NOTE),) if item.verdict else ()
    yield Block(Kind.CLAIM, ((*verdict, Run(item.claim)),))
    yield from _lines(Kind.TEXT, say("evidence_because", language, reasoning=item.reasoning) if item.reasoning else "")
    yield from (Block(Kind.QUOTE, (_numbered(source, zone),)) for source in item.sources)
    if item.looked_at:
        yield from _lines(Kind.TEXT, say("evidence_looked_at", language))
    yield from (Block(Kind.QUOTE, (_numbered(source, zone),)) for source in item.looked_at)


def _numbered(source: Source, zone: tzinfo) -> Group:
    """Return a passage's own words, and beneath them its footnote's number, if it has one, and where they stand."""
    words = (Run(f"“{source.quote}”", Style.QUOTE), Run("\n")) if source.quote else ()
    number = (_mark(source.number), Run(" ")) if source.number else ()
    return (*words, *number, *_place(source, zone))
