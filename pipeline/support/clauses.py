"""The stretches of a sentence that do not say what happens: exceptions, conditions, what something is set against.

A negation inside one of them denies nothing of the whole ("if nobody answers, the request is granted"), and one
outside may not reach into it ("not paid, except when somebody leaves").
"""

import json
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

from pipeline.support.reading import Reading
from pipeline.support.tokens import is_mark

_RELATIVE = frozenset({"where", "which", "who", "because", "as", "then"})
"""Words that begin what is said of an exception."""
_LONGEST = 15
"""Tokens of such a stretch."""


@dataclass(frozen=True, slots=True)
class Clauses:
    """The places of the words of each kind, without the words that open a stretch."""

    excepted: frozenset[int]
    conditional: frozenset[int]
    contrasted: frozenset[int]
    limited: bool
    """Whether anything is said to hold "only" here."""

    def inverts(self, other: "Clauses") -> bool:
        """Whether one sentence says "only when" of what another denies "except when"."""
        return (self.limited and not other.limited and bool(other.excepted)) or (
            other.limited and not self.limited and bool(self.excepted)
        )

    @property
    def hedged(self) -> frozenset[int]:
        """All of these places."""
        return self.excepted | self.conditional | self.contrasted


@lru_cache(maxsize=4096)
def clauses(reading: Reading) -> Clauses:
    """Find them by their first words; in a language without a list of these, none are found."""
    known = _openers(reading.language)
    if known is None:
        return Clauses(frozenset(), frozenset(), frozenset(), limited=False)
    found = {
        kind: [stretch for phrase in phrases for stretch in _stretches(reading, phrase)] for kind, phrases in known
    }
    excepted, conditional, contrasted, limits = (
        frozenset(at for stretch in found[kind] for at in range(*stretch))
        for kind in ("exceptions", "conditions", "contrasts", "limits")
    )
    return Clauses(excepted, conditional, contrasted, limited=bool(limits))


def exception_of(reading: Reading) -> tuple[int, int] | None:
    """Return the first stretch that is excepted from what stands before it; None where there is none."""
    known = dict(_openers(reading.language) or ())
    found = sorted(stretch for phrase in known.get("exceptions", ()) for stretch in _stretches(reading, phrase))
    return next((stretch for stretch in found if stretch[0] > 1 + reading.text.words[0][0].isupper()), None)


def clause_around(reading: Reading, first: int, last: int) -> frozenset[str]:
    """Return the stems between the marks around a value's tokens; of one said of an exception, what is excepted too."""
    marks = [at for at, low in enumerate(reading.text.low) if is_mark(low)]
    start = max((at for at in marks if at < first), default=-1)
    end = min((at for at in marks if at >= last), default=len(reading.text))
    stretch = exception_of(reading)
    if stretch and stretch[1] <= first:
        start = min(start, stretch[0] - 1)
    return frozenset(reading.stems[start + 1 : end])


def _stretches(reading: Reading, phrase: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return what follows each place of a phrase, up to the next mark or relative word."""
    low = reading.text.low
    if phrase[0] not in low:
        return []
    starts = [at for at, word in enumerate(low) if word == phrase[0] and low[at : at + len(phrase)] == phrase]
    return [(at + len(phrase), _end(reading, at + len(phrase))) for at in starts]


def _end(reading: Reading, start: int) -> int:
    low = reading.text.low
    last = min(len(low), start + _LONGEST)
    return next(
        (at for at in range(start, last) if (is_mark(low[at]) and low[at] != '"') or low[at] in _RELATIVE), last
    )


@cache
def _openers(language: str) -> tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] | None:
    data = json.loads(resources.files(__package__).joinpath("polarity.json").read_text(encoding="utf-8"))
    own = data.get(language) if len(language) == len("en") else data["en"]
    if not own or "exceptions" not in own:
        return None
    phrases = {
        **{kind: own[kind] for kind in ("exceptions", "conditions", "contrasts")},
        "limits": own["limits"].split(),
    }
    return tuple((kind, tuple(tuple(phrase.split()) for phrase in listed)) for kind, listed in phrases.items())
