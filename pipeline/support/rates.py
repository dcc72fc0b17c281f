"""Rates: "45 euros a day", and the same amount of another period. What a number itself measures is told by `units`."""

from pipeline.support.aligning import Alignment
from pipeline.support.facts import same_number
from pipeline.support.numbers import Number
from pipeline.support.reading import Reading
from pipeline.support.units import Unit, same_kind, same_unit, units_at

_PER = frozenset({"a", "an", "per", "each", "every", "/", "pro", "je", "par", "por"})
_CLOSE = 0.6
"""The share of the sentence's other words that the source must have."""


def rate_instead(alignment: Alignment, number: Number) -> str:
    """Return the rate that the source has where the sentence says the same amount of another period; else nothing."""
    said = _period(alignment.sentence, number)
    if not said or alignment.coverage_without(number.first, number.last + 2) < _CLOSE:
        return ""
    same = [one for one in alignment.source.numbers if same_number(one, number) and same_unit(one.units, number.units)]
    given = [_period(alignment.source, one) for one in same]
    if not same or not all(period and same_kind(period, said) and not same_unit(period, said) for period in given):
        return ""
    return alignment.source.text.said(same[0].first, same[0].last + 2)


def _period(reading: Reading, number: Number) -> tuple[Unit, ...]:
    """Return the period that a number with a unit is said of; nothing where there is none."""
    text, at = reading.text, number.last
    if not number.units or text.at(at) not in _PER or not text.at(at + 1):
        return ()
    units, last = units_at(text, at, at + 1)
    return units if last == at + 2 and any(unit.measures == "time" for unit in units) else ()
