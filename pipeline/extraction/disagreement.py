"""Which sentences say the same thing, and which of those disagree: other numbers, dates, days or a "not". Pure.

Two sentences are about the same thing when most of what they say besides their values is the same, or a good part and
both count in the same unit. With the same values they are duplicates, of which one is enough; with others of the same
sort, from different documents, they are a disagreement, of which both are shown.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from pipeline.extraction.answer_types import is_date, is_number
from storage.language.words import content_terms, plain, words

SAME = 0.85
"""The least share of all terms that two sentences share if one repeats the other."""
ALIKE = (0.6, 0.5)
"""The least shares, of the shorter sentence's terms and of all terms, that two sentences about one thing share."""
ALIKE_MEASURED = (0.5, 0.3)
"""The same of sentences that count in the same unit."""
_YEAR = re.compile(r"(?:19|20)\d\d")
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|cannot|without|neither|nor|\w+n['’]t|nicht|kein\w*|nie|niemals|ohne|nunca|jamás|"
    r"tampoco|pas|jamais|aucun\w*|non|mai|não|niet|geen|inte|не|нет|никогда|لا|لم|لن|ليس\w*|غير)\b|[不没未无非]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence taken apart into what it is about and the values that it gives."""

    topic: frozenset[str]
    values: Mapping[str, frozenset[str]]
    """Sort of value ("year", "clock", "calendar", "number", and "number of UNIT") -> the values of that sort."""
    negated: bool


def statement(text: str, language: str = "") -> Statement:
    """Take a sentence apart."""
    topic = [
        term for word in words(text) if not (is_number(word) or is_date(word)) for term in content_terms(word, language)
    ]
    values: dict[str, set[str]] = {}
    for sort, value in _values(text, language):
        values.setdefault(sort, set()).add(value)
    frozen = {sort: frozenset(found) for sort, found in values.items()}
    return Statement(frozenset(topic), frozen, bool(_NEGATION.search(text)))


def repeats(one: Statement, other: Statement) -> bool:
    """Return whether two sentences say the same with the same values."""
    same = one.values == other.values and one.negated == other.negated
    return same and len(one.topic & other.topic) >= SAME * len(one.topic | other.topic)


def contradicts(one: Statement, other: Statement) -> bool:
    """Return whether two sentences are about the same thing and give other values of one sort, or one denies it."""
    shared = len(one.topic & other.topic)
    differing = [sort for sort in one.values.keys() & other.values.keys() if _differ(one, other, sort)]
    of_one, of_both = ALIKE_MEASURED if any(sort.startswith("number of ") for sort in differing) else ALIKE
    least, everything = min(len(one.topic), len(other.topic)), len(one.topic | other.topic)
    if not shared or shared < of_one * least or shared < of_both * everything:
        return False
    return bool(differing) or (one.negated != other.negated and one.values == other.values)


def _differ(one: Statement, other: Statement, sort: str) -> bool:
    """Return whether each has a value of a sort that the other has not: one that merely says more does not disagree."""
    return bool(one.values[sort] - other.values[sort] and other.values[sort] - one.values[sort])


def _values(text: str, language: str) -> Iterator[tuple[str, str]]:
    """Yield each value with its sort; a number that is followed by what it counts, of two sorts."""
    for match in re.finditer(r"\d{1,2}:\d\d", text):
        yield "clock", match[0]
    for word, following in pairwise([*words(re.sub(r"\d{1,2}:\d\d", " ", text)), ""]):
        value = plain(word)
        if _YEAR.fullmatch(value):
            yield "year", value
        elif is_date(word):
            yield "calendar", value
        elif is_number(word):
            yield "number", value
            if unit := content_terms(following, language):
                yield f"number of {unit[0]}", value
