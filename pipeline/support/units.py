"""Units of measure: which stand beside a number, and when two quantities are the same in different units."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from pipeline.support.tokens import Tokens

_LONGEST = 3
_FEWEST_LETTERS = 4
"""Tokens of a unit: "light", "-", "year"."""
_NEAR = 0.02
"""How far apart, as a share, two quantities may be that are the same in different units."""
_KELVIN, _FAHRENHEIT_ZERO, _FAHRENHEIT_STEP = 273.15, 32.0, 5 / 9


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: what it measures, its name, and how many of the base unit it is (0 where nothing converts it)."""

    measures: str
    name: str
    factor: float


def units_at(text: Tokens, first: int, last: int) -> tuple[tuple[Unit, ...], int]:
    """Return what the unit of the number at tokens `first` to `last` may be, and where number and unit end."""
    if first and text.at(first - 1) in _signs():
        country = text.at(first - 2) + " " if text.glued(first - 1) else ""
        return _named(country + text.low[first - 1]) or _named(text.low[first - 1]), last
    at = last + (text.at(last) == "-")
    for size in range(_LONGEST, 0, -1):
        found = _named(" ".join(text.low[at : at + size])) if at + size <= len(text) else ()
        if found:
            return found, at + size
    return (), last


def is_unit(word: str) -> bool:
    """Whether a word in plain lower case may be a unit."""
    return bool(_named(word))


def same_unit(one: tuple[Unit, ...], other: tuple[Unit, ...]) -> bool:
    """Whether two quantities may be in the same unit."""
    return bool({unit.name for unit in one} & {unit.name for unit in other})


def same_kind(one: tuple[Unit, ...], other: tuple[Unit, ...]) -> bool:
    """Whether two quantities may measure the same thing."""
    return bool({unit.measures for unit in one} & {unit.measures for unit in other})


def equal(value: float, units: tuple[Unit, ...], other: float, others: tuple[Unit, ...]) -> bool:
    """Whether two quantities are the same within 2%."""
    return any(_close(value, unit, other, second) for unit in units for second in others)


def conversions(value: float, units: tuple[Unit, ...], wanted: tuple[Unit, ...]) -> tuple[float, ...]:
    """Return what a value may be in other units of the same kind."""
    return tuple(
        value * unit.factor / other.factor
        for unit in units
        for other in wanted
        if unit.measures == other.measures != "temperature" and unit.factor and other.factor
    )


def _close(value: float, unit: Unit, other: float, second: Unit) -> bool:
    if unit.measures != second.measures:
        return False
    if unit.name == second.name:
        return value == other
    one, two = _base(value, unit), _base(other, second)
    return one is not None and two is not None and abs(one - two) <= _NEAR * max(abs(one), abs(two))


def _base(value: float, unit: Unit) -> float | None:
    if unit.measures == "temperature":
        return {
            "c": value + _KELVIN, "k": value, "f": (value - _FAHRENHEIT_ZERO) * _FAHRENHEIT_STEP + _KELVIN
        }[unit.name]  # fmt: skip
    return value * unit.factor if unit.factor else None


def _named(name: str) -> tuple[Unit, ...]:
    known = _units()
    return known.get(name) or (
        known.get(name[:-1], ()) if name.endswith(("s", "n", "e")) and len(name) >= _FEWEST_LETTERS else ()
    )


@cache
def _signs() -> frozenset[str]:
    """Currencies that are written before the number."""
    return frozenset(name for name, units in _units().items() if units[0].measures == "money" and " " not in name)


@cache
def _units() -> Mapping[str, tuple[Unit, ...]]:
    data = json.loads(resources.files(__package__).joinpath("units.json").read_text(encoding="utf-8"))
    found: dict[str, tuple[Unit, ...]] = {}
    for measures, units in data.items():
        for name, (factor, spellings) in units.items():
            for spelling in spellings.split():
                key = spelling.replace("_", " ")
                found[key] = (*found.get(key, ()), Unit(measures, name, factor))
    return found
