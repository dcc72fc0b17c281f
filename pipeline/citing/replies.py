"""A language model's reply as sentences, each with the numbers of the evidence it cites; whole or as it arrives.

A mark belongs to the sentence it stands in or behind; one that stands alone, on its own line or below a table or code,
to what was said before. Where a line begins with a mark, those between its sentences belong to the ones that follow, up
to a sentence that has marks inside. Fenced code is one sentence, verbatim, and so is each row of a table. The lead-in
of a list, headings and code are sentences like others: what cites nothing is for the gate to withhold.
A sentence that its marks or addresses leave maimed (`as found in [1] and later`) is given no evidence.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pipeline.citing.cleaning import cleaned
from pipeline.citing.cutting import Cutter, masked
from pipeline.citing.lines import Code, Ended, Event, Lines, Prose, Row
from pipeline.citing.marks import unmarked
from pipeline.citing.parts import eased, is_maimed
from pipeline.citing.styling import unescaped, unstyled
from pipeline.citing.tables import Table
from pipeline.citing.verbatim import put_back, set_aside
from pipeline.types import CitedSentence
from storage.types import Evidence

_WORD = re.compile(r"[^\W_]")
_BEGINS_WITH_WORD = re.compile(r"[\s*_\"“‘«]*[^\W\d_⁰¹²³⁴-⁹]")
_PASSES = 6
_LOOSE = re.compile(r"\s+(?=[.,](?:\s|\Z))")
_EDGES = re.compile(r"\A[:：]\s+|\s#{1,6}\Z|\\\Z")


@dataclass(frozen=True, slots=True)
class Marked:
    """A sentence as it will be said, without marks, links and emphasis, and the numbers that it cites."""

    text: str
    numbers: tuple[int, ...]
    """In the order of its marks, each once, from 1 up to how many pieces of evidence were offered."""
    paragraph: bool
    """Whether it begins a paragraph, an item, a row or a heading; never so for the first."""
    maimed: bool = False
    """Whether it lost a part with its marks or addresses; then it is given no evidence."""


def sentences(reply: str, count: int) -> tuple[Marked, ...]:
    """Return the sentences of a whole reply to which `count` pieces of evidence were offered, numbered from 1."""
    splitter = Splitter(count)
    return splitter.feed(reply) + splitter.close()


def cite(marked: Marked, offered: Sequence[Sequence[Evidence]]) -> CitedSentence:
    """Return a sentence with the evidence it names: `offered[n - 1]` is all that was shown to the model as `[n]`."""
    numbers = () if marked.maimed else marked.numbers
    named = (evidence for number in numbers if number <= len(offered) for evidence in offered[number - 1])
    evidence: list[Evidence] = []
    for one in named:
        if one not in evidence:
            evidence.append(one)
    return CitedSentence(marked.text, tuple(evidence), paragraph=marked.paragraph)


class Splitter:
    """One reply as it arrives: the same sentences as `sentences` of the whole, each as soon as nothing can change it.

    A sentence is certain some fifty characters after its end, or where its line has ended and the next has begun.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._lines = Lines()
        self._cutter = Cutter(count)
        self._table = Table()
        self._held: Marked | None = None
        """The last sentence: marks that stand alone may still follow."""
        self._fronted: bool | None = None
        """Whether marks stand before their sentences in this line; None at its beginning."""
        self._ahead: tuple[int, ...] = ()
        """Numbers for the sentence that follows."""
        self._paragraph = False
        self._first = True

    def feed(self, piece: str) -> tuple[Marked, ...]:
        """Take the next piece of the reply, and return the sentences that it made certain."""
        given = [marked for event in self._lines.feed(piece) for marked in self._taken(event)]
        if self._held and _BEGINS_WITH_WORD.match(self._cutter.begun):
            given.extend(self._released())
        return tuple(given)

    def close(self) -> tuple[Marked, ...]:
        """Return what is left at the reply's end."""
        given = [marked for event in self._lines.close() for marked in self._taken(event)]
        return (*given, *self._ended_table(), *self._released())

    def _taken(self, event: Event) -> Iterator[Marked]:
        if not isinstance(event, Row):
            yield from self._ended_table()
        match event:
            case Prose(text):
                yield from self._running(self._cutter.feed(text))
            case Ended():
                yield from self._running(self._cutter.close())
                self._cites(self._ahead)
                self._fronted, self._ahead, self._paragraph = None, (), True
            case Row(line):
                yield from self._rows(self._table.row(line))
            case Code(text):
                yield from self._said(cleaned(text), ())

    def _ended_table(self) -> Iterator[Marked]:
        yield from self._rows(self._table.end())

    def _rows(self, rows: Iterable[str]) -> Iterator[Marked]:
        for row in rows:
            self._paragraph = True
            yield from self._given([row])
            self._paragraph = True

    def _running(self, raw: Iterable[str]) -> Iterator[Marked]:
        """Say sentences of running text, whose marks may stand before them."""
        for sentence in raw:
            front, body, behind = _parted(sentence, self._count)
            if self._fronted is not False and body:
                inside = said(body, self._count)[1]
                self._fronted = (self._fronted or bool(front.strip())) and not inside
            if not (self._fronted and body and behind[:1].isspace()):
                yield from self._given([sentence])
                continue
            yield from self._given([front + body])
            self._ahead = said(behind, self._count)[1]

    def _given(self, raw: Iterable[str]) -> Iterator[Marked]:
        for sentence in raw:
            text, numbers = said(sentence, self._count)
            if _WORD.search(masked(sentence, self._count)):
                ahead, self._ahead = self._ahead, ()
                yield from self._said(text, tuple(dict.fromkeys(ahead + numbers)))
                if _loses_a_part(sentence, self._count) and self._held:
                    self._held = replace(self._held, maimed=True)
            else:
                self._cites(numbers)

    def _said(self, text: str, numbers: tuple[int, ...]) -> Iterator[Marked]:
        # Before looking whether anything is left: marks that follow a link that was taken out are not the sentence's.
        yield from self._released()
        if _WORD.search(text):
            self._held = Marked(text, numbers, paragraph=self._paragraph and not self._first)
            self._paragraph = self._first = False

    def _cites(self, numbers: tuple[int, ...]) -> None:
        """Add what marks that stand alone name to the last sentence."""
        if self._held:
            self._held = replace(self._held, numbers=tuple(dict.fromkeys(self._held.numbers + numbers)))

    def _released(self) -> Iterator[Marked]:
        if self._held:
            yield self._held
        self._held = None


def _loses_a_part(raw: str, count: int) -> bool:
    prose, _ = set_aside(" ".join(raw.split()))
    return is_maimed(eased(unstyled(prose), count), count)


def _parted(raw: str, count: int) -> tuple[str, str, str]:
    """Return the marks before a sentence, the sentence, and the marks behind its end; joined they are `raw`."""
    text = masked(raw, count)
    end = len(text.rstrip())
    start = min(len(text) - len(text.lstrip()), end)
    return raw[:start], raw[start:end], raw[end:]


def said(raw: str, count: int) -> tuple[str, tuple[int, ...]]:
    """Return one sentence of a reply as it will be said, and the numbers in 1..count that its marks name."""
    text, numbers = raw, dict[int, None]()
    for _ in range(_PASSES):
        before = text
        prose, kept = set_aside(" ".join(cleaned(text).split()))
        prose, named = unmarked(eased(unstyled(prose), count), count)
        numbers.update(dict.fromkeys(named))
        text = put_back(prose, kept)
        if text == before:
            break
    prose, kept = set_aside(text)
    text = put_back(_LOOSE.sub("", unescaped(_EDGES.sub("", prose.strip()))), kept)
    return cleaned(" ".join(text.split())).strip(), tuple(numbers)
