"""What a passage sentence says in the place of a number, date or name: the values of two aligned sentences compared."""

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Protocol, TypeVar

from pipeline.support.aligning import Alignment, Gap
from pipeline.support.calendar import Date, covers
from pipeline.support.clauses import clause_around
from pipeline.support.facts import same_number
from pipeline.support.known_names import forms, is_people, known_names, root
from pipeline.support.names import Name, names
from pipeline.support.numbers import Number
from pipeline.support.parallel import agree
from pipeline.support.polarity import scopes
from pipeline.support.reading import Reading, is_row, without_possessive
from pipeline.support.roles import may_turn
from pipeline.support.units import same_kind, same_unit

CLOSE = 0.6
"""The share of a sentence's words that the source must have, to contradict what no passage says."""
CLOSER = 0.8
"""The same, to contradict what the passages do say, but elsewhere."""
_NEAR = 10
"""How many tokens may stand between a value of the source and the words around it that the sentence has, too."""
_SHORT_FORM = 3
_ALIKE = 0.75
"""The share of letters in order that two spellings of one word have in common."""


class Placed(Protocol):
    """What has tokens."""

    @property
    def said(self) -> str:
        """Its text."""
        ...

    @property
    def first(self) -> int:
        """Its first token."""
        ...

    @property
    def last(self) -> int:
        """The token after its last."""
        ...


T = TypeVar("T", bound=Placed)
_PRONOUNS = frozenset({"he", "she", "it", "they", "him", "her", "them", "his", "hers", "its", "their", "theirs"})
_DEFINITE = frozenset({"the", "this", "these"})


def number_instead(alignment: Alignment, number: Number, *, elsewhere: bool) -> str:
    """Return the number that the source has in a number's place; empty where it has none, or one that agrees."""
    return _instead(alignment, number, alignment.source.numbers, _numbers_conflict, elsewhere=elsewhere)


def unit_instead(alignment: Alignment, number: Number) -> str:
    """Return the quantity that the source has in a number's place: the same number in a unit that makes it another."""
    start, end = alignment.place_of(number.first, number.last).given
    same = [
        given
        for given in alignment.source.numbers
        if start <= given.first and given.last <= end and given.values[0] == number.values[0] and given.units
    ]
    different = all(same_kind(given.units, number.units) and not same_unit(given.units, number.units) for given in same)
    close = alignment.coverage_without(number.first, number.last) >= CLOSER
    return same[0].said if same and different and close else ""


def date_instead(alignment: Alignment, date: Date, *, elsewhere: bool) -> str:
    """Return the date that the source has in a date's place."""
    return _instead(alignment, date, alignment.source.dates, _dates_conflict, elsewhere=elsewhere)


def name_instead(alignment: Alignment, name: Name, *, elsewhere: bool) -> str:
    """Return the name that the source has in a name's place, where it shares no word with it.

    In the row of a table the order of values says nothing, and its labels are none (see `tables`).
    """
    if is_row(alignment.source.text.text):
        return ""
    place = _place(alignment, name, elsewhere=elsewhere, phrase=True)
    ours, theirs = alignment.sentence, alignment.source
    if place is None or not place.tight or _is_list(alignment, place):
        return ""
    if not theirs.content.isdisjoint(ours.stems[name.first : name.last]) and not may_turn(alignment):
        return ""
    given = _named_there(alignment, name, place)
    words = [without_possessive(theirs.text.low[at]) for at in given]
    if not given or _abbreviates(name.parts, words) or _abbreviates(words, name.parts):
        return ""
    new = [word for word in name.parts if not any(_same_word(word, other) for other in words)]
    old = [word for word in words if not any(_same_word(word, other) for other in name.parts)]
    return theirs.text.said(given[0], given[-1] + 1) if new and old else ""


def _named_there(alignment: Alignment, name: Name, place: Gap) -> list[int]:
    """Return the words of a name that stands in another's place; nothing else of substance may stand there.

    One people in the place of another is enough, whatever else stands there: "a French film", "a 1980 Danish film".
    """
    ours, theirs = alignment.sentence, alignment.source
    given = [at for at in range(*place.given) if at in theirs.capitals and _is_substance(theirs, at)]
    peoples = [at for at in given if is_people(theirs.text.low[at])] if is_people(name.parts[-1]) else []
    if peoples:
        return peoples
    more = any(_is_substance(theirs, at) for at in range(*place.given) if at not in given)
    beside = {at for at in range(*place.said) if not name.first <= at < name.last} - ours.capitals
    return [] if more or any(_is_substance(ours, at) for at in beside) else given


def meant_by(alignment: Alignment, name: Name, earlier: Sequence[Reading]) -> str:
    """Return the word by which the source may mean a name that no passage says: "she", "the film".

    Only where the sentences before it, `earlier`, name nobody whom that word could mean.
    """
    theirs = alignment.source.text
    first, last = alignment.place_of(name.first, name.last).given
    if any(names(sentence) for sentence in earlier) or first >= len(theirs):
        return ""
    pronoun = next((low for low in theirs.low[first:last] if low in _PRONOUNS), "")
    if pronoun or first > 0 or theirs.low[0] not in _DEFINITE or 1 in alignment.source.capitals:
        return pronoun
    return theirs.said(0, min(2, len(theirs)))


