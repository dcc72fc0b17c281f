"""Split a page into passages of at most 120 words with their title and section. Pure.

Blocks are split into indivisible pieces: list items, sentences, table rows, lines of code. The cuts between pieces are
then chosen like line breaks in a paragraph, so that a section has few passages, none of them a leftover of a few words,
and paragraphs and lists stay whole if possible.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from ingest.types import Block, Page, Section
from storage.language.lazy_pattern import lazy_compile
from storage.language.scripts import UNSPACED_CLASS
from storage.language.sentences import sentence_spans
from storage.language.words import count_words
from storage.types import Passage, PassageKind, hash_passage, make_passage_id

AT_BLOCK, AT_LINE, AT_SENTENCE, AT_CLAUSE = 0.0, 0.15, 0.5, 1.5
"""Cost of a cut between blocks, between lines of a block, between sentences of a line, and within a sentence."""
AT_INDENTED, AFTER_INTRODUCTION = 0.3, 0.6
"""Cost of separating a list item from its parent item, and a line that ends in a colon from the text it introduces."""

_WHOLE_PARAGRAPH_WORDS = 30  # a paragraph of at most so many words is not cut to fill a passage
_CHARACTERS_A_WORD = 12
"""Longer than average words of any language, so that keys and minified code are cut as well."""
_CLAUSE_ENDS = ",;:–—)，、；：）،"
_BORDER = lazy_compile(rf"(?<=\S)(?=\s)|(?<=[{UNSPACED_CLASS}])(?=\w)|(?<=\S)(?=[{UNSPACED_CLASS}])(?=\w)")
_SPACE = lazy_compile(r"\s*")
_INTRODUCTION_ENDS = (":", "\uff1a")


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Text that is not split further.

    `glue` is put before it inside a passage; `cut` is the cost of starting a passage here.
    """

    text: str
    words: int
    kind: PassageKind
    glue: str
    cut: float


