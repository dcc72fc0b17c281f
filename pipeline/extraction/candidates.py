"""What could be quoted: the sentences, list items and table rows of the passages that were found. Pure.

A line that ends in a colon announces what follows: it is a candidate together with its list, and each item is one by
itself too, read together with the line that announces it. A question is no answer by itself, but belongs to the
sentence after it. Code is offered only where nothing else was found.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.spans import in_list, quotable_spans
from storage.language.words import count_words
from storage.types import Evidence, Hit, Kind, Span

SHORTEST = 5
"""Words. A line of prose with fewer says something only if it ends like a sentence, has a figure, or was announced."""
_STOP = (".", "!", "…", "。", "！", "।", "۔", ";", "；")
_COLON = (":", "：")
_QUESTION = ("?", "？", "؟")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stretch of a found passage that could be quoted."""

    hit: Hit
    rank: int
    """The place of its passage among the hits, from 0."""
    span: Span
    lead: str = ""
    """The line that announces the list of which it is an item."""

    @property
    def text(self) -> str:
        """The words themselves, verbatim."""
        return self.hit.passage.text[slice(*self.span)]

    @property
    def context(self) -> str:
        """The words with what is above them: title, section, and the line that leads to them."""
        above = (self.hit.document.title, self.hit.passage.section, self.lead, self.text)
        return "\n".join(part for part in above if part)

    @property
    def evidence(self) -> Evidence:
        """The candidate as evidence for itself."""
        return Evidence(self.text, self.hit.passage, self.hit.document, self.span)


def candidates(hits: Sequence[Hit]) -> tuple[Candidate, ...]:
    """Return what could be quoted from the hits, passage by passage and in the order of the text."""
    ranked = list(enumerate(hits))
    prose = [(rank, hit) for rank, hit in ranked if hit.passage.kind is not Kind.CODE]
    return tuple(found for rank, hit in prose or ranked for found in _of_passage(rank, hit))


def _of_passage(rank: int, hit: Hit) -> Iterator[Candidate]:
    text, spans = hit.passage.text, quotable_spans(hit.passage)
    lead, asked_at = "", -1
    for place, (start, end) in enumerate(spans):
        words = text[start:end]
        lead = lead if in_list(text, (start, end)) else ""
        begin, asked_at = (asked_at if asked_at >= 0 else start), -1
        if words.endswith(_QUESTION):
            asked_at = begin
        elif words.endswith(_COLON):
            yield Candidate(hit, rank, (begin, _end_of_list(text, spans[place:])))
            lead = words
        elif lead or begin < start or _says_something(words, hit.passage.kind):
            yield Candidate(hit, rank, (begin, end), lead)


def _says_something(words: str, kind: Kind) -> bool:
    """Return whether a line is more than a heading or the text of a link."""
    ends = words.rstrip("\"'”’»)*_").endswith(_STOP)
    return bool(_LETTER.search(words)) and (
        ends or kind is not Kind.PROSE or count_words(words) >= SHORTEST or any(map(str.isdigit, words))
    )


def _end_of_list(text: str, spans: Sequence[Span]) -> int:
    """Return where the list ends that the first span announces: its last item, or what follows if that is no list."""
    end = next((stop for _, stop in spans[1:]), spans[0][1])
    for span in spans[2:]:
        if not (in_list(text, span) and in_list(text, spans[1])):
            break
        end = span[1]
    return end
