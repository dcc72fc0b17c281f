"""Which sentences say the same thing, and which of those disagree: other numbers, dates, days or a "not". Pure.

Two sentences are about the same thing when most of what they say besides their values is the same. With the same
values they are duplicates, of which one is enough; with others, from different documents, they are a disagreement, of
which both are shown.
"""

import re
from dataclasses import dataclass

from pipeline.extraction.answer_types import is_date, is_number
from storage.language.words import content_terms, plain, words

ALIKE = 0.6
"""The least share of the shorter sentence's terms that the other must have."""
ALIKE_BOTH = 0.4
"""The least share of all their terms that both must have."""
SAME = 0.85
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|cannot|without|neither|nor|\w+n't|nicht|kein\w*|nie|niemals|ohne|nunca|jamás|tampoco|"
    r"pas|jamais|aucun\w*|ne|n['’]|non|mai|não|niet|geen|inte|не|нет|никогда|لا|لم|لن|ليس\w*|غير)\b|[不没未无非]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence taken apart into what it is about and the values that it gives."""

    topic: frozenset[str]
    values: frozenset[str]
    negated: bool


def statement(text: str, language: str = "") -> Statement:
    """Take a sentence apart."""
    topic: set[str] = set()
    values: set[str] = set()
    for word in words(text):
        found = content_terms(word, language)
        (values if is_number(word) or is_date(word) else topic).update(found or _number_word(word))
    return Statement(frozenset(topic), frozenset(values), bool(_NEGATION.search(text)))


def repeats(one: Statement, other: Statement) -> bool:
    """Return whether two sentences say the same with the same values."""
    same = one.values == other.values and one.negated == other.negated
    return same and _shared(one, other) >= SAME * len(one.topic | other.topic)


def contradicts(one: Statement, other: Statement) -> bool:
    """Return whether two sentences are about the same thing and give different values, or one denies it.

    Each must have a value that the other has not: a sentence that merely says more does not disagree.
    """
    shared = _shared(one, other)
    least, all_of_them = min(len(one.topic), len(other.topic)), len(one.topic | other.topic)
    if not shared or shared < ALIKE * least or shared < ALIKE_BOTH * all_of_them:
        return False
    differ = bool(one.values - other.values and other.values - one.values)
    return differ or (one.negated != other.negated and one.values == other.values)


def _shared(one: Statement, other: Statement) -> int:
    return len(one.topic & other.topic)


def _number_word(word: str) -> list[str]:
    """Return a number that is written as a stop word ("one", "once"), for as a value it counts."""
    return [plain(word)] if is_number(word) else []