def _is_list(alignment: Alignment, place: Gap) -> bool:
    """Whether what stands in a sentence's last place goes on as a list of names, of which it may say others."""
    source, end = alignment.source, place.given[1]
    return (
        place.said[1] == len(alignment.sentence.text)
        and source.text.at(end) in {",", "and", "&"}
        and end + 1 in source.capitals
    )


def _instead(
    alignment: Alignment, said: T, given: Sequence[T], conflict: Callable[[T, T], bool], *, elsewhere: bool
) -> str:
    place = None if elsewhere and is_row(alignment.source.text.text) else _place(alignment, said, elsewhere=elsewhere)
    if place is None or (elsewhere and not place.tight) or not _is_anchored(alignment, said):
        return ""
    start, end = place.given
    there = [one for one in given if start <= one.first and one.last <= end]
    if not there or not all(conflict(one, said) for one in there):
        return ""
    if not all(conflict(one, said) for one in given) and _has_more(alignment, place, said, there[0]):
        return ""
    if _is_said_apart(alignment, said, given, there[0]):
        return ""
    near = there[0].first - start <= _NEAR or end - there[-1].last <= _NEAR
    return there[0].said if near else ""


def _is_said_apart(alignment: Alignment, said: Placed, given: Sequence[Placed], other: Placed) -> bool:
    """Whether the source has a value in a clause that has more of the sentence's words than the clause of another.

    A sentence that says the other value as well may have exchanged the two.
    """
    ours, theirs = alignment.sentence, alignment.source
    if any(agree(other, one) for one in (*ours.numbers, *ours.dates)):
        return False
    same = [one for one in given if agree(one, said)]
    told = ours.content & theirs.content - {theirs.stems[at] for one in same for at in range(one.first, one.last)}
    beside = told & clause_around(theirs, other.first, other.last)
    return any(told & clause_around(theirs, one.first, one.last) - beside for one in same)


def _is_anchored(alignment: Alignment, said: Placed) -> bool:
    """Whether the source has the word of substance before a value, or the word right behind it.

    Of a value that begins the sentence, the next word of substance.
    """
    matched = {place for place, _ in alignment.pairs}
    words = [at for at in range(len(alignment.sentence.text)) if _is_substance(alignment.sentence, at)]
    before = [at for at in words if at < said.first] or [at for at in words if at >= said.last][:1]
    return said.last in matched or not before or before[-1] in matched


def _has_more(alignment: Alignment, place: Gap, said: Placed, given: Placed) -> bool:
    """Whether anything of substance stands in a place beside the two values."""
    ours, theirs = alignment.sentence, alignment.source
    return any(_is_substance(ours, at) for at in range(*place.said) if not said.first <= at < said.last) or any(
        _is_substance(theirs, at) for at in range(*place.given) if not given.first <= at < given.last
    )


def _place(alignment: Alignment, said: Placed, *, elsewhere: bool, phrase: bool = False) -> Gap | None:
    """Return the place of something in the source; None where the two follow each other too loosely to tell."""
    if alignment.coverage_without(said.first, said.last) < (CLOSER if elsewhere else CLOSE):
        return None
    if not _is_same_relation(alignment, said):
        return None
    place = alignment.place_of(said.first, said.last, phrase=phrase)
    theirs = scopes(alignment.source)
    denied = scopes(alignment.sentence).denies(said.first) and not any(map(theirs.denies, range(*place.given)))
    return None if denied else place


def _is_same_relation(alignment: Alignment, said: Placed) -> bool:
    """Whether the source has most of what the sentence says in small letters: what was done, not only who and where."""
    ours = alignment.sentence
    words = [
        ours.stems[at]
        for at in range(len(ours.text))
        if at not in ours.capitals and not said.first <= at < said.last and _is_substance(ours, at)
    ]
    told = [word for word in words if word[0].isalpha()]
    return sum(word in alignment.source.content for word in told) >= CLOSE * len(told)


def _is_substance(reading: Reading, place: int) -> bool:
    low = reading.text.low[place]
    return bool(reading.stems[place]) and low not in known_names().titles and reading.stems[place] in reading.content


def _numbers_conflict(given: Number, said: Number) -> bool:
    if given.ordinal != said.ordinal or same_number(given, said):
        return False
    return not given.units or not said.units or same_kind(given.units, said.units)


def _dates_conflict(given: Date, said: Date) -> bool:
    """Whether two dates cannot be the same: a part that both have differs."""
    if covers(given, said) or covers(said, given):
        return False
    one, two = given.reach, said.reach
    apart = one is not None and two is not None and (one[1] < two[0] or two[1] < one[0])
    parts = ((given.month, said.month), (given.day, said.day), (given.weekday, said.weekday))
    return apart or any(a is not None and b is not None and a != b for a, b in parts)


def _same_word(one: str, two: str) -> bool:
    """Whether two words of names may be one, spelt differently or cut short: "Aleksandr", "Con"."""
    if not forms(one).isdisjoint(forms(two)) or root(one) == root(two):
        return True
    shorter, longer = sorted((one, two), key=len)
    if len(shorter) >= _SHORT_FORM and longer.startswith(shorter):
        return True
    return one[0] == two[0] and SequenceMatcher(None, one, two).ratio() >= _ALIKE


def _abbreviates(short: Sequence[str], words: Sequence[str]) -> bool:
    """Whether a name's first word is the first letters of other words."""
    return len(words) > 1 and short[0].replace(".", "") == "".join(word[0] for word in words)
