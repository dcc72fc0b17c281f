"""Lay out a view as pages of parts, and parts as runs of text. Each platform renders these unchanged; pure.

A run's text is raw and contains its own spaces, brackets and line breaks: a platform renders a part by escaping each
run once, applying its style, and joining the runs. `build_blocks` defines the format of sentences, footnotes, sources
and claims for all platforms: `Text. [1]`, `(note) Text.`, `[1] Title › Section · 2026-03-01`. Long text is split at the
end of a line, of a word, or of a visible character; nothing is lost or reordered. If there is room, a sentence stays
together with its marks, and a source with its title and address.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from enum import StrEnum

from bot.views.catalog import render_marks, render_sentence, split_code, translate
from bot.views.sanitize import sanitize_url
from bot.views.turn_view import Button, ClaimCard, EvidenceItem, EvidenceView, ShownSource, ShownVerdict, View
from pipeline.types import AnsweredSentence

_REGIONAL = range(0x1F1E6, 0x1F200)
_TONES = range(0x1F3FB, 0x1F400)
_JAMO = range(0x1160, 0x1200)  # Korean vowels and finals, if they are separate characters
_JOINER = "\u200d"
_FIRST_TRY = 64  # characters of the first attempt to split a text


class PartKind(StrEnum):
    STATUS = "status"
    NOTICE = "notice"
    CLAIM = "claim"  # a claim after its state
    COLLAPSED = "collapsed"  # one line instead of all claims
    HEADING = "heading"
    LABEL = "label"  # our own text above the next part
    QUOTE = "quote"  # a quotation and its source
    TEXT = "text"
    PARAGRAPH = "paragraph"  # sentences with their footnote marks
    LEFT_OUT = "left_out"
    SOURCES = "sources"  # footnotes, one per line
    NEAREST = "nearest"
    MENTIONS = "mentions"


class TextStyle(StrEnum):
    PLAIN = "plain"
    NOTE = "note"  # our own text within other text
    MARK = "mark"  # a footnote's number in brackets; never split
    TITLE = "title"  # a page's title, linked to its address if it has one
    DETAIL = "detail"  # a section or a date
    QUOTE = "quote"
    CODE = "code"  # lines that end with a line break, shown as a block of code
    PERSON = "person"  # the platform's id of a person to mention; never split


@dataclass(frozen=True, slots=True)
class TextRun:
    """A stretch of text in one style."""

    text: str
    style: TextStyle = TextStyle.PLAIN
    url: str = ""  # the link's address: as `sanitize_url` returns it, or empty


@dataclass(frozen=True, slots=True)
class MessagePart:
    """A block, a component or a paragraph of a message."""

    kind: PartKind
    runs: tuple[TextRun, ...]
    state: str = ""  # a claim's `ClaimCard.state`


@dataclass(frozen=True, slots=True)
class MessagePage:
    """One message: its parts, and the buttons below them."""

    parts: tuple[MessagePart, ...] = ()
    rows: tuple[tuple[Button, ...], ...] = ()  # the buttons below; only on the last page


@dataclass(frozen=True, slots=True)
class MessageLimits:
    """A platform's limits of one message, in the units of `measure`."""

    message: int  # the size of all its parts
    parts: int  # the number of parts, without buttons
    part: int  # the size of one part; at least `MIN_PART_SIZE`
    row: int  # the number of buttons in a row
    measure: Callable[[str], int]  # returns the length of a text once escaped
    markup: int = 0  # the most that a run's style adds, with a link's brackets but not its address
    line: int = 0  # the size added to each line of a part, such as a quotation mark at its start
    gap: int = 0  # the size added between two parts

    def size(self, run: TextRun) -> int:
        """Return the largest size that a run can have with its markup, in the units of `measure`."""
        lines = run.text.count("\n") + 1
        return self.measure(run.text) + (self.measure(run.url) if run.url else 0) + self.markup + self.line * lines


MIN_PART_SIZE = 160
"""A part has at least this much room: for a mark, a person's id or any character, with its markup."""

Group = tuple[TextRun, ...]


@dataclass(frozen=True, slots=True)
class ViewBlock:
    """A part of a message that may still have to be split. A group of runs is split only if it alone is too long."""

    kind: PartKind
    groups: tuple[Group, ...]
    state: str = ""