def measure_words(text: str) -> int:
    """Count the words of a text, but at least one for every 12 characters."""
    return max(count_words(text), len(text) // _CHARACTERS_A_WORD)


def split_block(block: Block, room: int) -> Iterator[TextPiece]:
    """Cut a block into pieces of at most `room` words, in order. Only a single word may be longer."""
    # A blank line ends a sentence; a single line break could be read as a soft wrap.
    glue, cut, blank = "\n" if block.kind is PassageKind.TABLE else "\n\n", AT_BLOCK, ""
    for line in block.text.split("\n"):
        if not line.strip():
            blank += "\n"
            continue
        for start, end, words, cost in _split_line(line, block.kind, room):
            if glue.startswith("\n"):
                cost = max(cut, AT_INDENTED if line[0].isspace() else cut)  # noqa: PLW2901 - a line begins here
            yield TextPiece(line[start:end], words, block.kind, glue + blank, cost)
            rest = line[end:]
            glue, blank = rest[: len(rest) - len(rest.lstrip())], ""
        glue = "\n"
        cut = AFTER_INTRODUCTION if line.rstrip().endswith(_INTRODUCTION_ENDS) else AT_LINE


def _split_line(line: str, kind: PassageKind, room: int) -> Iterator[tuple[int, int, int, float]]:
    """Yield each piece of a line: its start, its end, its number of words, and the cost of a cut before it."""
    whole = line.rstrip()
    if (words := measure_words(whole)) <= (_WHOLE_PARAGRAPH_WORDS if kind is PassageKind.PROSE else room):
        yield 0, len(whole), words, AT_BLOCK
        return
    spans = sentence_spans(line) if kind is PassageKind.PROSE else ((0, len(whole)),)
    for number, (start, end) in enumerate(spans):
        # The indentation of the first sentence belongs to it.
        begin = 0 if number == 0 else start
        sentence = line[begin:end]
        if (words := measure_words(sentence)) <= room:
            yield begin, end, words, AT_SENTENCE
            continue
        for part, (first, last) in enumerate(_split_clauses(sentence, room - 1)):  # the cut mark counts as a word
            yield begin + first, begin + last, measure_words(sentence[first:last]), AT_CLAUSE if part else AT_SENTENCE


def _split_clauses(sentence: str, room: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each part of a sentence of more than `room` words, cut after clauses if possible."""
    borders = [*(border.start() for border in _BORDER.finditer(sentence)), len(sentence)]
    start = at = 0
    while start < len(sentence):
        end = _find_end(sentence, start, borders[at : at + 2 * room + 1], room)
        at = bisect_right(borders, end, lo=at)
        yield start, end
        space = _SPACE.match(sentence, end)
        start = space.end() if space else end


def _find_end(sentence: str, start: int, borders: Sequence[int], room: int) -> int:
    """Return the end of the part that begins at `start`.

    It is after the last clause that ends in the part's second half, or else after the last word that fits.
    """
    fitting = bisect_right(borders, room, key=lambda at: measure_words(sentence[start:at]))
    if not fitting:
        # A single word that does not fit is cut if it is too long to be a word.
        return min(borders[0], start + room * _CHARACTERS_A_WORD)
    if borders[fitting - 1] == len(sentence):
        return len(sentence)
    half = bisect_right(borders, room // 2, hi=fitting, key=lambda at: measure_words(sentence[start:at]))
    ends = (at for at in reversed(borders[half:fitting]) if sentence[at - 1] in _CLAUSE_ENDS)
    return next(ends, borders[fitting - 1])


LARGEST_PASSAGE = 120  # words of a passage, including its title and section
LEAST_AVAILABLE = 40  # words reserved for the text, however long title and section are
CUT_MARK = " …"  # ends a passage that ends within a sentence too long for one
SEPARATOR = " › "  # between the headings of a section's path

_PASSAGE_COST = 0.3  # cost of each passage, in addition to its cuts and unused room
_INTRODUCTION_WORDS = 40
_ASIDE_WORDS = 8  # words; a text this short between two pieces of code does not become a passage


def split_page(corpus: str, key: str, page: Page) -> tuple[Passage, ...]:
    """Cut a page into passages, each of one section and one kind, in order."""
    seen: Counter[tuple[str, str]] = Counter()
    passages: list[Passage] = []
    for section in page.sections:
        path = SEPARATOR.join(section.path)
        for kind, text in _split_section(section, available_words(page.title, path)):
            ordinal = seen[path, text]
            seen[path, text] += 1
            passages.append(
                Passage(
                    id=make_passage_id(corpus, key, path, text, ordinal),
                    corpus=corpus,
                    document=key,
                    section=path,
                    text=text,
                    position=len(passages),
                    hash=hash_passage(page.title, path, text),
                    kind=kind,
                )
            )
    return tuple(passages)


def available_words(title: str, section: str) -> int:
    """Return how many words of text a passage may have, next to this title and section."""
    return max(LARGEST_PASSAGE - count_words(title) - count_words(section), LEAST_AVAILABLE)


def _split_section(section: Section, words: int) -> Iterator[tuple[PassageKind, str]]:
    pieces = (piece for block in _join_introductions(section.blocks) for piece in split_block(block, words))
    for kind, run in groupby(pieces, key=lambda piece: piece.kind):
        runs = [*_pack_pieces(list(run), words), ()]
        for chosen, following in pairwise(runs):
            cut = following and following[0].cut == AT_CLAUSE and kind is not PassageKind.CODE
            yield kind, _join_pieces(chosen) + (CUT_MARK if cut else "")


def _join_pieces(chosen: Sequence[TextPiece]) -> str:
    first, *rest = chosen
    return (first.text + "".join(piece.glue + piece.text for piece in rest)).strip("\n")


def _join_introductions(blocks: Sequence[Block]) -> Iterator[Block]:
    """Give a short introduction the kind of the code or table after it, so that both share a passage."""
    for at, block in enumerate(blocks):
        following = blocks[at + 1].kind if at + 1 < len(blocks) else PassageKind.PROSE
        before = blocks[at - 1].kind if at else PassageKind.PROSE
        if block.kind is not PassageKind.PROSE:
            yield block
        elif following is not PassageKind.PROSE and _is_introduction(block.text, aside=before is not PassageKind.PROSE):
            yield Block(block.text, following)
        else:
            yield block


def _is_introduction(text: str, *, aside: bool) -> bool:
    words = count_words(text)
    return (text.endswith(_INTRODUCTION_ENDS) and words <= _INTRODUCTION_WORDS) or (aside and words <= _ASIDE_WORDS)


def _pack_pieces(pieces: Sequence[TextPiece], words: int) -> Iterator[Sequence[TextPiece]]:
    """Return the cheapest division of the pieces into runs of at most `words` words."""
    costs, begins = [0.0], [0]
    for end in range(1, len(pieces) + 1):
        best, begin, total = float("inf"), end - 1, 0
        for start in range(end - 1, -1, -1):
            total += pieces[start].words
            if total > words and start < end - 1:
                break
            cost = costs[start] + _PASSAGE_COST + max(1 - total / words, 0) ** 4 + (pieces[start].cut if start else 0)
            if cost < best:
                best, begin = cost, start
        costs.append(best)
        begins.append(begin)
    return _runs(pieces, begins)


def _runs(pieces: Sequence[TextPiece], begins: Sequence[int]) -> Iterator[Sequence[TextPiece]]:
    ends = [len(pieces)]
    while ends[-1]:
        ends.append(begins[ends[-1]])
    borders: Iterable[int] = reversed(ends)
    start = next(iter(borders))
    for end in borders:
        yield pieces[start:end]
        start = end
