"""Numbers, years and names put where another of their kind stood, taken from elsewhere in the same passage.

Harder to catch than what `numbers`, `dates` and `names` put there, as the passage says the new value too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType

from evaluation.claims.changes.dates import years
from evaluation.claims.changes.names import names
from evaluation.claims.changes.numbers import numbers
from evaluation.claims.changes.types import Change, replaced, shuffled, stands

Neighbour = Callable[[str, str, Random], Iterator[Change]]
"""Proposes changes to a sentence, with values that its passage, the second text, has and the sentence has not."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A value where it stands in a text, and of what kind it is."""

    span: tuple[int, int]
    said: str
    kind: str


_Values = Callable[[str], Sequence[_Value]]


def _taking(values: _Values) -> Neighbour:
    """Return the change of a value for one of its kind that stands only in other sentences of the passage."""

    def taken(text: str, passage: str, rng: Random) -> Iterator[Change]:
        others = list({value.said: value for value in values(passage) if not stands(value.said, text)}.values())
        for value in shuffled(values(text), rng):
            for other in shuffled([each for each in others if each.kind == value.kind], rng):
                yield replaced(text, value.span, other.said)

    return taken


def _numbers(text: str) -> list[_Value]:
    """Return numbers; those in words are of another kind, and a whole one is not put for a fraction."""
    return [
        _Value(number.span, number.said, f"{number.in_words} {number.value == int(number.value)}")
        for number in numbers(text)
    ]


def _years(text: str) -> list[_Value]:
    spans = [span for span in years(text) if not text[span[1] :].startswith("s")]
    return [_Value(span, text[slice(*span)], "year") for span in spans]


def _names(text: str) -> list[_Value]:
    """Return names; one that shares a word with another name of the text may be the same, and is left out."""
    found = names(text)
    return [
        _Value(name.span, name.text, name.kind)
        for name in found
        if not any(other.text != name.text and {*name.words} & {*other.words} for other in found)
    ]


NEIGHBOURS: Mapping[str, Neighbour] = MappingProxyType({
    "number of the same passage": _taking(_numbers),
    "date of the same passage": _taking(_years),
    "name of the same passage": _taking(_names),
})  # fmt: skip
