"""Numbers and dates of clauses that follow one pattern, exchanged: "Jupiter in 1979 and Saturn in 1980".

A value belongs to the words of its own clause. A sentence that has it with all the words that only another clause has,
and with none of its own, tells it of the wrong thing. What an exception exchanges is told by `exceptions`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.support.aligning import Alignment
from pipeline.support.calendar import Date, covers
from pipeline.support.clauses import clauses, exception_of
from pipeline.support.facts import same_number
from pipeline.support.numbers import Number
from pipeline.support.polarity import scopes
from pipeline.support.reading import Reading
from pipeline.support.units import same_unit

_JOINS = frozenset({",", ";", "and", "but", "while", "whereas"})
_COMPARING = frozenset({
    "than", "twice", "as", "like", "unlike", "both", "before", "after", "later", "earlier", "until", "between", "from",
    "to", "through", "ago", "already", "still", "once", "former", "other", "since", "with", "together",
})  # fmt: skip
"""Words by which a sentence may speak of two clauses at once."""
Value = Number | Date


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause that has one value, and the stems of its words of substance in order."""

    value: Value
    words: tuple[str, ...]


def exchanged_values(alignment: Alignment) -> tuple[str, str] | None:
    """Return a value of the sentence that its source says in another clause, and the value that it has instead."""
    ours, theirs = alignment.sentence, alignment.source
    if not _COMPARING.isdisjoint(ours.text.low) or scopes(ours).reached or clauses(ours).hedged:
        return None
    if exception_of(theirs):
        return None
    for values, given in ((ours.dates, theirs.dates), (ours.numbers, theirs.numbers)):
        if len(values) == 1 and len(given) > 1:
            found = _elsewhere(ours, values[0], _parallel(theirs, given, values[0]))
            if found:
                return values[0].said, found.said
    return None


def agree(known: object, said: object) -> bool:
    """Whether two values are numbers or dates, and the first makes the second true."""
    if isinstance(known, Number) and isinstance(said, Number):
        return same_number(known, said)
    return isinstance(known, Date) and isinstance(said, Date) and covers(known, said)


def _elsewhere(ours: Reading, said: Value, listed: Sequence[_Clause]) -> Value | None:
    own = [one for one in listed if agree(one.value, said)]
    if len(own) != 1:
        return None
    known = _only(own[0], listed)
    hit = {key for key in known if key in ours.content}
    if not known or not hit <= set(known[:1]) or hit == set(known):
        return None
    others = [(one.value, _only(one, listed)) for one in listed if one is not own[0]]
    return next((value for value, words in others if words and ours.content.issuperset(words)), None)


def _only(clause: _Clause, listed: Sequence[_Clause]) -> list[str]:
    """Return the words that no other clause has, in order."""
    others = {key for one in listed if one is not clause for key in one.words}
    return [key for key in clause.words if key not in others]


def _parallel(theirs: Reading, given: Sequence[Value], said: Value) -> list[_Clause]:
    """Return the clauses of a sentence that have one value of the kind that is asked about."""
    low = theirs.text.low
    valued = {at for date in theirs.dates for at in range(date.first, date.last)}
    valued |= {at for number in theirs.numbers for at in range(number.first, number.last)}
    ends = [at for at, word in enumerate(low) if word in _JOINS and at not in valued]
    found = []
    for start, end in zip([-1, *ends], [*ends, len(low)], strict=True):
        within = [one for one in given if start < one.first < end and _same_kind(one, said)]
        if len(within) == 1:
            places = [at for at in range(start + 1, end) if at not in valued and theirs.stems[at] in theirs.content]
            found.append(_Clause(within[0], tuple(dict.fromkeys(theirs.stems[at] for at in places))))
    return found


def _same_kind(one: Value, said: Value) -> bool:
    if isinstance(one, Number) and isinstance(said, Number):
        return bool(said.units) and same_unit(one.units, said.units)
    return isinstance(one, Date) and isinstance(said, Date) and one.reach is not None and said.reach is not None