def build_blocks(view: View, zone: tzinfo) -> Iterator[ViewBlock]:
    """Yield the blocks of a view; none for empty fields."""
    yield from _build_lines(PartKind.STATUS, view.status)
    yield from _build_lines(PartKind.NOTICE, view.notice)
    yield from (_build_claim(card, view.language) for card in view.claims)
    if view.quote:
        yield from _build_lines(PartKind.LABEL, view.quote_label)
        yield ViewBlock(PartKind.QUOTE, (_build_numbered(replace(view.quote, number=0), zone),))
    yield from _build_lines(PartKind.TEXT, view.text)
    yield from (block for judgement in view.judgements for block in _lay_out_verdict(judgement))
    yield from _build_paragraphs(view.sentences)
    yield from _build_lines(PartKind.LEFT_OUT, view.left_out)
    yield from _build_sources(PartKind.SOURCES, view.sources, zone)
    if view.nearest:
        yield from _build_lines(PartKind.LABEL, view.nearest_label)
        yield from _build_sources(PartKind.NEAREST, view.nearest, zone)
    yield from _build_lines(PartKind.COLLAPSED, view.collapsed)
    if view.mentions:
        people = tuple((TextRun(person, TextStyle.PERSON), TextRun(" ")) for person in view.mentions)
        yield ViewBlock(PartKind.MENTIONS, people)


def build_evidence_blocks(view: EvidenceView, language: str, zone: tzinfo) -> Iterator[ViewBlock]:
    """Yield the blocks that show a turn's evidence."""
    yield from _build_lines(PartKind.HEADING, view.heading)
    yield from _build_lines(PartKind.TEXT, view.question)
    yield from _build_lines(PartKind.TEXT, view.text)
    for item in _drop_repeated_quotes(view.items):
        yield from _build_evidence_item(item, language, zone)
    if view.items and view.sources:
        yield from _build_lines(PartKind.LABEL, translate("evidence_sources", language))
    yield from _build_sources(PartKind.SOURCES, view.sources, zone)
    yield from _build_lines(PartKind.COLLAPSED, view.receipt)


def _build_lines(kind: PartKind, text: str) -> Iterator[ViewBlock]:
    if text:
        yield ViewBlock(kind, ((TextRun(text),),))


def _build_claim(card: ClaimCard, language: str) -> ViewBlock:
    state = TextRun(translate(f"claim_{card.state}", language), TextStyle.NOTE)
    text = (TextRun(": "), TextRun(card.text)) if card.text else ()
    pages = (TextRun(" · "), TextRun(", ".join(card.sources), TextStyle.DETAIL)) if card.sources else ()
    return ViewBlock(PartKind.CLAIM, ((state, *text, *pages),), card.state)


def _lay_out_verdict(found: ShownVerdict) -> Iterator[ViewBlock]:
    marks = (TextRun(" "), *map(_build_mark, found.numbers)) if found.numbers else ()
    yield from _build_lines(PartKind.LABEL, found.verdict)
    reason = (TextRun(f"\n{found.reason}"),) if found.reason else ()
    yield ViewBlock(PartKind.PARAGRAPH, ((TextRun(f"“{found.claim}”", TextStyle.QUOTE), *reason, *marks),))


def _build_paragraphs(sentences: Iterable[AnsweredSentence]) -> Iterator[ViewBlock]:
    groups = list[Group]()
    for sentence in sentences:
        if sentence.paragraph and groups:
            yield ViewBlock(PartKind.PARAGRAPH, tuple(groups))
            groups = []
        groups.append(_build_sentence(sentence, first=not groups))
    if groups:
        yield ViewBlock(PartKind.PARAGRAPH, tuple(groups))


def _build_sentence(sentence: AnsweredSentence, *, first: bool) -> Group:
    before = () if first else (TextRun(" "),)
    note = (TextRun(f"({sentence.note}) ", TextStyle.NOTE),) if sentence.note else ()
    text = tuple(TextRun(piece, _STYLES[place % 2]) for place, piece in enumerate(split_code(sentence.text)) if piece)
    gap = (TextRun(" "),) if text and sentence.citations and text[-1].style is TextStyle.PLAIN else ()
    return (*before, *note, *text, *gap, *map(_build_mark, sentence.citations))


_STYLES = (TextStyle.PLAIN, TextStyle.CODE)


def _build_mark(number: int) -> TextRun:
    return TextRun(f"[{number}]", TextStyle.MARK)


def _build_sources(kind: PartKind, sources: Iterable[ShownSource], zone: tzinfo) -> Iterator[ViewBlock]:
    groups = tuple(_build_source(source, zone, first=place == 0) for place, source in enumerate(sources))
    if groups:
        yield ViewBlock(kind, groups)


def _build_source(source: ShownSource, zone: tzinfo, *, first: bool) -> Group:
    before = () if first else (TextRun("\n"),)
    number = (_build_mark(source.number), TextRun(" ")) if source.number else (TextRun("• "),)
    quote = (TextRun("\n"), TextRun(f"“{source.quote}”", TextStyle.QUOTE)) if source.quote else ()
    return (*before, *number, *_build_location(source, zone), *quote)


