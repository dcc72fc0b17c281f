"""Distinguish things of one kind by the number, letter or code after it: room 7 from room 12, form B7 from form B2."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache

from pipeline.extraction.candidates import Candidate, is_date
from pipeline.support.analysis.quantity_parser import is_unit
from storage.language.lazy_pattern import lazy_compile
from storage.language.words import content_terms, fold_spelling, stop_words

_LETTER = r"[A-HJ-Z](?!\.\s*[A-Z]|[-&'’])"  # no initial, no "V&A"
_CODE = r"(?!(?:19|20)\d\d\b)[A-Za-z]{0,4}-?\d{1,6}[A-Za-z]?(?![.,:/]\d|-\w|\s?[%°€$£])"  # no year, price or time
_MARK = rf"(?:{_CODE}|{_LETTER})(?!\w)"
_JOINT = r"(?:\s*(?:,|&|/|[-–])\s*|,?\s+(?:and|or|to|und|oder|bis|et|ou|à|y|o|e)\s+)"
_MARKED = lazy_compile(rf"\b(?P<kind>[^\W\d_]{{2,}}):?[ \t]+(?P<marks>{_MARK}(?:{_JOINT}{_MARK})*)")
_MARKS = lazy_compile(_MARK)
_RANGE = lazy_compile(r"(\d{1,6})\s*(?:[-–]|to|bis|à)\s*(\d{1,6})")
_COUNTED = lazy_compile(r"\d\s+([^\W\d_]{3,})\b")
_MOST_LISTED = 1000  # the most numbers that a range stands for

Designations = Mapping[str, frozenset[str]]  # term of a kind -> the marks that distinguish things of that kind


def is_about_others(candidate: Candidate, question: str) -> bool:
    """Return whether a candidate names only other things of a kind than the question: Pump B, not Pump A.

    If it names none of the kind, the nearest of lead-in, section and title decides. If that names only what was asked
    for, other names in the candidate do not count. Numbers that count the same things are quantities.
    """
    language, passage = candidate.hit.document.language, candidate.hit.passage
    asked = _find_designations(question, language)
    if not asked or _find_counted(question) & _find_counted(candidate.text):
        return False
    texts = (candidate.text, candidate.lead, passage.section, candidate.hit.document.title)
    named = [_find_designations(text, language) for text in texts]
    return any(_names_others(kind, marks, named) for kind, marks in asked.items())


def _names_others(kind: str, marks: frozenset[str], named: Sequence[Designations]) -> bool:
    own, *above = (marked.get(kind, frozenset[str]()) for marked in named)
    nearest = next(filter(None, above), frozenset[str]())
    return marks.isdisjoint(own or nearest or marks) and not (own and nearest and nearest <= marks)


@lru_cache(maxsize=1024)
def _find_designations(text: str, language: str) -> Designations:
    """Return the marks after each word that may name a kind of thing: one term, but no month or unit."""
    kinds = defaultdict[str, set[str]](set)
    for match in _MARKED.finditer(text):
        word = match["kind"]
        stems = () if is_date(fold_spelling(word)) or is_unit(word.lower()) else content_terms(word, language)
        if len(stems) == 1:
            kinds[stems[0]].update(fold_spelling(mark[0]) for mark in _MARKS.finditer(match["marks"]))
            for first, last in _RANGE.findall(match["marks"]):
                kinds[stems[0]].update(map(str, range(int(first), min(int(last), int(first) + _MOST_LISTED))))
    return {kind: frozenset(marks) for kind, marks in kinds.items()}


def _find_counted(text: str) -> frozenset[str]:
    """Return the words that numbers count: "people" of "5 people"."""
    return frozenset(_COUNTED.findall(text.lower())) - stop_words()
