"""Which lines of a text stand for themselves: paragraphs, list items, headings, rows of a table.

A line break ends a block where a blank line, a list item, a row or a heading says so; elsewhere it is a soft wrap.
`sentences` looks for sentence ends inside a block.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

Span = tuple[int, int]

_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n|\u2029")
_LINE = re.compile(r"[^\n\u2028]+")
_ITEM = re.compile(r"\s*(?:[-*+•‣◦▪●○–]\s|\(?\d{1,3}[.)]\s|\(?[a-zA-Z]\)\s|>|#{1,6}\s|```|~~~)")
_MARKED_ALONE = re.compile(r"\s*(?:#{1,6}\s|```|~~~|[-=*_~^]{3,}\s*$)")
_OPEN_ENDED = re.compile(r"(?:[,;\-–—(]|\b(?![A-Z])\w{1,3})\s*$")
_NEXT_WORD = re.compile(r"\s*([^\W_a-zß-öø-ÿ]\S*)")
_LONGEST_HEADING = 60
_CELL_ENDS = 2


def block_spans(text: str) -> Iterator[Span]:
    """Yield start and end of each block in order; together they hold every character that is no line break."""
    start = 0
    for gap in _PARAGRAPH_END.finditer(text):
        yield from _blocks_of_paragraph(text, start, gap.start())
        start = gap.end()
    yield from _blocks_of_paragraph(text, start, len(text))


def is_row(line: str) -> bool:
    """Whether a line is a row of a table, which has cells and no sentences."""
    bare = line.strip()
    return bare.startswith("|") or bare.count(" | ") >= _CELL_ENDS or bare.count("\t") >= _CELL_ENDS


def _blocks_of_paragraph(text: str, start: int, end: int) -> Iterator[Span]:
    lines = [found.span() for found in _LINE.finditer(text, start, end)]
    if not lines:
        return
    width = max(last - first for first, last in lines)
    begin = lines[0][0]
    for (first, last), (next_first, next_last) in pairwise(lines):
        if _parted(text[first:last], text[next_first:next_last], width):
            yield begin, last
            begin = next_first
    yield begin, lines[-1][1]


def _parted(line: str, following: str, width: int) -> bool:
    """Whether the break between two lines ends a block. `width` is that of the longest line around them."""
    if _ITEM.match(following) or _MARKED_ALONE.match(line) or _MARKED_ALONE.match(following):
        return True
    return is_row(line) or is_row(following) or _is_heading(line, following, width)


def _is_heading(line: str, following: str, width: int) -> bool:
    """Whether a short line was broken although the next word, a capitalised one, had room on it."""
    next_word = _NEXT_WORD.match(following)
    if next_word is None or len(line) > _LONGEST_HEADING or _OPEN_ENDED.search(line):
        return False
    return len(line) + 1 + len(next_word[1]) < width
