"""Numbers of a rule and of its exception, exchanged: "27 days, except in Hamburg, where it is 30".

The exception's number may be said only with a word of what is excepted, and of that no number of the rule.
"""

from collections.abc import Iterable, Sequence

from pipeline.support.aligning import Alignment
from pipeline.support.clauses import clauses, exception_of
from pipeline.support.facts import Facts, same_number
from pipeline.support.numbers import Number
from pipeline.support.polarity import scopes
from pipeline.support.reading import Reading
from pipeline.support.tokens import is_mark
from pipeline.support.units import same_unit

Said = tuple[Reading, Number]
"""A number, and the sentence of a passage that has it."""
_ALMOST_ALL = 0.8
"""The share of a sentence's words of substance that a rule must have, to be all that it says."""
_INCLUDING = frozenset({"includ", "even", "also", "peopl", "everybodi", "everyon", "well"})
"""Stems by which a sentence takes in what is excepted."""
_LEADS = frozenset({"every", "each", "per"})
_VAGUE = frozenset({
    "there", "then", "that", "those", "this", "these", "such", "some", "sometimes", "certain", "otherwise", "elsewhere",
    "instead", "than", "usual", "usually", "normal", "normally", "standard", "more", "additional", "additionally",
    "extra", "exception", "exceptions", "special", "depending", "case", "cases", "former", "latter", "most", "both",
})  # fmt: skip
"""Words by which a sentence may mean the exception, or compare it with the rule."""


def exceptional(alignment: Alignment, facts: Facts) -> tuple[str, str] | None:
    """Return a number of a sentence that the source says of something else, and the words that say so."""
    return _dropped_count(alignment) or _exchanged(alignment, facts) or _included(alignment)


def _exchanged(alignment: Alignment, facts: Facts) -> tuple[str, str] | None:
    ours, theirs = alignment.sentence, alignment.source
    stretch = exception_of(theirs)
    if not stretch or not _VAGUE.isdisjoint(ours.text.low) or clauses(ours).hedged or scopes(ours).reached:
        return None
    start, end = stretch
    rule = [(theirs, number) for number in theirs.numbers if number.last < start]
    tail = [(theirs, number) for number in theirs.numbers if number.first >= end]
    before = {theirs.stems[at] for at in range(start - 1)}
    head = {theirs.stems[at] for at in range(start, end)} & theirs.content - before
    named = head & (ours.content | facts.context.stems)
    others = [(source, number) for source in facts.sentences if source is not theirs for number in source.numbers]
    wrong, right = (rule, tail) if named else (tail, rule)
    if not head or (named and not _is_named(theirs, stretch, ours)) or not tail:
        return None
    told = None if _among(ours, [number for _, number in right]) else _only_among(ours, wrong, [*right, *others])
    if told is None or (named and not any(_same_measure(ours, told, one) for one in right)):
        return None
    return ours.text.said(told.first, max(told.last, told.first + 2)), theirs.text.said(start - 1, end)


def _included(alignment: Alignment) -> tuple[str, str] | None:
    """Return what is excepted where a sentence says the rule, its numbers among it, of that very thing."""
    ours, theirs = alignment.sentence, alignment.source
    stretch = exception_of(theirs)
    if not stretch or not _VAGUE.isdisjoint(ours.text.low) or clauses(ours).hedged or clauses(ours).limited:
        return None
    start, end = stretch
    rule = {theirs.stems[at] for at in range(start - 1)} & theirs.content
    head = {theirs.stems[at] for at in range(start, end)} & theirs.content - rule
    tail = {theirs.stems[at] for at in range(end, len(theirs.text))} & theirs.content - rule
    said = ours.content - head - _INCLUDING
    numbers = [number for number in theirs.numbers if number.last < start]
    if not head or not head <= ours.content or said & tail or scopes(ours).reached or scopes(theirs).reached:
        return None
    if (numbers and not _among(ours, numbers)) or len(said & rule) < max(2, _ALMOST_ALL * len(said)):
        return None
    at = next(at for at in range(len(ours.text)) if ours.stems[at] in head)
    return ours.text.said(at, at + 1), theirs.text.said(start - 1, end)


def _is_named(theirs: Reading, stretch: tuple[int, int], ours: Reading) -> bool:
    """Whether a sentence has a name of what is excepted."""
    return any(at in theirs.capitals and theirs.stems[at] in ours.content for at in range(*stretch))


def _among(ours: Reading, numbers: Iterable[Number]) -> bool:
    return any(same_number(known, number) for known in numbers for number in ours.numbers)


def _only_among(ours: Reading, wrong: Sequence[Said], others: Sequence[Said]) -> Number | None:
    """Return the number of a sentence that is, of the same thing, among some of the source's and not among others."""

    def says(number: Number, known: Sequence[Said]) -> bool:
        return any(same_number(one[1], number) and _same_measure(ours, number, one) for one in known)

    return next((number for number in ours.numbers if says(number, wrong) and not says(number, others)), None)


def _same_measure(ours: Reading, said: Number, known: Said) -> bool:
    """Whether a number of the sentence and one of the source have one unit, or count the same.

    A number that ends its clause has the unit that was said before: "it lasts six months, theirs lasts three".
    """
    theirs, given = known
    if said.units and not given.units:
        return is_mark(theirs.text.at(given.last))
    if said.units or given.units:
        return same_unit(said.units, given.units)
    if max(said.last - len(ours.text), given.last - len(theirs.text)) >= 0:
        return False
    return bool(ours.stems[said.last]) and ours.stems[said.last] == theirs.stems[given.last]


def _dropped_count(alignment: Alignment) -> tuple[str, str] | None:
    """Return "every year" where the source has "every five years"."""
    ours, theirs = alignment.sentence, alignment.source
    for number in theirs.numbers:
        unit = theirs.stems[number.last - 1]
        if not number.units or number.values == (1.0,) or theirs.text.at(number.first - 1) not in _LEADS:
            continue
        for at in range(len(ours.text) - 1):
            if ours.text.low[at] in _LEADS and ours.stems[at + 1] == unit and not _among(ours, [number]):
                return ours.text.said(at, at + 2), theirs.text.said(number.first - 1, number.last)
    return None
