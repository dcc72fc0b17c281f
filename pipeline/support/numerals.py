"""What words, Roman and Chinese numerals are worth; `numbers` reads them, and digits, as a text's numbers."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

_ROMAN = re.compile(r"(?=[IVXLC])(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_TEN_THOUSAND = 10_000


@dataclass(frozen=True, slots=True)
class Numerals:
    """One language's words for numbers, in plain lower case."""

    cardinals: Mapping[str, int]
    ordinals: Mapping[str, int]
    fractions: Mapping[str, int]
    """Denominators."""
    hints: Mapping[str, int]
    """Words that say a number without being one: "twice", "both"."""
    joints: frozenset[str]
    leads: frozenset[str]
    """Every word at which a number may be read."""


@cache
def numerals(language: str) -> Numerals:
    """Return a language's numerals; English ones where it has none."""
    data = _data()
    own = data.get(language) if len(language) == len("en") else None
    own = own or data["en"]
    return Numerals(
        cardinals=own["cardinals"],
        ordinals=own["ordinals"],
        fractions=own["fractions"],
        hints=own["hints"],
        joints=frozenset(own["joints"]),
        leads=frozenset({*own["cardinals"], *own["ordinals"], *own["fractions"]}),
    )


@cache
def scales() -> Mapping[str, int]:
    """Words that multiply the digits before them: "million", "bn", "万"."""
    return MappingProxyType(_data()["scales"])


def roman(word: str) -> int | None:
    """Return the value of a Roman numeral in capitals, up to 99."""
    if not _ROMAN.fullmatch(word):
        return None
    values = [_ROMAN_VALUES[char] for char in word]
    return sum(-one if one < two else one for one, two in zip(values, [*values[1:], 0], strict=True))


def is_han_numeral(char: str) -> bool:
    """Whether a character is a Chinese numeral."""
    return char in _data()["han"]


def han(run: Sequence[str]) -> int:
    """Return the value of a run of Chinese numerals: by places ("一九九〇") or with units ("三百二十")."""
    values: list[int] = [_data()["han"][char] for char in run]
    if all(value < len("0123456789") for value in values):
        return int("".join(map(str, values)))
    total = section = digit = 0
    for value in values:
        if value >= _TEN_THOUSAND:
            total += (section + digit or 1) * value
            section = digit = 0
        elif value >= len("0123456789"):
            section += (digit or 1) * value
            digit = 0
        else:
            digit = value
    return total + section + digit


@cache
def _data() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(
        resources.files(__package__).joinpath("numerals.json").read_text(encoding="utf-8")
    )
    return loaded
