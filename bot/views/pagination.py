"""Split a view into pages that a platform takes: long text is cut, and nothing is lost or changes places; pure.

A sentence stays with its footnote marks, and a source with its title and address, wherever there is room for them. A
text is cut at a line's end, a word's, or between two characters as people see them.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, tzinfo

from bot.views.render_tree import (
    MessageLimits,
    MessagePage,
    MessagePart,
    PartKind,
    TextRun,
    TextStyle,
    ViewBlock,
    build_blocks,
    build_evidence_blocks,
)
from bot.views.turn_view import Button, EvidenceView, View

_REGIONAL = range(0x1F1E6, 0x1F200)
_TONES = range(0x1F3FB, 0x1F400)
_JAMO = range(0x1160, 0x1200)  # vowels and finals of Korean, where they are written one by one
_JOINER = "\u200d"
_FIRST_TRY = 64  # how many characters are tried first


def split_text(text: str, fits: Callable[[str], bool]) -> Iterator[str]:
    """Yield the text in pieces that fit, each as long as it can be without ending within a word.

    A single character is taken to fit.
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
    """Return how many characters fit. What a text takes need not grow with each: the end is tried again."""
    high = _FIRST_TRY
    while high < len(text) and fits(text[:high]):
        high *= 2
    low, high = 1, min(high, len(text))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(text[:middle]) else (low, middle - 1)
    return next((end for end in range(low, 1, -1) if fits(text[:end])), 1)


def _is_boundary(text: str, end: int) -> bool:
    """Return whether two characters, as people see them, meet here. Tells marks, emoji and flags; no full UAX 29."""
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


_Sized = tuple[MessagePart, int]  # a part, and how much its runs take


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


def measure_part(part: MessagePart, limits: MessageLimits) -> int:
    """Return how much of a message a part takes at most."""
    return limits.gap + sum(map(limits.size, part.runs))


def _has_room(page: list[_Sized], limits: MessageLimits) -> bool:
    return len(page) <= limits.parts and sum(taken + limits.gap for _, taken in page) <= limits.message


def _take_heading(page: list[_Sized], part: _Sized, limits: MessageLimits) -> list[_Sized]:
    """Take a heading from a page's end to the next page, where what it is the heading of begins."""
    heads = page[-1][0].kind in {PartKind.LABEL, PartKind.HEADING}
    return [page.pop()] if heads and len(page) > 1 and _has_room([page[-1], part], limits) else []


def _split_block(block: ViewBlock, limits: MessageLimits) -> Iterator[_Sized]:
    """Yield the parts of a block: as few as hold it, none cut that fits whole into one."""
    most = min(limits.part, limits.message) - limits.gap
    runs, taken = list[TextRun](), 0
    for run, needed in (pair for group in block.groups for pair in _split_group(group, limits, most)):
        if runs and taken + needed > most:
            yield MessagePart(block.kind, tuple(runs), block.state), taken
            runs, taken = [], 0
        if runs or not run.text.isspace():  # what parts two sentences is not needed where a part begins
            runs.append(run)
            taken += limits.size(run)
    if runs:
        yield MessagePart(block.kind, tuple(runs), block.state), taken


def _split_group(group: Iterable[TextRun], limits: MessageLimits, most: int) -> Iterator[tuple[TextRun, int]]:
    """Yield a group's runs, each with the room wanted for it: the first wants room for all of them."""
    runs = [run for run in _unlink_long(group, limits, most) if run.text]
    whole = sum(map(limits.size, runs))
    if whole > most:
        yield from ((piece, limits.size(piece)) for run in runs for piece in _split_run(run, limits, most))
    else:
        yield from ((run, limits.size(run) if place else whole) for place, run in enumerate(runs))


def _unlink_long(group: Iterable[TextRun], limits: MessageLimits, most: int) -> Iterator[TextRun]:
    """Yield the runs; an address that leaves no room for its text is shown as text behind it."""
    for run in group:
        if run.url and limits.measure(run.url) > most // 2:
            yield replace(run, url="")
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
    """Return the pages that show a turn's evidence, with our own words in the reader's language."""
    return paginate_blocks(build_evidence_blocks(view, language, zone), limits)
