"""What some passages say together, and whether a number, date or name of a sentence is among it."""
# ruff: noqa: PLR2004 - two words are more than one

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.support.calendar import Date, covers
from pipeline.support.numbers import Bound, Number
from pipeline.support.numerals import numerals
from pipeline.support.reading import PassageReading, Reading, read_passage
from pipeline.support.units import conversions, equal, same_unit

_LEAST_GLUED = 6
_ROUGHLY = 0.1
"""How far, as a share, "about" may be from the number; "over", "nearly" and "under" twice as far."""
_ACRONYM = re.compile(r"[a-z]{2,6}")


@dataclass(frozen=True, slots=True)
class Facts:
    """The passages that a sentence cites; `context` is read like a passage, but is no evidence of a sentence."""

    passages: tuple[PassageReading, ...]
    context: PassageReading

    @property
    def everything(self) -> tuple[PassageReading, ...]:
        """The passages and the context."""
        return (*self.passages, self.context)

    @property
    def sentences(self) -> tuple[Reading, ...]:
        """The sentences of the passages."""
        return tuple(sentence for passage in self.passages for sentence in passage.sentences)


def gather(passages: Sequence[str], context: Sequence[str] = (), language: str = "") -> Facts:
    """Read passages, and words from outside them that count as said; `language` is that of the question."""
    return Facts(tuple(read_passage(text, language) for text in passages), read_passage("\n".join(context), language))


def says_date(facts: Facts, date: Date) -> bool:
    """Whether the passages say a date, at least as precisely.

    A full date may be said in two parts, the year elsewhere; but not where its day and month stand in another year.
    """
    known = [known for part in facts.everything for known in part.dates]
    if any(covers(source, date) for source in known):
        return True
    if date.year is not None and date.month is None:
        return any(float(date.year) in number.values for part in facts.everything for number in part.numbers)
    if date.year is None or not any(source.year == date.year for source in known):
        return False
    return any(
        source.year is None and source.month == date.month and date.day in {None, source.day} for source in known
    )


def says_number(facts: Facts, number: Number) -> bool:
    """Whether the passages say a number, whatever its unit, or another that its bound or its unit makes the same."""
    return any(same_number(known, number) for part in facts.everything for known in part.numbers) or any(
        _said_otherwise(part, number) for part in facts.everything
    )


def same_number(known: Number, number: Number) -> bool:
    """Whether a number of the passages makes one of the sentence true."""
    if any(value in known.values for value in (*number.values, *number.halves)):
        return True
    if number.units and known.units and equal_quantities(known, number):
        return True
    return number.bound is not Bound.EXACTLY and not known.ordinal and _within_bound(known, number)


def equal_quantities(known: Number, number: Number) -> bool:
    """Whether two quantities are the same in different units."""
    return equal(number.values[0], number.units, known.values[0], known.units)


def _within_bound(known: Number, number: Number) -> bool:
    """Whether a number lies where "about", "over" or "nearly" puts it: the sentence says it more roughly, no more."""
    if number.units and known.units and not same_unit(number.units, known.units):
        return any(
            _rounds(converted, value, number.bound)
            for value in number.values
            for other in known.values
            for converted in conversions(other, known.units, number.units)
        )
    return any(
        _figures(value) < _figures(other) and _rounds(other, value, number.bound)
        for value in number.values
        for other in known.values
    )


def _rounds(exact: float, rough: float, bound: Bound) -> bool:
    """Whether `rough` is `exact` rounded as the bound says."""
    if bound is Bound.ABOUT:
        return abs(exact - rough) <= _ROUGHLY * abs(exact)
    if bound is Bound.OVER:
        return rough < exact <= rough * (1 + 2 * _ROUGHLY)
    return exact < rough <= exact * (1 + 2 * _ROUGHLY)


def _figures(value: float) -> int:
    """Count the figures of a number that tell: 3 of 1250."""
    return len(f"{value:.9g}".replace(".", "").split("e")[0].strip("0")) if value else 1


def counts_name(facts: Facts, number: Number, sentence: Reading) -> bool:
    """Whether a number only tells one of a name from another ("Henry II", "the 14th Dalai Lama") and need not be said.

    So it is where the passages say the name it belongs to, and never with a number.
    """
    after = sentence.text.at(number.last) if number.last in sentence.capitals else ""
    before = sentence.text.at(number.first - 1) if number.first - 1 in sentence.capitals else ""
    named = before if sentence.text.words[number.first].isupper() else after
    if not number.ordinal or not named:
        return False
    said = [(one, place) for one in facts.sentences for place, low in enumerate(one.text.low) if low == named]
    return bool(said) and not any(
        known.first - 3 <= place <= known.last + 2 for one, place in said for known in one.numbers if known.ordinal
    )


def counts_list(number: Number, sentence: Reading) -> bool:
    """Whether a number only counts what the sentence lists: "three islands: Vik, Lundey and Skarholm"."""
    low = sentence.text.low
    if ":" not in low[number.last :] or number.ordinal or number.units:
        return False
    listed = " ".join(low[low.index(":", number.last) + 1 :]).replace(", and ", " , ").replace(" and ", " , ")
    return float(len([item for item in listed.strip(" .!").split(" , ") if item])) in number.values


def _said_otherwise(part: PassageReading, number: Number) -> bool:
    """Whether words say the number: "twice", "both"; or a year or a share does."""
    hints = numerals(part.sentences[0].language if part.sentences else "en").hints
    for value in number.values:
        if value <= 1000 and any(hints[word] == value for word in part.words & hints.keys()):
            return True
        if any(date.year == value or (number.ordinal and date.day == value) for date in part.dates):
            return True
    shares = {value / 100 for value in number.values} if any(unit.name == "%" for unit in number.units) else set()
    return any(value in known.values for known in part.numbers for value in shares)
