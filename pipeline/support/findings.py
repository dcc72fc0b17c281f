"""What a sentence says that can be checked by rule, and what became of each: found, absent, or contradicted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pipeline.support.absence import missing
from pipeline.support.aligning import Alignment, align
from pipeline.support.comparing import CLOSE, date_instead, meant_by, name_instead, number_instead, unit_instead
from pipeline.support.exceptions import exceptional
from pipeline.support.facts import Facts, counts_list, counts_name, equal_quantities, gather, says_date, says_number
from pipeline.support.names import Name, names
from pipeline.support.naming import says_name
from pipeline.support.numbers import Number
from pipeline.support.parallel import exchanged_values
from pipeline.support.polarity import denials
from pipeline.support.rates import rate_instead
from pipeline.support.reading import Reading, language_among, language_of, read_sentence
from pipeline.support.roles import exchanged, misdescribed
from pipeline.support.tables import joined_rows
from pipeline.support.units import same_kind, same_unit
from storage.types import Reason


class Kind(StrEnum):
    """What of a sentence is checked."""

    NUMBER = "number"
    DATE = "date"
    UNIT = "unit"
    NAME = "name"
    NEGATION = "negation"
    COMPARATIVE = "comparative"


class Outcome(StrEnum):
    """What became of it. `CONTRADICTED` only where a passage says something else in its place.

    `UNNAMED` is a name that is absent where a passage begins with "she" or "the film" and so may mean it.
    """

    FOUND = "found"
    ABSENT = "absent"
    CONTRADICTED = "contradicted"
    UNNAMED = "unnamed"


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
        if self.outcome is Outcome.UNNAMED:
            return f"no passage names “{self.said}”, unless it is meant by “{self.instead}”"
        if self.outcome is Outcome.ABSENT:
            return f"no passage mentions “{self.said}”"
        return f"says “{self.said}”; the passage says “{self.instead}”"

    @property
    def because(self) -> Reason:
        """The same, to be said in any language."""
        return Reason(self.outcome.value, (self.said, self.instead) if self.instead else (self.said,))


def findings(sentence: str, passages: Sequence[str], *, context: Sequence[str] = ()) -> tuple[Finding, ...]:
    """Look up a sentence's numbers, dates, units and names in the passages, and compare what it denies with them.

    `context` holds words from outside the passages that count as said in them: the titles of their pages, aliases.
    """
    facts = gather(passages, context, language_of(sentence))
    read = read_sentence(sentence, language_among(sentence, facts.passages))
    alignment = align(read, facts)
    return (
        *_numbers(read, facts, alignment),
        *_dates(read, facts, alignment),
        *_names(read, facts, alignment),
        *_denials(alignment),
        *_misplaced(facts, alignment),
    )


def _dates(sentence: Reading, facts: Facts, alignment: Alignment | None) -> Iterator[Finding]:
    for date in sentence.dates:
        found = says_date(facts, date)
        instead = date_instead(alignment, date, elsewhere=found) if alignment else ""
        yield _finding(Kind.DATE, date.said, instead, found=found)


def _names(sentence: Reading, facts: Facts, alignment: Alignment | None) -> Iterator[Finding]:
    for name in names(sentence):
        found = says_name(facts, name)
        instead = name_instead(alignment, name, elsewhere=found) if alignment else ""
        meant = _meant(alignment, name, facts) if alignment and name.sure and not found and not instead else ""
        if meant:
            yield Finding(Kind.NAME, name.said, Outcome.UNNAMED, meant)
        elif name.sure or instead:
            yield _finding(Kind.NAME, name.said, instead, found=found)


def _meant(alignment: Alignment, name: Name, facts: Facts) -> str:
    """Return the pronoun that may mean a name; none where the context or an earlier sentence names somebody else."""
    within = next(part.sentences for part in facts.passages if alignment.source in part.sentences)
    return "" if facts.context.words else meant_by(alignment, name, within[: within.index(alignment.source)])


def _numbers(sentence: Reading, facts: Facts, alignment: Alignment | None) -> Iterator[Finding]:
    for number in sentence.numbers:
        claim = _is_claim(number)
        found = not claim or says_number(facts, number) or _counts(facts, number, sentence)
        instead = number_instead(alignment, number, elsewhere=found) if alignment else ""
        other = _other_unit(number, facts, alignment) if found and number.units else ""
        other = other or (rate_instead(alignment, number) if alignment and found else "")
        if other and not instead:
            yield Finding(Kind.UNIT, number.said, Outcome.CONTRADICTED, other)
        elif claim or instead:
            yield _finding(Kind.NUMBER, number.said, instead, found=found)


def _counts(facts: Facts, number: Number, sentence: Reading) -> bool:
    """Whether a number need not be said, as it only numbers a name or counts what the sentence lists."""
    return counts_name(facts, number, sentence) or counts_list(number, sentence)


def _denials(alignment: Alignment | None) -> Iterator[Finding]:
    if alignment and alignment.coverage >= CLOSE:
        for one in denials(alignment):
            kind = Kind.COMPARATIVE if one.comparative else Kind.NEGATION
            yield Finding(kind, one.said, Outcome.CONTRADICTED, one.instead)
        turned = exchanged(alignment)
        if turned:
            yield Finding(Kind.NAME, turned[0], Outcome.CONTRADICTED, turned[1])


def _misplaced(facts: Facts, alignment: Alignment | None) -> Iterator[Finding]:
    """Yield what the passages say, but of something else."""
    if alignment:
        swapped = exchanged_values(alignment)
        dated = swapped and any(date.said == swapped[0] for date in alignment.sentence.dates)
        told = (
            (Kind.NAME, joined_rows(alignment, facts)),
            (Kind.NAME, misdescribed(alignment)),
            (Kind.NEGATION, missing(alignment)),
            (Kind.NUMBER, exceptional(alignment, facts)),
            (Kind.DATE if dated else Kind.NUMBER, swapped),
        )
        yield from (Finding(kind, one[0], Outcome.CONTRADICTED, one[1]) for kind, one in told if one)


def _finding(kind: Kind, said: str, instead: str, *, found: bool) -> Finding:
    outcome = Outcome.CONTRADICTED if instead else Outcome.FOUND if found else Outcome.ABSENT
    return Finding(kind, said, outcome, instead)


def _is_claim(number: Number) -> bool:
    """Whether a number must be found: "one", "first" and "half" are said of too much."""
    return number.values not in {(1.0,), (0.5,), (0.0,)} or bool(number.units)


def _other_unit(number: Number, facts: Facts, alignment: Alignment | None) -> str:
    """Return the quantity that the source says instead, or all passages do, if they give this number other units."""
    instead = unit_instead(alignment, number) if alignment else ""
    if instead:
        return instead
    same = [
        known
        for part in facts.everything
        for known in part.numbers
        if not known.ordinal and any(value in known.values for value in number.values)
    ]
    if not same or any(not known.units or same_unit(known.units, number.units) for known in same):
        return ""
    kin = [known for known in same if same_kind(known.units, number.units)]
    equals = any(equal_quantities(known, number) for part in facts.everything for known in part.numbers)
    return kin[0].said if kin and not equals else ""
