"""Units and currencies: another one of the same kind, or the same one written out or abbreviated."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from evaluation.claims.changes.numbers import values
from evaluation.claims.changes.types import Change, replaced, shuffled, vocabulary

Unit = Sequence[Sequence[str]]
"""How a unit is spelled: as a symbol, of one, of many; each in several ways, or none."""

_MANY = 2
_CURRENCY = re.compile(r"[$£€](?=\d)")
_PERCENT = re.compile(r"(?<=\d)(?:%|\sper ?cent\b)")


@dataclass(frozen=True, slots=True)
class Measure:
    """Where a number has a unit, and which."""

    span: tuple[int, int]
    """Of the unit."""
    unit: Unit
    form: int
    """Whether it is a symbol, of one or of many: the place in `unit`."""
    spelling: int


def changed(text: str, rng: Random) -> Iterator[Change]:
    """Give a number another unit of the same kind, or an amount another currency."""
    for measure in shuffled(_measures(text), rng):
        family = next(family for family in vocabulary()["units"] if measure.unit in family)
        for other in shuffled([unit for unit in family if unit != measure.unit and unit[measure.form]], rng):
            new = other[measure.form][measure.spelling % len(other[measure.form])]
            yield replaced(text, measure.span, new, [spelling for spellings in other for spelling in spellings])
    for match in shuffled([*_CURRENCY.finditer(text)], rng):
        for new in shuffled([each for each in vocabulary()["currencies"] if each != match[0]], rng):
            yield replaced(text, match.span(), new, (new,))


def respelled(text: str, rng: Random) -> Iterator[Change]:
    """Write a unit out or abbreviate it, percent too."""
    for measure in shuffled(_measures(text), rng):
        other = measure.unit[0 if measure.form else _MANY]
        if other:
            glued = text[measure.span[0] - 1].isdigit()
            yield replaced(text, measure.span, f" {other[0]}" if glued else other[0])
    for match in _PERCENT.finditer(text):
        yield replaced(text, match.span(), " percent" if match[0] == "%" else "%")


def _measures(text: str) -> list[Measure]:
    found = [(match, "unit" if match["unit"] else "glued") for match in _pattern().finditer(text)]
    return [Measure(match.span(group), *_known()[match[group]]) for match, group in found]


@lru_cache(maxsize=1)
def _known() -> dict[str, tuple[Unit, int, int]]:
    """Return every spelling of a unit with the unit and its places there."""
    return {
        spelling: (unit, form, place)
        for family in vocabulary()["units"]
        for unit in family
        for form, spellings in enumerate(unit)
        for place, spelling in enumerate(spellings)
    }


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    units = "|".join(sorted(map(re.escape, _known()), key=len, reverse=True))
    words = "|".join(sorted(values(), key=len, reverse=True))
    apart = rf"(?:\d|\b(?:{words})|illion)[\s\u00a0](?P<unit>{units})"
    glued = r"(?<=\d)(?:km|kg|cm|mm|°C|°F)"
    return re.compile(rf"(?:{apart}|(?P<glued>{glued}))(?![\w/²³-])")