def _build_location(source: ShownSource, zone: tzinfo) -> Group:
    """Return the title, section and day of a source. If its address cannot be a link, the address follows as text."""
    url, shown = sanitize_url(source.url), " ".join(source.url.split())
    title = " ".join(source.title.split()) or shown or "…"
    section = " ".join(source.section.split())
    details = (
        f" › {section}" if section else "",
        f" · {source.date.astimezone(zone).date().isoformat()}" if source.date else "",
        f" · {source.origin}" if source.origin else "",
        f" ({shown})" if shown and not url and title != shown else "",
    )
    return (TextRun(title, TextStyle.TITLE, url), *(TextRun(detail, TextStyle.DETAIL) for detail in details if detail))


def _drop_repeated_quotes(items: Iterable[EvidenceItem]) -> Iterator[EvidenceItem]:
    """Yield the items without repeated quotations: a source shown in an earlier item loses its quotation."""
    shown = set[ShownSource]()
    for item in items:
        sources, looked_at = (
            tuple(replace(source, quote="") if source in shown else source for source in listed)
            for listed in (item.sources, item.looked_at)
        )
        shown |= {*item.sources, *item.looked_at}
        yield replace(item, sources=sources, looked_at=looked_at)


def _build_evidence_item(item: EvidenceItem, language: str, zone: tzinfo) -> Iterator[ViewBlock]:
    yield from _build_lines(PartKind.HEADING, item.heading)
    verdict = (TextRun(f"{item.verdict}: ", TextStyle.NOTE),) if item.verdict else ()
    yield ViewBlock(PartKind.CLAIM, ((*verdict, TextRun(item.claim)),))
    yield from _build_lines(PartKind.TEXT, item.reason)
    yield from (ViewBlock(PartKind.QUOTE, (_build_numbered(source, zone),)) for source in item.sources)
    if item.looked_at:
        yield from _build_lines(PartKind.TEXT, translate("evidence_looked_at", language))
    yield from (ViewBlock(PartKind.QUOTE, (_build_numbered(source, zone),)) for source in item.looked_at)


def _build_numbered(source: ShownSource, zone: tzinfo) -> Group:
    """Return a source's quotation, followed by the footnote's number and the source's title, section and day."""
    words = (TextRun(f"“{source.quote}”", TextStyle.QUOTE), TextRun("\n")) if source.quote else ()
    number = (_build_mark(source.number), TextRun(" ")) if source.number else ()
    return (*words, *number, *_build_location(source, zone))


def split_text(text: str, fits: Callable[[str], bool]) -> Iterator[str]:
    """Yield the text in pieces that fit, each as long as possible without splitting a word.

    A single character is assumed to fit.
    """
    start = 0
    while start < len(text):
        end = start + _find_longest(text[start:], fits)
        end = end if end == len(text) else start + _find_end(text[start:], end - start, fits)
        yield text[start:end]
        start = end


