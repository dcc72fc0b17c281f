"""What a sentence says is not there, and its source speaks of: "Vik has no council", "in Vik, where the council says".

Unlike `polarity` it needs no word of the source in the place of the negation.
"""

from pipeline.support.aligning import Alignment
from pipeline.support.polarity import scopes
from pipeline.support.reading import Reading

_BEING = frozenset({"has", "have", "had", "is", "are", "was", "were"})
_KNOWN = frozenset({"the", "its", "their", "our"})
"""Words that speak of something as of what is there."""


def missing(alignment: Alignment) -> tuple[str, str] | None:
    """Return what a sentence says is not there, and the words of its source that say it is; English only."""
    ours, theirs = alignment.sentence, alignment.source
    if ours.language not in {"en", ""} or not ours.content <= theirs.content or scopes(theirs).reached:
        return None
    for at in range(1, len(ours.text) - 1):
        if ours.text.low[at] == "no" and ours.text.low[at - 1] in _BEING:
            end = _phrase_end(ours, at + 1)
            start = _spoken_of(theirs, ours.stems[at + 1 : end])
            if end > at + 1 and start is not None:
                return ours.text.said(at - 1, end), theirs.text.said(start, start + end - at)
    return None


def _phrase_end(reading: Reading, start: int) -> int:
    """Return where the words of substance end that begin at a token."""
    ends = (at for at in range(start, len(reading.text)) if reading.stems[at] not in reading.content)
    return next(ends, len(reading.text))


def _spoken_of(source: Reading, phrase: tuple[str, ...]) -> int | None:
    """Return the article with which the source speaks of a thing."""
    size = len(phrase)
    places = (at for at in range(len(source.text) - size) if source.text.low[at] in _KNOWN)
    return next((at for at in places if source.stems[at + 1 : at + 1 + size] == phrase), None)
