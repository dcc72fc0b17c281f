"""Blocks -> pieces that no passage need cut again: list items, sentences, table rows, lines of code. Pure.

`chunking` puts the pieces together; here stands where a text may be cut, and how gladly.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ingest.types import Block
from storage.language.scripts import UNSPACED_CLASS
from storage.language.sentences import sentence_spans
from storage.language.words import count_words
from storage.types import Kind

AT_BLOCK, AT_LINE, AT_SENTENCE, AT_CLAUSE = 0.0, 0.15, 0.5, 1.5
"""What a cut costs: between blocks, between lines of one block, between sentences of one line, within a sentence."""
AT_INDENTED, AFTER_INTRODUCTION = 0.3, 0.6
"""What it costs to part an item from the one it stands under, and what ends in a colon from what it introduces."""

_KEPT_WHOLE = 30
"""Words. A paragraph no longer than this is not cut to fill a passage."""
_CHARACTERS_A_WORD = 12
"""More than words have in any language, so that what is no language (keys, minified code) is cut as well."""
_CLAUSE_ENDS = ",;:–—)，、；：）،"
_BORDER = re.compile(rf"(?<=\S)(?=\s)|(?<=[{UNSPACED_CLASS}])(?=\w)|(?<=\S)(?=[{UNSPACED_CLASS}])(?=\w)")
_SPACE = re.compile(r"\s*")
_INTRODUCTION_ENDS = (":", "\uff1a")


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that stays whole. `glue` stands before it unless it opens a passage; `cut` is what that costs."""

    text: str
    words: int
    kind: Kind
    glue: str
    cut: float


def size(text: str) -> int:
    """Words, but never fewer than its length allows."""
    return max(count_words(text), len(text) // _CHARACTERS_A_WORD)


def pieces(block: Block, room: int) -> Iterator[Piece]:
    """Cut a block into pieces of at most `room` words, in order; only a single word may be longer."""
    # A blank line ends a sentence; a single line break might be taken for a soft wrap.
    glue, cut, blank = "\n" if block.kind is Kind.TABLE else "\n\n", AT_BLOCK, ""
    for line in block.text.split("\n"):
        if not line.strip():
            blank += "\n"
            continue
        for start, end, words, cost in _cuts(line, block.kind, room):
            if glue.startswith("\n"):
                cost = max(cut, AT_INDENTED if line[0].isspace() else cut)  # noqa: PLW2901 - a line begins here
            yield Piece(line[start:end], words, block.kind, glue + blank, cost)
            rest = line[end:]
            glue, blank = rest[: len(rest) - len(rest.lstrip())], ""
        glue = "\n"
        cut = AFTER_INTRODUCTION if line.rstrip().endswith(_INTRODUCTION_ENDS) else AT_LINE


def _cuts(line: str, kind: Kind, room: int) -> Iterator[tuple[int, int, int, float]]:
    """Start, end and size of each piece of a line, and the cost of a cut before it."""
    whole = line.rstrip()
    if (words := size(whole)) <= (_KEPT_WHOLE if kind is Kind.PROSE else room):
        yield 0, len(whole), words, AT_BLOCK
        return
    spans = sentence_spans(line) if kind is Kind.PROSE else ((0, len(whole)),)
    for number, (start, end) in enumerate(spans):
        # The indentation of the first sentence belongs to it.
        begin = 0 if number == 0 else start
        sentence = line[begin:end]
        if (words := size(sentence)) <= room:
            yield begin, end, words, AT_SENTENCE
            continue
        for part, (first, last) in enumerate(_clauses(sentence, room)):
            yield begin + first, begin + last, size(sentence[first:last]), AT_CLAUSE if part else AT_SENTENCE


def _clauses(sentence: str, room: int) -> Iterator[tuple[int, int]]:
    """Cut what is longer than `room` at the ends of clauses, else of words."""
    borders = [*(border.start() for border in _BORDER.finditer(sentence)), len(sentence)]
    start = at = 0
    while start < len(sentence):
        end = _farthest(sentence, start, borders[at : at + 2 * room + 1], room)
        at = bisect_right(borders, end, lo=at)
        yield start, end
        space = _SPACE.match(sentence, end)
        start = space.end() if space else end


def _farthest(sentence: str, start: int, borders: Sequence[int], room: int) -> int:
    """Where to end the piece that begins at `start`: the last end of a clause in its second half, else of a word."""
    fitting = bisect_right(borders, room, key=lambda at: size(sentence[start:at]))
    if not fitting:
        # A word that does not fit by itself; beyond this length it is no word, and is cut.
        return min(borders[0], start + room * _CHARACTERS_A_WORD)
    if borders[fitting - 1] == len(sentence):
        return len(sentence)
    half = bisect_right(borders, room // 2, hi=fitting, key=lambda at: size(sentence[start:at]))
    ends = (at for at in reversed(borders[half:fitting]) if sentence[at - 1] in _CLAUSE_ENDS)
    return next(ends, borders[fitting - 1])