def _find_end(text: str, longest: int, fits: Callable[[str], bool]) -> int:
    for mark in ("\n", " "):
        place = text.rfind(mark, longest // 2, longest) + 1
        if place and fits(text[:place]):
            return place
    return next((end for end in range(longest, 0, -1) if _is_boundary(text, end) and fits(text[:end])), longest)


def _find_longest(text: str, fits: Callable[[str], bool]) -> int:
    """Return how many of a text's first characters fit. Longer text may measure less, so the result is rechecked."""
    low, high = 1, _FIRST_TRY
    while high < len(text) and fits(text[:high]):
        low, high = high, high * 2
    if high >= len(text) and fits(text):
        return len(text)
    high = min(high, len(text))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(text[:middle]) else (low, middle - 1)
    return next((end for end in range(low, 1, -1) if fits(text[:end])), 1)


def _is_boundary(text: str, end: int) -> bool:
    """Return whether two visible characters meet here; handles marks, emoji and flags, not all of UAX 29."""
    before, after = text[end - 1], text[end]
    if ord(after) in _REGIONAL:
        return _count_flags_before(text, end) % 2 == 0
    joined = _JOINER in {before, after} or ord(after) in _TONES or ord(after) in _JAMO
    return not joined and unicodedata.category(after)[0] != "M"


def _count_flags_before(text: str, end: int) -> int:
    start = end
    while start and ord(text[start - 1]) in _REGIONAL:
        start -= 1
    return end - start


_Sized = tuple[MessagePart, int]  # a part and the size of its runs


def paginate_view(view: View, limits: MessageLimits, zone: tzinfo = UTC) -> tuple[MessagePage, ...]:
    """Return the pages that show a view: at least one, the buttons on the last."""
    return paginate_blocks(build_blocks(view, zone), limits, view.buttons)


def paginate_blocks(
    shown: Iterable[ViewBlock], limits: MessageLimits, buttons: tuple[Button, ...] = ()
) -> tuple[MessagePage, ...]:
    pages: list[list[_Sized]] = [[]]
    for part in (part for block in shown for part in _split_block(block, limits)):
        if pages[-1] and not _has_room([*pages[-1], part], limits):
            pages.append(_take_heading(pages[-1], part, limits))
        pages[-1].append(part)
    rows = tuple(buttons[start : start + limits.row] for start in range(0, len(buttons), limits.row))
    *others, last = (tuple(part for part, _ in page) for page in pages)
    return (*map(MessagePage, others), MessagePage(last, rows))


def _has_room(page: list[_Sized], limits: MessageLimits) -> bool:
    return len(page) <= limits.parts and sum(taken + limits.gap for _, taken in page) <= limits.message


def _take_heading(page: list[_Sized], part: _Sized, limits: MessageLimits) -> list[_Sized]:
    """Remove a heading from the end of a page, and return it for the next page, where its section begins."""
    heads = page[-1][0].kind in {PartKind.LABEL, PartKind.HEADING}
    return [page.pop()] if heads and len(page) > 1 and _has_room([page[-1], part], limits) else []


def _split_block(block: ViewBlock, limits: MessageLimits) -> Iterator[_Sized]:
    """Yield the parts of a block: as few as possible, without splitting a group that fits into one."""
    most = min(limits.part, limits.message) - limits.gap
    runs, taken = list[TextRun](), 0
    for run, needed in (pair for group in block.groups for pair in _split_group(group, limits, most)):
        if runs and taken + needed > most:
            yield MessagePart(block.kind, tuple(runs), block.state), taken
            runs, taken = [], 0
        if runs or not run.text.isspace():  # a separator is not needed at the beginning of a part
            runs.append(run)
            taken += limits.size(run)
    if runs:
        yield MessagePart(block.kind, tuple(runs), block.state), taken


def _split_group(group: Iterable[TextRun], limits: MessageLimits, most: int) -> Iterator[tuple[TextRun, int]]:
    """Yield a group's runs, each with the room that it needs.

    If the whole group fits on a page, its first run needs room for all of it, so that the group is not split.
    """
    runs = [run for run in _unlink_long(group, limits, most) if run.text]
    whole = sum(map(limits.size, runs))
    if whole > most:
        yield from ((piece, limits.size(piece)) for run in runs for piece in _split_run(run, limits, most))
    else:
        yield from ((run, limits.size(run) if place else whole) for place, run in enumerate(runs))


def _unlink_long(group: Iterable[TextRun], limits: MessageLimits, most: int) -> Iterator[TextRun]:
    """Yield the runs. A link whose address is too long becomes its text, followed by the address if that differs."""
    for run in group:
        if run.url and limits.measure(run.url) > most // 2:
            yield replace(run, url="")
            if sanitize_url(run.text) != run.url:
                yield TextRun(f" {run.url}", TextStyle.DETAIL)
        else:
            yield run


def _split_run(run: TextRun, limits: MessageLimits, most: int) -> Iterator[TextRun]:
    def fits(text: str) -> bool:
        return limits.size(replace(run, text=text)) <= most

    return (replace(run, text=text) for text in split_text(run.text, fits))


def paginate_evidence(
    view: EvidenceView, limits: MessageLimits, language: str, zone: tzinfo = UTC
) -> tuple[MessagePage, ...]:
    """Return the pages that show a turn's evidence, with our own texts in the user's language."""
    return paginate_blocks(build_evidence_blocks(view, language, zone), limits)


def render_plain_text(view: View) -> str:
    """Return a view as plain text, as the record stores it."""
    sentences = "".join(map(render_sentence, view.sentences)).strip()
    nearest = (view.nearest_label, *map(_plain_source, view.nearest)) if view.nearest else ()
    verdicts = map(_plain_verdict, view.judgements)
    parts = (view.notice, view.text, *verdicts, sentences, view.left_out, *map(_plain_source, view.sources), *nearest)
    return "\n\n".join(filter(None, parts))


def _plain_verdict(found: ShownVerdict) -> str:
    return f"{found.verdict}: “{found.claim}” {found.reason} {render_marks(found.numbers)}".rstrip()


def _plain_source(source: ShownSource) -> str:
    number = f"[{source.number}] " if source.number else ""
    named = " › ".join(filter(None, (source.title, source.section)))
    return f"{number}{named}{f' {source.url}' if source.url else ''}"
