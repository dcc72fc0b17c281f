"""What a sentence says that can be checked by rule, and what became of each: found, absent, or contradicted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pipeline.support.facts import Facts, gather, says_date, says_name, says_number
from pipeline.support.names import names
from pipeline.support.numbers import Number
from pipeline.support.reading import Reading, language_of, read_sentence
from pipeline.support.units import equal, same_kind, same_unit


class Kind(StrEnum):
    """What of a sentence is checked."""

    NUMBER = "number"
    DATE = "date"
    UNIT = "unit"
    NAME = "name"
    NEGATION = "negation"
    COMPARATIVE = "comparative"


class Outcome(StrEnum):
    """What became of it. `CONTRADICTED` only where a passage says something else in its place."""

    FOUND = "found"
    ABSENT = "absent"
    CONTRADICTED = "contradicted"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a sentence says, and whether the passages say it, or what they say instead."""

    kind: Kind
    said: str
    outcome: Outcome
    instead: str = ""

    @property
    def reason(self) -> str:
        """What was found, in words."""
        if self.outcome is Outcome.FOUND:
            return f"the passages say “{self.said}”"
        if self.outcome is Outcome.ABSENT:
            return f"no passage mentions “{self.said}”"
        return f"says “{self.said}”; the passage says “{self.instead}”"


def findings(sentence: str, passages: Sequence[str], *, context: Sequence[str] = ()) -> tuple[Finding, ...]:
    """Look up a sentence's numbers, dates, units and names in the passages, and compare what it denies with them."""
    language = language_of(sentence)
    read = read_sentence(sentence, language)
    facts = gather(passages, context)
    return (*_numbers(read, facts), *_dates(read, facts), *_names(read, facts))


def _dates(sentence: Reading, facts: Facts) -> Iterator[Finding]:
    for date in sentence.dates:
        yield Finding(Kind.DATE, date.said, Outcome.FOUND if says_date(facts, date) else Outcome.ABSENT)


def _names(sentence: Reading, facts: Facts) -> Iterator[Finding]:
    for name in names(sentence):
        yield Finding(Kind.NAME, name.said, Outcome.FOUND if says_name(facts, name) else Outcome.ABSENT)


def _numbers(sentence: Reading, facts: Facts) -> Iterator[Finding]:
    for number in sentence.numbers:
        if _is_claim(number):
            found = says_number(facts, number)
            other = _other_unit(number, facts) if found and number.units else ""
            if other:
                yield Finding(Kind.UNIT, number.said, Outcome.CONTRADICTED, other)
            else:
                yield Finding(Kind.NUMBER, number.said, Outcome.FOUND if found else Outcome.ABSENT)


def _is_claim(number: Number) -> bool:
    """Whether a number must be found: "one", "first" and "half" are said of too much."""
    return number.values not in {(1.0,), (0.5,), (0.0,)} or bool(number.units)


def _other_unit(number: Number, facts: Facts) -> str:
    """Return the quantity that the passages say instead, if they give this number other units only."""
    same = [
        known
        for part in facts.everything
        for known in part.numbers
        if any(value in known.values for value in number.values)
    ]
    if not same or any(not known.units or same_unit(known.units, number.units) for known in same):
        return ""
    kin = [known for known in same if same_kind(known.units, number.units)]
    equals = any(
        equal(value, number.units, other, known.units)
        for part in facts.everything for known in part.numbers for value in number.values for other in known.values
    )  # fmt: skip
    return kin[0].said if kin and not equals else ""
