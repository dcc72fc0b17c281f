"""Who does it to whom: two names that have changed places around the same words.

"A beat B" is no paraphrase of "B beat A"; "B was beaten by A" is. So the words between the two names must be the same
on both sides, those that turn a relation round ("by", "of", a possessive) among them, and the relation must not be
one that holds both ways ("met", "married").
"""

from collections.abc import Sequence
from itertools import combinations

from pipeline.support.aligning import Alignment
from pipeline.support.names import Name, names
from pipeline.support.reading import Reading, without_possessive

Span = tuple[int, int]
_LEAST_COVERAGE = 0.8
_MOST_NAMES = 10
_MOST_BETWEEN = 8
"""Tokens between two names, beyond which they stand in no relation."""
_ARTICLES = frozenset({"a", "an", "the"})
_TURNING = frozenset({
    "by", "of", "from", "to", "in", "into", "on", "at", "for", "with", "than", "as", "under", "over", "against",
    "that", "which", "who", "whom", "'s",
})  # fmt: skip
_BOTH_WAYS = frozenset({
    "meet", "marri", "wed", "marriag", "and", "or", "nor", "with", "between", "versus", "vs", "equal", "differ",
    "resembl", "border", "neighbor", "neighbour", "cooper", "collabor", "share", "friend", "sibl", "cousin", "twin",
    "twinn", "tie", "drew", "draw", "together", "both", "either", ",", ";", "(", ")",
})  # fmt: skip


def exchanged(alignment: Alignment) -> tuple[str, str] | None:
    """Return two stretches, of the sentence and of its source, in which two names stand the other way round."""
    if alignment.coverage < _LEAST_COVERAGE:
        return None
    ours, theirs = alignment.sentence, alignment.source
    for one, two in combinations(names(ours)[:_MOST_NAMES], 2):
        if set(one.parts).isdisjoint(two.parts):
            turned = _turned(ours, (one.first, one.last), (two.first, two.last), theirs, _pairs(theirs, one, two))
            if turned:
                return ours.text.said(one.first, two.last), theirs.text.said(*turned)
    return None


def misdescribed(alignment: Alignment) -> tuple[str, str] | None:
    """Return how a sentence describes a name behind a comma, and the name that its source describes so.

    "Ebb, a pilot" is none of "Tolliver, a clockmaker, and Ebb, a pilot"; "Ebb, a clockmaker" is one.
    """
    theirs = _described(alignment.source)
    for name, words, said in _described(alignment.sentence):
        same = [(other, there) for other, known, there in theirs if words <= known]
        named = any(not set(name.parts).isdisjoint(other.parts) for other, _ in same)
        other = any(not set(name.parts).isdisjoint(other.parts) for other, _, _ in theirs)
        if same and other and not named:
            return said, same[0][1]
    return None


def _described(reading: Reading) -> list[tuple[Name, frozenset[str], str]]:
    """Return each name with the words of substance that stand behind it between commas, and all of that as text."""
    found = []
    low = reading.text.low
    for name in names(reading)[:_MOST_NAMES]:
        start = name.last + 1
        if low[name.last : start] != (",",) or reading.text.at(start) not in _ARTICLES:
            continue
        end = next((at for at in range(start, len(low)) if low[at] in {",", ";", "."}), len(low))
        words = frozenset(reading.stems[start + 1 : end]) & reading.content
        if words and end - start <= _MOST_BETWEEN:
            found.append((name, words, reading.text.said(name.first, end)))
    return found


def _turned(ours: Reading, one: Span, two: Span, theirs: Reading, pairs: Sequence[tuple[Span, Span]]) -> Span | None:
    """Return where the source has two names the other way round: around the same words, or each led to by the same.

    Not where it has them this way round as well.
    """
    between, leads = _between(ours, one[1], two[0]), (_lead(ours, one[0]), _lead(ours, two[0]))
    led = leads[0] != leads[1] and "" not in leads and _BOTH_WAYS.isdisjoint(leads)
    found = None
    for there, here in pairs:
        first, second = sorted((there, here))
        same = between is not None and between == _between(theirs, first[1], second[0])
        if same or (led and leads == (_lead(theirs, first[0]), _lead(theirs, second[0]))):
            if first == there:
                return None
            found = (first[0], second[1])
    return found


def _pairs(reading: Reading, one: Name, two: Name) -> list[tuple[Span, Span]]:
    """Return where a sentence says one name and another."""
    return [(first, second) for first in _places(reading, one) for second in _places(reading, two) if first != second]


def _lead(reading: Reading, place: int) -> str:
    """Return the word before a name, articles left out."""
    while place and reading.text.low[place - 1] in {"the", "a", "an"}:
        place -= 1
    return reading.stems[place - 1] if place else ""


def may_turn(alignment: Alignment) -> bool:
    """Whether a name in another place means something else: no passive for an active, nothing that holds both ways."""
    ours, theirs = alignment.sentence, alignment.source
    return ours.content.isdisjoint(_BOTH_WAYS) and ours.text.low.count("by") == theirs.text.low.count("by")


def _between(reading: Reading, start: int, end: int) -> tuple[frozenset[str], tuple[str, ...]] | None:
    """Return the stems of substance between two places and the words that give a relation its direction.

    None where there is nothing, too much, or what holds both ways.
    """
    low = reading.text.low[start:end]
    stems = frozenset(reading.stems[at] for at in range(start, end) if at not in reading.capitals) & reading.content
    if not stems or len(low) > _MOST_BETWEEN or not _BOTH_WAYS.isdisjoint({*stems, *low}):
        return None
    possessive = ("'s",) if start and reading.text.low[start - 1].endswith("'s") else ()
    return stems, (*possessive, *(word for word in low if word in _TURNING))


def _places(reading: Reading, name: Name) -> list[Span]:
    """Return where a sentence says a name, its last word or all of it."""
    found: list[Span] = []
    low = [without_possessive(word) for word in reading.text.low]
    for place in sorted(reading.capitals):
        if low[place] == name.parts[-1]:
            first = place
            while first and (low[first - 1] in name.parts or (first > 1 and low[first - 2] in name.parts)):
                first -= 1
            found.append((first, place + 1))
    return found
