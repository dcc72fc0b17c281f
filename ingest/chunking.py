"""Page -> passages of at most 120 words with their title and section. Pure.

`cutting` says where a text may be cut; here the cuts are chosen, as lines are broken in a paragraph: so that the
passages of a section are few, none is a leftover of a few words, and paragraphs and lists stay whole where they can.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from ingest import cutting
from ingest.cutting import Piece
from ingest.types import Block, Page, Section
from storage.identity import passage_hash, passage_id
from storage.language.words import count_words
from storage.types import Kind, Passage

LARGEST = 120
"""Words of a passage, its title and section among them."""
LEAST_ROOM = 40
"""Words left for the text, however long title and section are."""
SEPARATOR = " › "
"""Between the headings of a section's path."""

_A_PASSAGE = 0.3
"""What each passage costs, beside its cuts and its emptiness, so that few are made."""
_LONGEST_INTRODUCTION = 40
_AN_ASIDE = 8
"""Words. A text so short between two pieces of code is no passage of its own."""


def passages(corpus: str, key: str, page: Page) -> tuple[Passage, ...]:
    """Cut a page into passages, each of one section and one kind, in order."""
    seen: Counter[tuple[str, str]] = Counter()
    made: list[Passage] = []
    for section in page.sections:
        path = SEPARATOR.join(section.path)
        for kind, text in _texts(section, room(page.title, path)):
            ordinal = seen[path, text]
            seen[path, text] += 1
            made.append(
                Passage(
                    id=passage_id(corpus, key, path, text, ordinal),
                    corpus=corpus,
                    document=key,
                    section=path,
                    text=text,
                    position=len(made),
                    hash=passage_hash(page.title, path, text),
                    kind=kind,
                )
            )
    return tuple(made)


def room(title: str, section: str) -> int:
    """How many words of text a passage under this title and section may hold."""
    return max(LARGEST - count_words(title) - count_words(section), LEAST_ROOM)


def _texts(section: Section, words: int) -> Iterator[tuple[Kind, str]]:
    found = [piece for block in _together(section.blocks) for piece in cutting.pieces(block, words)]
    for kind, run in groupby(found, key=lambda piece: piece.kind):
        for chosen in _packed(list(run), words):
            yield kind, _text(chosen)


def _text(chosen: Sequence[Piece]) -> str:
    first, *rest = chosen
    return (first.text + "".join(piece.glue + piece.text for piece in rest)).strip("\n")


def _together(blocks: Sequence[Block]) -> Iterator[Block]:
    """Give code and tables the short text that introduces them, so that no passage says only "Run this:"."""
    for at, block in enumerate(blocks):
        following = blocks[at + 1].kind if at + 1 < len(blocks) else Kind.PROSE
        before = blocks[at - 1].kind if at else Kind.PROSE
        if block.kind is not Kind.PROSE:
            yield block
        elif following is not Kind.PROSE and _introduces(block.text, aside=before is not Kind.PROSE):
            yield Block(block.text, following)
        else:
            yield block


def _introduces(text: str, *, aside: bool) -> bool:
    words = count_words(text)
    return (text.endswith((":", "\uff1a")) and words <= _LONGEST_INTRODUCTION) or (aside and words <= _AN_ASIDE)


def _packed(pieces: Sequence[Piece], words: int) -> Iterator[Sequence[Piece]]:
    """Choose the cheapest way to part the pieces into runs of at most `words`."""
    costs, begins = [0.0], [0]
    for end in range(1, len(pieces) + 1):
        best, begin, held = float("inf"), end - 1, 0
        for start in range(end - 1, -1, -1):
            held += pieces[start].words
            if held > words and start < end - 1:
                break
            cost = costs[start] + _A_PASSAGE + max(1 - held / words, 0) ** 4 + (pieces[start].cut if start else 0)
            if cost < best:
                best, begin = cost, start
        costs.append(best)
        begins.append(begin)
    return _runs(pieces, begins)


def _runs(pieces: Sequence[Piece], begins: Sequence[int]) -> Iterator[Sequence[Piece]]:
    ends = [len(pieces)]
    while ends[-1]:
        ends.append(begins[ends[-1]])
    borders: Iterable[int] = reversed(ends)
    start = next(iter(borders))
    for end in borders:
        yield pieces[start:end]
        start = end
